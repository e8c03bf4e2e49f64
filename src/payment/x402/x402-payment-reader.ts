/**
 * Payments from x402 clients: version 1 in `X-PAYMENT`, version 2 in `PAYMENT-SIGNATURE`, each base64 of JSON.
 * Source: docs/reference/payment.md#x402; x402 specification, scheme "exact" on EVM chains.
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue, readJson } from "../../lib/json.ts";
import type { UserAddress } from "../addresses.ts";
import type { Authorization } from "../evm/authorization.ts";
import { readEvmAddress, readHash, readHexBytes } from "../evm/evm-values.ts";

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
