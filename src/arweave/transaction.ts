/**
 * Transactions as nodes send them: reading their JSON, and what a reader may take as given afterwards.
 * @module
 */
import { Failure } from "../failures.ts";
import type { Address, Id } from "./id.ts";
import type { RawTag, Tag } from "./tags.ts";
import type { Winston } from "./winston.ts";

/** A transaction, read but not yet verified (`verifyTransaction`). Texts are canonical base64url unless said. */
export type Transaction = Readonly<{
  format: 1 | 2;
  id: Id;
  /** The anchor: a transaction id, a block hash, or "". */
  lastTx: string;
  /** The public key; for ECDSA the 33 bytes recovered from the signature. */
  owner: string;
  ownerAddress: Address;
  signatureType: "rsa" | "ecdsa";
  tags: readonly Tag[];
  rawTags: readonly RawTag[];
  /** The recipient's address, or "". */
  target: string;
  quantity: Winston;
  reward: Winston;
  /** Bytes of data; of format 1 as the data is, not as the JSON says. */
  dataSize: number;
  /** "" when there is no data, and always for format 1 (see `treeRootOf`). */
  dataRoot: string;
  /** The data itself: always there for format 1; for format 2 only in posts that carry it, else "". */
  data: string;
  signature: string;
  /** Decimal; "" when absent, which means 0. */
  denomination: string;
  /** The JSON as it was read. */
  text: string;
}>;

/**
 * Reads a transaction's JSON.
 *
 * @throws Failure `malformed_input` with `facts.reason`, a sentence.
 */
export function readTransaction(text: string): Transaction {
  throw new Failure("malformed_input", { reason: `a transaction of ${text.length} characters` });
}
