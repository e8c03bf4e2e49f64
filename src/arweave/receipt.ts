/**
 * Receipts of an upload service: the signed promise that an item will be on the chain by a height.
 *
 * The signature covers the deep hash of ["Bundlr", version, id, deadline height, timestamp], all as text. It is RSA-PSS
 * with SHA-256 and no salt, so a receipt always has the same signature.
 * Source: docs/reference/formats.md#receipts.
 * @module
 */
import { decodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { verifyRsaPss } from "../lib/rsa.ts";
import { deepHash } from "./deep-hash.ts";
import type { Id } from "./id.ts";

/** The signed fields of a receipt. */
export type ReceiptTerms = Readonly<{
  id: Id;
  /** Height by which the item is to be on the chain. */
  deadlineHeight: number;
  /** When the item was accepted, Unix milliseconds. */
  timestamp: number;
}>;

/** The version of receipts that sign these fields. */
export const receiptVersion = "0.2.0";

/** Most bytes of a modulus. */
const modulusSizeMax = 1_024;

/** The bytes that a receipt's signature covers. */
export function receiptMessage({ id, deadlineHeight, timestamp }: ReceiptTerms): Uint8Array {
  const fields = ["Bundlr", receiptVersion, id, String(deadlineHeight), String(timestamp)];
  return deepHash(fields.map(utf8Bytes));
}

/**
 * Whether a key signed a receipt.
 *
 * @param publicKey - The modulus, base64url. @param signature - base64url.
 */
export function verifyReceipt(terms: ReceiptTerms, publicKey: string, signature: string): boolean {
  const modulus = decodeBase64url(publicKey);
  const signed = decodeBase64url(signature);
  if (modulus === undefined || signed === undefined || modulus.length > modulusSizeMax) return false;
  return verifyRsaPss(modulus, receiptMessage(terms), signed);
}
