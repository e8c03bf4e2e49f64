/**
 * Payments by the x402 protocol: what is asked for, what came, and the one step that settles it. Types only.
 *
 * A payment is an authorization to move dollars, signed by the payer (EIP-3009). Settling moves them once and credits
 * the payer's account once, however often it is sent; a service that sells something for the payment reserves its price
 * from that account afterwards, so that a rejection leaves the payer the credits.
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
  /** Whatever an amount of the asset buys, `x402AmountMin` or more of its smallest unit. */
  | Readonly<{ kind: "dollars"; amount: bigint }>;

/**
 * A price. It is held for as long as a payment may take, so that the one who signs it is not rejected for a new one.
 */
export type X402Quote = Readonly<{
  want: X402Want;
  /** The price, smallest unit of the asset; at least `x402AmountMin`. */
  amount: bigint;
  /** Credits for the payment, 1 or more. A payment of `amount` credits at least this. */
  winc: bigint;
}>;

/** Under which terms everything is paid here. */
export type X402Terms = Readonly<{
  network: X402Network;
  payTo: UserAddress;
  /** Longest time from quote to settlement. Seconds. */
  timeoutSeconds: number;
}>;

/** The purpose of a payment: `topUpPurpose`, or an `uploadPurpose`. The first purpose binds it. */
export type X402Purpose = string & { readonly __brand: "X402Purpose" };

/** A payment and what it is for. */
export type X402Request = Readonly<{
  payment: X402Payment;
  /** The purchase. Payments for quotes that are still held are accepted at their price. */
  want: X402Want;
  purpose: X402Purpose;
  /** Address of what is paid for, absolute; for the facilitator's eyes. */
  resource: string;
}>;

/** A payment that has moved the dollars, and credited the payer. */
export type X402Settled = Readonly<{
  /** Whose account was credited. */
  payer: UserAddress;
  /** The credits: the whole payment, at the quote's price. */
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
   * Says what something costs. Writes nothing.
   * @throws Failure `pricing_oracle_unavailable`, `fiat_oracle_unavailable`; `invalid_quantity` when it costs more than
   *   can be paid.
   */
  quote: (want: X402Want, signal: AbortSignal) => Promise<X402Quote>;
  /**
   * Settles a payment and credits its payer, once ever; the same payment for the same purpose gets the same response
   * again.
   *
   * Once money may move, the signal only ends the caller's wait: the payment is followed until the chain has decided.
   * @throws Failure `invalid_signature` for a signature that is not the payer's; `settlement_failed` {reason} when the
   *   payment is not what was asked for, or did not and will not settle; `settlement_unknown` when that is not known
   *   yet, also while another request settles it; those of `quote`; `database_unavailable`, `busy`.
   */
  settle: (request: X402Request, signal: AbortSignal) => Promise<X402Settled>;
}>;

/** The least that anything costs, smallest unit of the asset: a tenth of a cent. */
export const x402AmountMin = 1_000n;

/** A payment for credits alone. */
export const topUpPurpose = "top-up" as X402Purpose;

/**
 * A payment for an upload, whose price the upload service reserves from the payer's account after `settle`.
 * @param id - Names the upload: equal for a repeat of it, different for all others. At most 200 characters.
 */
export function uploadPurpose(id: string): X402Purpose {
  return `upload:${id}` as X402Purpose;
}

/**
 * A payment for reading beyond the limits.
 * @param client - Names the reader: 64 hexadecimal digits.
 */
export function readingPurpose(client: string): X402Purpose {
  return `reading:${client}` as X402Purpose;
}

// The payment requirement in both versions of the protocol.
// Source: docs/reference/payment.md#x402.

/** The resource as described to the payer. */
export type X402Resource = Readonly<{
  /** Absolute, or relative where no address of ours is known. */
  url: string;
  description: string;
  mimeType: string;
}>;

/** Version 1, which is also what the specification shows. */
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

// The chains and dollars that x402 payments are made in, with what their signatures are bound to.
//
// Source: CAIP-2 (names of chains); Circle's list of USDC contracts; each contract's own `name()` and `version()`,
// which are what its signatures say.

/** A coin, as its signatures name it (EIP-712). */
type X402Asset = Readonly<{
  /** The contract, canonical. */
  address: UserAddress;
  name: string;
  version: string;
  /** By whose price it is sold. */
  token: Token;
}>;

/** A chain and the coin that is taken on it. */
export type X402Network = Readonly<{
  chainId: bigint;
  /** CAIP-2: `eip155:8453`. What version 2 says, and what the ledger keeps. */
  name: string;
  /** The network's name in version 1: `base`; its CAIP-2 name where version 1 has none. */
  nameV1: string;
  asset: X402Asset;
}>;

/** An operator's coin in place of the known one. */
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
 * Reads a network.
 *
 * @param text - A name of version 1, or a CAIP-2 name of an EVM chain.
 * @param set - Takes the place of what is known of the network's coin; an unknown network needs all three.
 * @returns The network, or what is wrong with it.
 */
export function readX402Network(text: string, set: AssetSettings): X402Network | Readonly<{ fault: string }> {
  const chainText = caipPattern.exec(text)?.[1];
  const known = knownNetworks.find(({ chainId, nameV1 }) => nameV1 === text || String(chainId) === chainText);
  const chainId = known?.chainId ?? (chainText === undefined ? undefined : BigInt(chainText));
  if (chainId === undefined) return { fault: 'X402_NETWORK must be "base", "base-sepolia" or like "eip155:8453"' };
  const addressText = set.address ?? known?.asset.address;
  const name = set.name ?? known?.asset.name;
  const version = set.version ?? known?.asset.version;
  if (addressText === undefined || name === undefined || version === undefined)
    return {
      fault: "X402_NETWORK is not known: set X402_ASSET_ADDRESS, X402_ASSET_NAME, X402_ASSET_VERSION",
    };
  const address = readAddress(addressText, "ethereum")?.address;
  if (address === undefined) return { fault: "X402_ASSET_ADDRESS must be an address of ethereum" };
  const caip = `eip155:${chainId}`;
  const asset = { address, name, version, token: known?.token ?? "base-usdc" };
  return { chainId, name: caip, nameV1: known?.nameV1 ?? caip, asset };
}

// Payments as x402 clients send them: version 1 in `X-PAYMENT`, version 2 in `PAYMENT-SIGNATURE`, each base64 of JSON.
//
// Only what the text says is read here; whether it is what was asked for, and whose signature it is, is for check.ts.
// Source: docs/reference/payment.md#x402; x402 specification, scheme "exact" on EVM chains.

/** A payment as it was sent. */
export type X402Payment = Readonly<{
  version: 1 | 2;
  scheme: string;
  /** As the version names it. */
  network: string;
  authorization: Authorization;
  /** 65 bytes of a key, any of a smart wallet. */
  signature: Uint8Array;
  /** Version 2: what the payer says that it was asked for. */
  accepted: X402Accepted | undefined;
}>;

/** The part of version 2 in which a payer repeats what it was asked for. */
export type X402Accepted = Readonly<{ amount: bigint; asset: UserAddress; payTo: UserAddress }>;

/** Longer headers are not looked into; honest ones have about 1,000 characters. */
const textLengthMax = 8_192;

/** Longest signature; a smart wallet's signature may wrap another. Bytes. */
const signatureBytesMax = 2_048;

const uintPattern = /^\d{1,78}$/;
const uintMax = 2n ** 256n - 1n;

/**
 * Reads a payment.
 *
 * @param version - By the header that carried it.
 * @returns `undefined` for text that is not an EIP-3009 payment of this version.
 */
export function readX402Payment(text: string, version: 1 | 2): X402Payment | undefined {
  const value = readBase64Json(text);
  if (!isJsonObject(value) || value["x402Version"] !== version) return undefined;
  // Version 1 says at the top what version 2 says in the requirement that it repeats.
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

// Whether a payment is what was asked for, as far as its own words tell, and whose signature it has.
// Source: docs/reference/payment.md#x402; EIP-3009.

/**
 * A payment must have so long to be carried out when it comes, or it is over before a block has it. Seconds.
 * Facilitators ask for six.
 */
const timeLeftMin = 10n;

/**
 * And it must be over some day: until then it is watched. A payer who is asked for five minutes has no reason for
 * more than a day. Seconds.
 */
const timeLeftMax = 86_400n;

/** Clocks differ by seconds between payers, chains and us. */
const clockSlack = 60n;

/** The EIP-712 domain of the coin. */
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
