/**
 * Whether a payment is what was asked for, as far as its own words tell, and whose signature it has.
 * Source: docs/reference/payment.md#x402; EIP-3009.
 * @module
 */
import { isSignedByOwner, type TypedDomain } from "../evm/typed-data.ts";
import type { X402Payment } from "./payload.ts";
import type { X402Terms } from "./x402.ts";

/**
 * A payment must have so long to be carried out when it comes, or it is over before a block has it. Seconds.
 * Facilitators ask for six.
 */
export const timeLeftMin = 10n;

/**
 * And it must be over some day: until then it is watched. A payer who is asked for five minutes has no reason for
 * more than a day. Seconds.
 */
export const timeLeftMax = 86_400n;

/** Clocks differ by seconds between payers, chains and us. */
const clockSlack = 60n;

/** What the signatures of the terms' coin are bound to. */
export function domainOf({ network }: X402Terms): TypedDomain {
  const { chainId, asset } = network;
  return { name: asset.name, version: asset.version, chainId, contract: asset.address };
}

/**
 * Tells whether the payer signed it with a key, for the coin of these terms. Of wallets that are contracts only the
 * chain can tell (`isSignedByWallet`).
 */
export function isSignedByKey(terms: X402Terms, { authorization, signature }: X402Payment): boolean {
  return isSignedByOwner(domainOf(terms), authorization, signature);
}

/**
 * Finds what of a payment is not as the terms say; of its amount, only that version 2 repeats it truly.
 *
 * @param now - Unix seconds.
 * @returns The first fault as the protocol names it, or `undefined`.
 */
export function faultOf(terms: X402Terms, payment: X402Payment, now: bigint): string | undefined {
  const { network, payTo } = terms;
  const { authorization, accepted } = payment;
  const { from, to, value, validAfter, validBefore } = authorization;
  if (payment.scheme !== "exact") return "unsupported_scheme";
  const name = payment.version === 1 ? network.nameV1 : network.name;
  // Version 1 names no chain that it has no word for; then both use the same.
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
