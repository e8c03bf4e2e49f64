/**
 * What is wrong with a receipt, in words.
 * @module
 */
import { readId } from "../arweave/id.ts";
import { type ReceiptTerms, receiptVersion, verifyReceipt } from "../arweave/receipt.ts";
import type { JsonObject } from "../lib/json.ts";

/** Why a receipt is not good, or `undefined`: its fields, and the signature over them by the key that it names. */
export function receiptFault(receipt: JsonObject): string | undefined {
  const { version, public: publicKey, signature } = receipt;
  if (version === undefined) return "it is no receipt: it has no version";
  if (version !== receiptVersion) return `its version is not ${receiptVersion}`;
  const terms = termsOf(receipt);
  if (terms === undefined) return "its id, timestamp or deadlineHeight is missing";
  if (typeof publicKey !== "string" || typeof signature !== "string") return "its key or signature is missing";
  return verifyReceipt(terms, publicKey, signature) ? undefined : "its signature is not that of its key";
}

function termsOf({ id, timestamp, deadlineHeight }: JsonObject): ReceiptTerms | undefined {
  const known = typeof id === "string" ? readId(id) : undefined;
  if (known === undefined || !isWhole(timestamp) || !isWhole(deadlineHeight)) return undefined;
  return { id: known, timestamp, deadlineHeight };
}

/** Also the last millisecond that a date can have. */
const wholeMax = 8_640_000_000_000_000;

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= wholeMax;
}
