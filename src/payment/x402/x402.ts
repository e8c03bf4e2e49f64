/**
 * Payments by the x402 protocol: its types, networks, requirements, and the parsing and validation of a payment.
 *
 * A payment is an authorization to move dollars, signed by the payer (EIP-3009). Settling moves the dollars once and
 * credits the payer's account once, however often the payment is sent. A service then reserves its price from that
 * account, so that the payer keeps the credits when the service rejects the request.
 * Source: docs/reference/payment.md#x402.
 * @module
 */

import { isJsonObject, type JsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import { readAddress, type Token, type UserAddress } from "../addresses.ts";
import { type Authorization, isSignedByOwner, type TypedDomain } from "../evm/authorization.ts";
import { readEvmAddress, readHash, readHexBytes } from "../evm/evm-values.ts";

/** The subject of a payment. */
export type X402Want =
  /** Storage of this number of bytes, 1 or more. */
  | Readonly<{ kind: "bytes"; size: bigint }>
  /** Credits, winc, 1 or more. */
  | Readonly<{ kind: "credits"; winc: bigint }>
  /** The credits that an amount of the asset buys; the amount is `x402AmountMin` or more of its smallest unit. */
  | Readonly<{ kind: "dollars"; amount: bigint }>;

/** A price. It is held as long as a payment may take, so that a later price does not invalidate the signed amount. */
export type X402Quote = Readonly<{
  want: X402Want;
  /** The price, smallest unit of the asset; at least `x402AmountMin`. */
  amount: bigint;
  /** Credits for the payment, 1 or more. A payment of `amount` credits at least this. */
  winc: bigint;
}>;

/** The terms of all payments. */
export type X402Terms = Readonly<{
  network: X402Network;
  payTo: UserAddress;
  /** Longest time from quote to settlement. Seconds. */
  timeoutSeconds: number;
}>;

/** The purpose of a payment: `topUpPurpose`, or an `uploadPurpose`. The first purpose binds it. */
export type X402Purpose = string & { readonly __brand: "X402Purpose" };

/** A payment with its purchase. */
export type X402Request = Readonly<{
  payment: X402Payment;
  /** The purchase. Payments for held quotes are accepted at their price. */
  want: X402Want;
  purpose: X402Purpose;
  /** Absolute URL of the purchase, for the facilitator. */
  resource: string;
}>;

/** A settled payment: the dollars moved, and the payer was credited. */
export type X402Settled = Readonly<{
  /** The credited account. */
  payer: UserAddress;
  /** The credits for the full payment, at the quote's price. */
  creditedWinc: bigint;
  /** The credits that the quote promised; `creditedWinc` or less. An upload reserves this. */
  quotedWinc: bigint;
  /** The payer's own balance right after. */
  balance: bigint;
  /** Hash of the chain's transaction. */
  transaction: string;
  /** Smallest unit of the asset. */
  paid: bigint;
  /** Settled by an earlier request with the same payment. */
  isReplay: boolean;
}>;

/** Payments by x402. */
export type X402 = Readonly<{
  terms: X402Terms;
  /**
   * Returns the price of a purchase. Writes nothing.
   * @throws Failure `pricing_oracle_unavailable`, `fiat_oracle_unavailable`; `invalid_quantity` when it costs more than
   *   can be paid.
   */
  quote: (want: X402Want, signal: AbortSignal) => Promise<X402Quote>;
  /**
   * Settles a payment and credits its payer, once ever. The same payment for the same purpose gets the same response.
   *
   * Once money may move, the signal only ends the caller's wait: the payment is followed until the chain has decided.
   * @throws Failure `invalid_signature` for a signature that is not the payer's; `settlement_failed` {reason} when the
   *   payment does not match the requirement or cannot settle; `settlement_unknown` while the outcome is unknown, also
   *   while another request settles it; those of `quote`; `database_unavailable`, `busy`.
   */
  settle: (request: X402Request, signal: AbortSignal) => Promise<X402Settled>;
}>;

/** The lowest price, smallest unit of the asset: a tenth of a cent. */
export const x402AmountMin = 1_000n;

/** A payment for credits alone. */
export const topUpPurpose = "top-up" as X402Purpose;

/**
 * A payment for an upload, whose price the upload service reserves from the payer's account after `settle`.
 * @param id - The upload's id: equal for a repeated upload, different for all others. At most 200 characters.
 */
export function uploadPurpose(id: string): X402Purpose {
  return `upload:${id}` as X402Purpose;
}

/**
 * A payment for reading beyond the limits.
 * @param client - The id of the reader: 64 hexadecimal digits.
 */
export function readingPurpose(client: string): X402Purpose {
  return `reading:${client}` as X402Purpose;
}

// The payment requirement in both versions of the protocol.
// Source: docs/reference/payment.md#x402.

/** The resource as described to the payer. */
export type X402Resource = Readonly<{
  /** Absolute, or relative when the public address is unknown. */
  url: string;
  description: string;
  mimeType: string;
}>;

/** Version 1, the version of the specification's examples. */
export function requirementV1(terms: X402Terms, amount: bigint, resource: X402Resource) {
  const { network, payTo, timeoutSeconds } = terms;
  return {
    scheme: "exact",
    description: resource.description,
    network: network.nameV1,
    maxAmountRequired: amount.toString(),
    payTo,
    asset: network.asset.address,
    resource: resource.url,
    mimeType: resource.mimeType,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: network.asset.name, version: network.asset.version },
  } as const;
}

/** Version 2, where the resource is a separate object. */
export function requirementV2({ network, payTo, timeoutSeconds }: X402Terms, amount: bigint) {
  return {
    scheme: "exact",
    network: network.name,
    amount: amount.toString(),
    asset: network.asset.address,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: network.asset.name, version: network.asset.version },
  } as const;
}

// The chains and dollars of x402 payments, with the domains of their signatures.
//
// Source: CAIP-2 (names of chains); Circle's list of USDC contracts; each contract's `name()` and `version()`, which
// its signatures contain.

/** A coin, with the fields of its EIP-712 domain. */
type X402Asset = Readonly<{
  /** The contract, canonical. */
  address: UserAddress;
  name: string;
  version: string;
  /** The token of its price. */
  token: Token;
}>;

/** A chain and its accepted coin. */
export type X402Network = Readonly<{
  chainId: bigint;
  /** The CAIP-2 name, `eip155:8453`, of version 2 and of the ledger. */
  name: string;
  /** The network's name in version 1, `base`, or its CAIP-2 name. */
  nameV1: string;
  asset: X402Asset;
}>;

/** The operator's coin, which replaces the known coin. */
type AssetSettings = Readonly<{
  address: string | undefined;
  name: string | undefined;
  version: string | undefined;
}>;

type KnownNetwork = Readonly<{
  chainId: bigint;
  nameV1?: string;
  token: Token;
  asset: Readonly<{ address: string; name: string; version: string }>;
}>;

const knownNetworks: readonly KnownNetwork[] = [
  {
    chainId: 8_453n,
    nameV1: "base",
    token: "base-usdc",
    asset: { address: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", name: "USD Coin", version: "2" },
  },
  {
    chainId: 84_532n,
    nameV1: "base-sepolia",
    token: "base-usdc",
    asset: { address: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", name: "USDC", version: "2" },
  },
  {
    chainId: 1n,
    token: "usdc",
    asset: { address: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", name: "USD Coin", version: "2" },
  },
  {
    chainId: 137n,
    nameV1: "polygon",
    token: "polygon-usdc",
    asset: { address: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", name: "USD Coin", version: "2" },
  },
];

const caipPattern = /^eip155:([1-9]\d{0,15})$/;

/**
 * Parses a network.
 *
 * @param text - A name of version 1, or a CAIP-2 name of an EVM chain.
 * @param set - Replaces the known coin of the network; an unknown network needs all three settings.
 * @returns The network, or the fault of the settings.
 */
export function readX402Network(text: string, set: AssetSettings): X402Network | Readonly<{ fault: string }> {
  const chainText = caipPattern.exec(text)?.[1];
  const known = knownNetworks.find(({ chainId, nameV1 }) => nameV1 === text || String(chainId) === chainText);
  const chainId = known?.chainId ?? (chainText === undefined ? undefined : BigInt(chainText));
  if (chainId === undefined)
    return { fault: `invalid value '${text}' for X402_NETWORK: expected base, base-sepolia or the form eip155:8453` };
  const addressText = set.address ?? known?.asset.address;
  const name = set.name ?? known?.asset.name;
  const version = set.version ?? known?.asset.version;
  if (addressText === undefined || name === undefined || version === undefined)
    return {
      fault: `unknown X402_NETWORK '${text}': set X402_ASSET_ADDRESS, X402_ASSET_NAME and X402_ASSET_VERSION`,
    };
  const address = readAddress(addressText, "ethereum")?.address;
  if (address === undefined)
    return { fault: `invalid value '${addressText}' for X402_ASSET_ADDRESS: expected an Ethereum address` };
  const caip = `eip155:${chainId}`;
  const asset = { address, name, version, token: known?.token ?? "base-usdc" };
  return { chainId, name: caip, nameV1: known?.nameV1 ?? caip, asset };
}

// Payments from x402 clients: version 1 in `X-PAYMENT`, version 2 in `PAYMENT-SIGNATURE`, each base64 of JSON.
// Source: docs/reference/payment.md#x402; x402 specification, scheme "exact" on EVM chains.

/** A payment as received. */
export type X402Payment = Readonly<{
  version: 1 | 2;
  scheme: string;
  /** The name in the payment's version. */
  network: string;
  authorization: Authorization;
  /** 65 bytes for a key, any size for a smart wallet. */
  signature: Uint8Array;
  /** Version 2: the requirement as repeated by the payer. */
  accepted: X402Accepted | undefined;
}>;

/** The requirement that a payer repeats in version 2. */
export type X402Accepted = Readonly<{ amount: bigint; asset: UserAddress; payTo: UserAddress }>;

/** Longer headers are not parsed; valid headers have about 1,000 characters. */
const textLengthMax = 8_192;

/** Longest signature; a smart wallet's signature may wrap another. Bytes. */
const signatureBytesMax = 2_048;

const uintPattern = /^\d{1,78}$/;
const uintMax = 2n ** 256n - 1n;

/**
 * Parses a payment.
 *
 * @param version - The version of its header.
 * @returns `undefined` for text that is not an EIP-3009 payment of this version.
 */
export function readX402Payment(text: string, version: 1 | 2): X402Payment | undefined {
  const value = readBase64Json(text);
  if (!isJsonObject(value) || value["x402Version"] !== version) return undefined;
  // Version 1 has these fields at the top, version 2 in the repeated requirement.
  const terms = version === 1 ? value : value["accepted"];
  const payload = value["payload"];
  if (!isJsonObject(terms) || !isJsonObject(payload)) return undefined;
  const { scheme, network } = terms;
  const authorization = readAuthorization(payload["authorization"]);
  const signature = readSignature(payload["signature"]);
  if (typeof scheme !== "string" || typeof network !== "string") return undefined;
  if (authorization === undefined || signature === undefined) return undefined;
  const accepted = version === 2 ? readAccepted(terms) : undefined;
  if (version === 2 && accepted === undefined) return undefined;
  return { version, scheme, network, authorization, signature, accepted };
}

function readBase64Json(text: string): JsonValue | undefined {
  if (text.length > textLengthMax) return undefined;
  try {
    return readJson(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.fromBase64(text.trim())));
  } catch {
    // Not base64, or not UTF-8: no payment.
    return undefined;
  }
}

function readAuthorization(value: JsonValue | undefined): Authorization | undefined {
  if (!isJsonObject(value)) return undefined;
  const from = readEvmAddress(value["from"]);
  const to = readEvmAddress(value["to"]);
  const amount = readUint(value["value"]);
  const validAfter = readUint(value["validAfter"]);
  const validBefore = readUint(value["validBefore"]);
  const nonce = readHash(value["nonce"]);
  if (from === undefined || to === undefined || amount === undefined) return undefined;
  if (validAfter === undefined || validBefore === undefined || nonce === undefined) return undefined;
  return { from, to, value: amount, validAfter, validBefore, nonce };
}

function readSignature(value: JsonValue | undefined): Uint8Array | undefined {
  const bytes = readHexBytes(value);
  return bytes !== undefined && bytes.length <= signatureBytesMax ? bytes : undefined;
}

function readAccepted(terms: JsonObject): X402Accepted | undefined {
  const amount = readUint(terms["amount"]);
  const asset = readEvmAddress(terms["asset"]);
  const payTo = readEvmAddress(terms["payTo"]);
  return amount === undefined || asset === undefined || payTo === undefined ? undefined : { amount, asset, payTo };
}

/** Decimal text below 2^256; some clients write it as a JSON number. */
function readUint(value: JsonValue | undefined): bigint | undefined {
  const text = typeof value === "number" || typeof value === "bigint" ? value.toString() : value;
  if (typeof text !== "string" || !uintPattern.test(text)) return undefined;
  const number = BigInt(text);
  return number <= uintMax ? number : undefined;
}

// Validation of a payment against the terms, and of a key's signature.
// Source: docs/reference/payment.md#x402; EIP-3009.

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
