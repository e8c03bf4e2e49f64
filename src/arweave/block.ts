/**
 * Blocks as nodes send them: reading the JSON of every era without loss.
 * @module
 */
import { Failure } from "../failures.ts";
import type { JsonObject } from "../lib/json.ts";
import type { BlockHash, Id } from "./id.ts";

/** The eras whose blocks differ in keys and in how their hash is made, named after the chain's releases. */
export type BlockShape = "1.0" | "2.0" | "2.4" | "2.5" | "2.6" | "2.7" | "2.8" | "2.9";

/** A block, read but not yet verified (`verifyBlock`). */
export type Block = Readonly<{
  shape: BlockShape;
  height: number;
  hash: BlockHash;
  /** "" only for the first block. */
  previous: BlockHash | "";
  /** Unix seconds. */
  timestamp: number;
  /** In the block's own order, which is not the order of the data. */
  txs: readonly Id[];
  /** 32 bytes as base64url; "" where there are no transactions and in blocks before 2.0. */
  txRoot: string;
  /** Bytes of the weave after this block. */
  weaveSize: bigint;
  /** Bytes that this block adds. */
  blockSize: bigint;
  /** "" in blocks before 1.6. */
  hashListMerkle: string;
  cumulativeDifficulty: bigint | undefined;
  difficulty: bigint;
  /** Weave offset from which data must be split strictly; `undefined` means nowhere. */
  strictSplitThreshold: bigint | undefined;
  /** Weave offset from which proofs may rebase; `undefined` means nowhere. */
  rebaseThreshold: bigint | undefined;
  /** Every field as on the wire, integers exact. */
  fields: JsonObject;
  /** The JSON as it was read. */
  text: string;
}>;

/**
 * Reads a block's JSON, of any era.
 *
 * @throws Failure `malformed_input` with `facts.reason`, a sentence.
 */
export function readBlock(text: string): Block {
  throw new Failure("malformed_input", { reason: `a block of ${text.length} characters` });
}
