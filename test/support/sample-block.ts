/**
 * Blocks of every shape since 2.6, made up but sound: hashed, signed and linked as the chain does it.
 * @module
 */
import {
  type Block,
  type BlockShape,
  blockHash,
  blockSignaturePreimage,
  isShapeSince,
  nextHashListMerkle,
  readBlock,
} from "../../src/arweave/block.ts";
import { nextCumulativeDifficulty } from "../../src/arweave/block-check.ts";
import { blockHashBytes, type Id } from "../../src/arweave/id.ts";
import type { Wallet } from "../../src/arweave/wallet.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { type JsonObject, writeJson } from "../../src/lib/json.ts";

/** What a sample is about; everything else is made up. */
export type Sample = Readonly<{
  shape: BlockShape;
  wallet: Wallet;
  previous?: Block;
  txs?: readonly Id[];
  txRoot?: Uint8Array;
  blockSize?: bigint;
  /** Fields to put in or replace before hashing and signing. */
  change?: JsonObject;
}>;

/** Bytes of a value, so that fields differ. */
export function fill(value: number, size: number): string {
  return encodeBase64url(new Uint8Array(size).fill(value));
}

/** Makes a block. */
export function makeSample(sample: Sample): Block {
  const { shape, wallet } = sample;
  const unsigned = { ...unsignedFields(sample), ...sample.change };
  const signature = encodeBase64url(wallet.sign(blockSignaturePreimage(unsigned, shape)));
  const fields = { ...unsigned, signature };
  return readBlock(writeJson({ ...fields, indep_hash: blockHash(fields, shape) ?? "" }));
}

function unsignedFields({ shape, wallet, previous, txs, txRoot, blockSize }: Sample): JsonObject {
  const height = (previous?.height ?? 99) + 1;
  return {
    ...(isShapeSince(shape, "2.9") ? { replica_format: 1 } : {}),
    ...(isShapeSince(shape, "2.8") ? { packing_difficulty: 10, unpacked_chunk_hash: hashOf("unpacked") } : {}),
    ...(isShapeSince(shape, "2.7") ? sinceRebase() : {}),
    hash_preimage: fill(1, 32),
    recall_byte: "123456789012345678",
    reward: "159360839243",
    previous_solution_hash: previous?.solution ?? fill(2, 32),
    partition_number: 93,
    nonce_limiter_info: nonceLimiter(shape),
    poa: proof(shape, "chunk", "unpacked"),
    poa2: proof(shape, "", ""),
    reward_key: encodeBase64url(wallet.owner),
    price_per_gib_minute: "4897",
    scheduled_price_per_gib_minute: "4893",
    reward_history_hash: fill(5, 32),
    debt_supply: "0",
    kryder_plus_rate_multiplier: "1",
    kryder_plus_rate_multiplier_latch: "0",
    denomination: "1",
    redenomination_height: 0,
    double_signing_proof: {},
    previous_cumulative_diff: `${previous?.cumulativeDifficulty ?? 7n}`,
    usd_to_ar_rate: ["1", "10"],
    scheduled_usd_to_ar_rate: ["1", "11"],
    packing_2_5_threshold: "0",
    strict_data_split_threshold: "0",
    nonce: "HA",
    previous_block: previous?.hash ?? fill(6, 48),
    timestamp: 1_700_000_000 + height,
    last_retarget: 1_700_000_000,
    diff: "115792088820665202135397961725546662584087971921591024597647798129341423615464",
    height,
    hash: encodeBase64url(new Uint8Array(32).fill(255).with(31, height & 255)),
    txs: txs ?? [],
    tx_root: encodeBase64url(txRoot ?? new Uint8Array(0)),
    wallet_list: fill(7, 48),
    reward_addr: wallet.address,
    tags: [fill(8, 3), fill(9, 2)],
    reward_pool: "345319764723026068",
    weave_size: `${(previous?.weaveSize ?? 262_144n) + (blockSize ?? 0n)}`,
    block_size: `${blockSize ?? 0n}`,
    cumulative_diff: `${nextCumulativeDifficulty(previous?.cumulativeDifficulty ?? 7n, difficulty)}`,
    hash_list_merkle: previous === undefined ? fill(10, 48) : encodeBase64url(listOf(previous)),
  };
}

const difficulty = 115792088820665202135397961725546662584087971921591024597647798129341423615464n;

function sinceRebase(): JsonObject {
  return {
    merkle_rebase_support_threshold: "0",
    chunk_hash: hashOf("chunk"),
    block_time_history_hash: fill(4, 32),
  };
}

function nonceLimiter(shape: BlockShape): JsonObject {
  return {
    output: fill(11, 32),
    global_step_number: 111_477_478,
    seed: fill(12, 48),
    next_seed: fill(13, 48),
    zone_upper_bound: 389_365_502_091_510,
    next_zone_upper_bound: 389_365_534_859_510,
    prev_output: fill(14, 32),
    last_step_checkpoints: [fill(15, 32), fill(16, 32)],
    checkpoints: [fill(17, 32)],
    ...(isShapeSince(shape, "2.7") ? { vdf_difficulty: "1111578", next_vdf_difficulty: "1111579" } : {}),
  };
}

function proof(shape: BlockShape, chunk: string, unpacked: string): JsonObject {
  const isUsed = chunk !== "";
  return {
    option: "1",
    tx_path: isUsed ? fill(18, 160) : "",
    data_path: isUsed ? fill(19, 64) : "",
    chunk: encodeBase64url(Buffer.from(chunk)),
    ...(isShapeSince(shape, "2.8") ? { unpacked_chunk: encodeBase64url(Buffer.from(unpacked)) } : {}),
  };
}

function hashOf(text: string): string {
  return encodeBase64url(sha256(Buffer.from(text)));
}

function listOf(previous: Block): Uint8Array {
  return nextHashListMerkle({
    hashListMerkle: new Uint8Array(Buffer.from(previous.hashListMerkle, "base64url")),
    hash: blockHashBytes(previous.hash),
    weaveSize: previous.weaveSize,
    txRoot: new Uint8Array(Buffer.from(previous.txRoot, "base64url")),
  });
}
