/**
 * Validation of a payment against the terms, and of a key's signature.
 * Source: docs/reference/payment.md#x402; EIP-3009.
 * @module
 */
import { isSignedByOwner, type TypedDomain } from "../evm/authorization.ts";
import type { X402Terms } from "./x402.ts";
import type { X402Payment } from "./x402-payment-reader.ts";

/**
 * Shortest remaining validity of a received payment, so that a block includes it in time. Seconds. Facilitators require
 * six.
 */
const timeLeftMin = 10n;

/**
 * Longest remaining validity: the payment is watched until its end. The required timeout is five minutes, so no payer
 * needs more than a day. Seconds.
 */
const timeLeftMax = 86_400n;

/** The clocks of payers, chains and this machine differ by seconds. */
const clockSlack = 60n;

/** The EIP-712 domain of the coin. */
export function domainOf({ network }: X402Terms): TypedDomain {
  const { chainId, asset } = network;
  return { name: asset.name, version: asset.version, chainId, contract: asset.address };
}

/**
 * Whether the payer signed with a key, for the coin of these terms. Signatures of contract wallets are checked on the
 * chain (`isSignedByWallet`).
 */
export function isSignedByKey(terms: X402Terms, { authorization, signature }: X402Payment): boolean {
  return isSignedByOwner(domainOf(terms), authorization, signature);
}

/**
 * Validates a payment against the terms. Of the amount, only the repetition in version 2 is checked.
 *
 * @param now - Unix seconds.
 * @returns The protocol's name of the first fault, or `undefined`.
 */
export function faultOf(terms: X402Terms, payment: X402Payment, now: bigint): string | undefined {
  const { network, payTo } = terms;
  const { authorization, accepted } = payment;
  const { from, to, value, validAfter, validBefore } = authorization;
  if (payment.scheme !== "exact") return "unsupported_scheme";
  const name = payment.version === 1 ? network.nameV1 : network.name;
  // A network without a name in version 1 has its CAIP-2 name in both versions.
  if (payment.network !== name) return "invalid_network";
  if (accepted !== undefined && accepted.asset !== network.asset.address) return "invalid_asset";
  if (accepted !== undefined && accepted.payTo !== payTo) return "invalid_pay_to";
  if (accepted !== undefined && accepted.amount !== value) return "invalid_exact_evm_authorization_value";
  if (to !== payTo || from === payTo) return "invalid_exact_evm_recipient_mismatch";
  if (validAfter >= now + clockSlack) return "invalid_exact_evm_authorization_valid_after";
  if (validBefore < now + timeLeftMin || validBefore > now + timeLeftMax)
    return "invalid_exact_evm_authorization_valid_before";
  return undefined;
}
