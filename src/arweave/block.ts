/**
 * Blocks as nodes send them, of every era: what this program needs from them, and the rest without loss.
 *
 * The era is read from the keys that a block has, never from its height: other chains fork at other heights.
 * Source: docs/reference/formats.md#blocks.
 * @module
 */
import type { JsonObject } from "../lib/json.ts";
import { type BlockHash, type Id, isBlockHash, isId } from "./id.ts";
import {
  bytesField,
  countField,
  exactBytesField,
  integerField,
  listField,
  malformed,
  readFields,
  textField,
} from "./wire.ts";

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
  /** Bytes that this block adds, padding included. */
  blockSize: bigint;
  /** 48 bytes as base64url; "" in the first block and in blocks before 1.6. */
  hashListMerkle: string;
  /** The solution's 32 bytes (of the first eras 48) as base64url; above the difficulty. */
  solution: string;
  difficulty: bigint;
  /** `undefined` in blocks before 1.6. */
  cumulativeDifficulty: bigint | undefined;
  /** Weave offset from which data must be split strictly; `undefined` means nowhere. */
  strictSplitThreshold: bigint | undefined;
  /** Weave offset from which proofs may rebase; `undefined` means nowhere. */
  rebaseThreshold: bigint | undefined;
  /** Every field as on the wire, integers exact. */
  fields: JsonObject;
  /** The JSON as it was read. */
  text: string;
}>;

/** All shapes, oldest first. */
export const blockShapes: readonly BlockShape[] = ["1.0", "2.0", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9"];

/** Most characters of a block's JSON: two proofs with packed and unpacked chunk, and everything else, twice. */
export const blockTextSizeMax = 4 * 2 ** 20;

/** Most transactions of a block; a rule of the chain since 1.8, and no block before it had more. */
export const blockTransactionsMax = 1_000;

/** Digits of an integer below 2^256, the greatest that the chain writes. */
export const integerDigitsMax = 78;

/** The key that came with each shape, newest first. */
const shapeKeys: readonly (readonly [BlockShape, string])[] = [
  ["2.9", "replica_format"],
  ["2.8", "packing_difficulty"],
  ["2.7", "merkle_rebase_support_threshold"],
  ["2.6", "nonce_limiter_info"],
  ["2.5", "strict_data_split_threshold"],
];

const hashSize = 32;
const longHashSize = 48;
const longHashLength = 64;

/** Tells whether a shape is another or came after it. */
export function isShapeSince(shape: BlockShape, since: BlockShape): boolean {
  return blockShapes.indexOf(shape) >= blockShapes.indexOf(since);
}

/**
 * Reads a block's JSON, of any era.
 *
 * @param text - At most `blockTextSizeMax` characters.
 * @throws Failure `malformed_input` with `context.reason`, a sentence.
 */
export function readBlock(text: string): Block {
  const fields = readFields(text, blockTextSizeMax);
  const shape = shapeOf(fields);
  const height = countField(fields, "height");
  bytesField(fields, "hash", longHashSize);
  bytesField(fields, "hash_list_merkle" in fields ? "hash_list_merkle" : "hash", longHashSize);
  return {
    shape,
    height,
    hash: readHash(fields, "indep_hash"),
    previous: height === 0 && fields["previous_block"] === "" ? "" : readHash(fields, "previous_block"),
    timestamp: countField(fields, "timestamp"),
    txs: readIds(fields),
    txRoot: readTxRoot(fields),
    weaveSize: integerField(fields, "weave_size", integerDigitsMax),
    blockSize: integerField(fields, "block_size", integerDigitsMax),
    hashListMerkle: fields["hash_list_merkle"] === undefined ? "" : textField(fields, "hash_list_merkle"),
    solution: textField(fields, "hash"),
    difficulty: integerField(fields, "diff", integerDigitsMax),
    cumulativeDifficulty: optionalInteger(fields, "cumulative_diff"),
    strictSplitThreshold: optionalInteger(fields, "strict_data_split_threshold"),
    rebaseThreshold: optionalInteger(fields, "merkle_rebase_support_threshold"),
    fields,
    text,
  };
}

function shapeOf(fields: JsonObject): BlockShape {
  const found = shapeKeys.find(([, key]) => fields[key] !== undefined);
  if (found !== undefined) return found[0];
  // Since 2.0 account trees are hashed with SHA-384; since 2.4 sizes are text.
  if (textField(fields, "wallet_list").length !== longHashLength) return "1.0";
  return typeof fields["weave_size"] === "string" ? "2.4" : "2.0";
}

function readHash(fields: JsonObject, key: string): BlockHash {
  const hash = textField(fields, key);
  if (!isBlockHash(hash)) throw malformed(`${key} is no block hash`);
  return hash;
}

function readIds(fields: JsonObject): Id[] {
  const ids = listField(fields, "txs", blockTransactionsMax).map((id) => {
    if (typeof id !== "string" || !isId(id)) throw malformed("txs holds something that is no id");
    return id;
  });
  if (new Set(ids).size !== ids.length) throw malformed("txs names a transaction twice");
  return ids;
}

function readTxRoot(fields: JsonObject): string {
  if (fields["tx_root"] === undefined || fields["tx_root"] === "") return "";
  exactBytesField(fields, "tx_root", hashSize);
  return textField(fields, "tx_root");
}

function optionalInteger(fields: JsonObject, key: string): bigint | undefined {
  return fields[key] === undefined ? undefined : integerField(fields, key, integerDigitsMax);
}
