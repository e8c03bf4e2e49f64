/**
 * Receipts of an upload service: the signed promise that an item will be on the chain by a height.
 *
 * What is signed is the deep hash of ["Bundlr", version, id, deadline height, timestamp], all as text, by RSA-PSS with
 * SHA-256 and no salt: the same receipt is signed to the byte whenever it is asked for again.
 * Source: docs/reference/formats.md#receipts.
 * @module
 */
import { decodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { verifyRsaPss } from "../lib/rsa.ts";
import { deepHash } from "./deep-hash.ts";
import type { Id } from "./id.ts";

/** What a receipt promises. */
export type ReceiptTerms = Readonly<{
  id: Id;
  /** Height by which the item is to be on the chain. */
  deadlineHeight: number;
  /** When it was taken, Unix milliseconds. */
  timestamp: number;
}>;

/** The version of receipts whose signature covers the fields above. */
export const receiptVersion = "0.2.0";

/** A modulus of more bytes than this is nobody's. */
const modulusSizeMax = 1_024;

/** The bytes that a receipt's signature covers. */
export function receiptMessage({ id, deadlineHeight, timestamp }: ReceiptTerms): Uint8Array {
  const fields = ["Bundlr", receiptVersion, id, String(deadlineHeight), String(timestamp)];
  return deepHash(fields.map(utf8Bytes));
}

/**
 * Tells whether a receipt was signed by a key.
 *
 * @param publicKey - The modulus, base64url. @param signature - base64url.
 */
export function verifyReceipt(terms: ReceiptTerms, publicKey: string, signature: string): boolean {
  const modulus = decodeBase64url(publicKey);
  const signed = decodeBase64url(signature);
  if (modulus === undefined || signed === undefined || modulus.length > modulusSizeMax) return false;
  return verifyRsaPss(modulus, receiptMessage(terms), signed);
}
