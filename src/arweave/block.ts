/**
 * Parses blocks of every era, keeps all their fields, and computes block hashes and the messages that producers sign.
 *
 * The keys of a block determine its era, not its height: other chains fork at other heights.
 *
 * Until 2.5 the block hash is a deep hash of deep hashes. Since 2.6 it is SHA-384 over the SHA-256 of all fields and
 * the signature; the fields are in a fixed order, each after its size. For blocks before 2.0 the formula is unknown.
 * Source: docs/reference/formats.md#blocks; docs/reference/formats.md#block-hash; checked on real blocks of every
 * shape from 2.0 to 2.5, and on one of 2.9.
 * @module
 */
import { concatBytes, readUnsigned, utf8Bytes, withSize, writeUnsigned, writeUnsignedFixed } from "../lib/bytes.ts";
import { sha256, sha384 } from "../lib/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { type DeepHashChunk, deepHash } from "./deep-hash.ts";
import { type BlockHash, blockHashFromBytes, type Id, isBlockHash, isId } from "./id.ts";
import { pathSizeMax } from "./merkle.ts";
import {
  bytesField,
  countField,
  exactBytesField,
  integerField,
  listField,
  malformed,
  objectField,
  readBytes,
  readFields,
  readInteger,
  textField,
} from "./wire.ts";

/** Eras of blocks, named after the chain's releases. They differ in keys and in the formula of the hash. */
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
  /** All fields of the JSON, integers exact. */
  fields: JsonObject;
  /** The original JSON. */
  text: string;
}>;

/** All shapes, oldest first. */
export const blockShapes: readonly BlockShape[] = ["1.0", "2.0", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9"];

/** Most characters of a block's JSON: twice two proofs with packed and unpacked chunks, and all other fields. */
export const blockTextSizeMax = 4 * 2 ** 20;

/** Most transactions of a block; a rule of the chain since 1.8, and no block before it had more. */
export const blockTransactionsMax = 1_000;

/** Digits of an integer below 2^256, the limit of the chain's integers. */
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

/** Whether a shape is `since` or a later one. */
export function isShapeSince(shape: BlockShape, since: BlockShape): boolean {
  return blockShapes.indexOf(shape) >= blockShapes.indexOf(since);
}

/**
 * Reads a block's JSON, of any era.
 *
 * @param text - At most `blockTextSizeMax` characters.
 * @throws Failure `malformed_input` with `context.reason`.
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
  if (!isBlockHash(hash)) throw malformed(`${key} is not a valid block hash`);
  return hash;
}

function readIds(fields: JsonObject): Id[] {
  const ids = listField(fields, "txs", blockTransactionsMax).map((id) => {
    if (typeof id !== "string" || !isId(id)) throw malformed("txs contains an invalid id");
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

/** Most bytes of a field without a smaller limit. */
const fieldSizeMax = 4_096;

const chunkSizeMax = 262_144;
const listCountMax = 65_535;
const noBytes = new Uint8Array(0);

/**
 * Computes the hash of a block from its fields; `indep_hash` is ignored.
 *
 * @param fields - Of the JSON. `signature` is required since 2.6, `poa` until 2.5.
 * @returns `undefined` for shape 1.0: its formula is unknown.
 * @throws Failure `malformed_input` when a hashed field is missing or invalid.
 */
export function blockHash(fields: JsonObject, shape: BlockShape): BlockHash | undefined {
  if (shape === "1.0") return undefined;
  if (!isShapeSince(shape, "2.6")) return blockHashFromBytes(firstHash(fields, shape));
  const signature = bytesField(fields, "signature", fieldSizeMax);
  return blockHashFromBytes(sha384(concatBytes([signedHash(fields, shape), signature])));
}

/**
 * The SHA-256 of all fields of a block since 2.6, except its signature and hash.
 *
 * @throws Failure `malformed_input` when a field is missing or invalid.
 */
export function signedHash(fields: JsonObject, shape: BlockShape): Uint8Array {
  const parts = [...headParts(fields), ...nonceLimiterParts(fields), ...priceParts(fields, shape)];
  if (isShapeSince(shape, "2.7")) parts.push(...proofParts(fields));
  if (isShapeSince(shape, "2.8")) {
    parts.push(fixedInteger(fields, "packing_difficulty", 1));
    parts.push(
      optionalSizedBytes(fields, "unpacked_chunk_hash", 1),
      optionalSizedBytes(fields, "unpacked_chunk2_hash", 1),
    );
  }
  if (isShapeSince(shape, "2.9")) parts.push(fixedInteger(fields, "replica_format", 1));
  return sha256(concatBytes(parts));
}

/**
 * The message that the producer of a block since 2.6 signs. Signing hashes it once more (SHA-256).
 *
 * @throws Failure `malformed_input` when a field is missing or invalid.
 */
export function blockSignaturePreimage(fields: JsonObject, shape: BlockShape): Uint8Array {
  return concatBytes([
    isShapeSince(shape, "2.9") ? new Uint8Array(32) : noBytes,
    withSize(writeUnsigned(integerField(fields, "cumulative_diff", integerDigitsMax)), 2),
    withSize(writeUnsigned(integerField(fields, "previous_cumulative_diff", integerDigitsMax)), 2),
    bytesField(fields, "previous_solution_hash", fieldSizeMax),
    signedHash(fields, shape),
  ]);
}

/** The `hash_list_merkle` of the next block: a running hash of (hash, weave size, tx root). */
export function nextHashListMerkle(previous: {
  hashListMerkle: Uint8Array;
  hash: Uint8Array;
  weaveSize: bigint;
  txRoot: Uint8Array;
}): Uint8Array {
  const entry = deepHash([previous.hash, utf8Bytes(previous.weaveSize.toString()), previous.txRoot]);
  return sha384(concatBytes([previous.hashListMerkle, entry]));
}

/** The formula of 2.0 to 2.5. */
function firstHash(fields: JsonObject, shape: BlockShape): Uint8Array {
  const segment = deepHash([
    deepHash(baseOf(fields, shape)),
    ...["timestamp", "last_retarget", "diff", "cumulative_diff", "reward_pool"].map((key) => decimal(fields, key)),
    bytesField(fields, "wallet_list", fieldSizeMax),
    bytesField(fields, "hash_list_merkle", fieldSizeMax),
  ]);
  const solved = [segment, bytesField(fields, "hash", fieldSizeMax), bytesField(fields, "nonce", fieldSizeMax)];
  return deepHash(isShapeSince(shape, "2.4") ? [...solved, proofOf(fields)] : solved);
}

function baseOf(fields: JsonObject, shape: BlockShape): DeepHashChunk[] {
  const base: DeepHashChunk[] = [
    decimal(fields, "height"),
    bytesField(fields, "previous_block", fieldSizeMax),
    bytesField(fields, "tx_root", fieldSizeMax),
    listField(fields, "txs", listCountMax).map((id) => readBytes(id, "an id in txs", fieldSizeMax)),
    decimal(fields, "block_size"),
    decimal(fields, "weave_size"),
    fields["reward_addr"] === "unclaimed" ? utf8Bytes("unclaimed") : bytesField(fields, "reward_addr", fieldSizeMax),
    listField(fields, "tags", listCountMax).map(tagChunk),
  ];
  if (!isShapeSince(shape, "2.4")) return [...base, proofOf(fields)];
  if (!isShapeSince(shape, "2.5")) return base;
  const rates = [...rateOf(fields, "usd_to_ar_rate"), ...rateOf(fields, "scheduled_usd_to_ar_rate")];
  return [
    ...rates.map((part) => utf8Bytes(part.toString())),
    decimal(fields, "packing_2_5_threshold"),
    decimal(fields, "strict_data_split_threshold"),
    ...base,
  ];
}

/** Tags of a block are names and values until 2.4, and bare bytes since. */
function tagChunk(tag: JsonValue): DeepHashChunk {
  if (!isJsonObject(tag)) return readBytes(tag, "a tag", fieldSizeMax);
  return [bytesField(tag, "name", fieldSizeMax), bytesField(tag, "value", fieldSizeMax)];
}

function proofOf(fields: JsonObject): Uint8Array[] {
  const proof = objectField(fields, "poa");
  return [
    decimal(proof, "option"),
    bytesField(proof, "tx_path", pathSizeMax),
    bytesField(proof, "data_path", pathSizeMax),
    bytesField(proof, "chunk", chunkSizeMax),
  ];
}

function headParts(fields: JsonObject): Uint8Array[] {
  const rates = [...rateOf(fields, "usd_to_ar_rate"), ...rateOf(fields, "scheduled_usd_to_ar_rate")];
  const isUnclaimed = fields["reward_addr"] === "unclaimed";
  return [
    sizedBytes(fields, "previous_block", 1),
    sizedInteger(fields, "timestamp", 1),
    withSize(nonceOf(fields), 2),
    sizedInteger(fields, "height", 1),
    sizedInteger(fields, "diff", 2),
    sizedInteger(fields, "cumulative_diff", 2),
    sizedInteger(fields, "last_retarget", 1),
    sizedBytes(fields, "hash", 1),
    sizedInteger(fields, "block_size", 2),
    sizedInteger(fields, "weave_size", 2),
    isUnclaimed ? withSize(noBytes, 1) : sizedBytes(fields, "reward_addr", 1),
    sizedBytes(fields, "tx_root", 1),
    sizedBytes(fields, "wallet_list", 1),
    sizedBytes(fields, "hash_list_merkle", 1),
    sizedInteger(fields, "reward_pool", 1),
    sizedInteger(fields, "packing_2_5_threshold", 1),
    sizedInteger(fields, "strict_data_split_threshold", 1),
    ...rates.map((part) => withSize(writeUnsigned(part), 1)),
    reversedList(fields, "tags", 2),
    reversedList(fields, "txs", 1),
    sizedInteger(fields, "reward", 1),
    optionalSizedInteger(fields, "recall_byte", 2),
    sizedBytes(fields, "hash_preimage", 1),
    optionalSizedInteger(fields, "recall_byte2", 2),
    optionalSizedBytes(fields, "reward_key", 2),
    sizedInteger(fields, "partition_number", 1),
  ];
}

/** Since 2.6 the nonce is a number in the fewest bytes. */
function nonceOf(fields: JsonObject): Uint8Array {
  const nonce = bytesField(fields, "nonce", fieldSizeMax);
  const fewest = writeUnsigned(readUnsigned(nonce));
  if (fewest.length !== nonce.length) throw malformed("nonce is not written in the fewest bytes");
  return nonce;
}

function nonceLimiterParts(fields: JsonObject): Uint8Array[] {
  const info = objectField(fields, "nonce_limiter_info");
  return [
    exactBytesField(info, "output", 32),
    fixedInteger(info, "global_step_number", 8),
    exactBytesField(info, "seed", 48),
    exactBytesField(info, "next_seed", 48),
    fixedInteger(info, "zone_upper_bound", 32),
    fixedInteger(info, "next_zone_upper_bound", 32),
    sizedBytes(info, "prev_output", 1),
    ...joinedList(info, "checkpoints"),
    ...joinedList(info, "last_step_checkpoints"),
  ];
}

function priceParts(fields: JsonObject, shape: BlockShape): Uint8Array[] {
  return [
    sizedBytes(fields, "previous_solution_hash", 1),
    sizedInteger(fields, "price_per_gib_minute", 1),
    sizedInteger(fields, "scheduled_price_per_gib_minute", 1),
    exactBytesField(fields, "reward_history_hash", 32),
    sizedInteger(fields, "debt_supply", 1),
    fixedInteger(fields, "kryder_plus_rate_multiplier", 3),
    fixedInteger(fields, "kryder_plus_rate_multiplier_latch", 1),
    fixedInteger(fields, "denomination", 3),
    sizedInteger(fields, "redenomination_height", 1),
    ...doubleSigningParts(fields, shape),
    sizedInteger(fields, "previous_cumulative_diff", 2),
  ];
}

/** The proof that a producer signed twice, usually absent. Before 2.9 its keys had one size. */
function doubleSigningParts(fields: JsonObject, shape: BlockShape): Uint8Array[] {
  const proof = objectField(fields, "double_signing_proof");
  if (Object.keys(proof).length === 0) return [Uint8Array.of(0)];
  const key = (name: string) =>
    isShapeSince(shape, "2.9") ? sizedBytes(proof, name, 2) : exactBytesField(proof, name, 512);
  const half = (number: 1 | 2) => [
    key(`sig${number}`),
    sizedInteger(proof, `cdiff${number}`, 2),
    sizedInteger(proof, `prev_cdiff${number}`, 2),
    exactBytesField(proof, `preimage${number}`, 64),
  ];
  return [Uint8Array.of(1), key("pub_key"), ...half(1), ...half(2)];
}

function proofParts(fields: JsonObject): Uint8Array[] {
  const first = objectField(fields, "poa");
  const second = objectField(fields, "poa2");
  const info = objectField(fields, "nonce_limiter_info");
  return [
    sizedInteger(fields, "merkle_rebase_support_threshold", 2),
    sizedBytes(first, "data_path", 3),
    sizedBytes(first, "tx_path", 3),
    sizedBytes(second, "data_path", 3),
    sizedBytes(second, "tx_path", 3),
    exactBytesField(fields, "chunk_hash", 32),
    optionalSizedBytes(fields, "chunk2_hash", 1),
    exactBytesField(fields, "block_time_history_hash", 32),
    sizedInteger(info, "vdf_difficulty", 1),
    sizedInteger(info, "next_vdf_difficulty", 1),
  ];
}

function sizedBytes(fields: JsonObject, key: string, width: number): Uint8Array {
  return withSize(bytesField(fields, key, width === 3 ? pathSizeMax : Math.min(256 ** width - 1, fieldSizeMax)), width);
}

function sizedInteger(fields: JsonObject, key: string, width: number): Uint8Array {
  return withSize(writeUnsigned(integerField(fields, key, integerDigitsMax)), width);
}

/** An absent field counts as one of no bytes. */
function optionalSizedBytes(fields: JsonObject, key: string, width: number): Uint8Array {
  return fields[key] === undefined ? withSize(noBytes, width) : sizedBytes(fields, key, width);
}

function optionalSizedInteger(fields: JsonObject, key: string, width: number): Uint8Array {
  return fields[key] === undefined ? withSize(noBytes, width) : sizedInteger(fields, key, width);
}

function fixedInteger(fields: JsonObject, key: string, width: number): Uint8Array {
  const value = integerField(fields, key, integerDigitsMax);
  if (value >= 256n ** BigInt(width)) throw malformed(`${key} does not fit into ${width} bytes`);
  return writeUnsignedFixed(value, width);
}

/** The hash covers lists in reverse order, as the reference node writes them. */
function reversedList(fields: JsonObject, key: string, width: number): Uint8Array {
  const items = listField(fields, key, listCountMax).map((item) => readBytes(item, key, 256 ** width - 1));
  const parts = items.reverse().map((item) => withSize(item, width));
  return concatBytes([writeUnsignedFixed(BigInt(items.length), 2), ...parts]);
}

function joinedList(fields: JsonObject, key: string): Uint8Array[] {
  const items = listField(fields, key, listCountMax).map((item) => readBytes(item, key, fieldSizeMax));
  return [writeUnsignedFixed(BigInt(items.length), 2), ...items];
}

function rateOf(fields: JsonObject, key: string): [bigint, bigint] {
  const rate = listField(fields, key, 2);
  return [readInteger(rate[0], key, integerDigitsMax), readInteger(rate[1], key, integerDigitsMax)];
}

function decimal(fields: JsonObject, key: string): Uint8Array {
  return utf8Bytes(integerField(fields, key, integerDigitsMax).toString());
}
