/**
 * Builds blocks in the format of release 2.9, with valid hash and signature.
 *
 * The tree of transactions, sizes, offsets, the tree of accounts, the links to earlier blocks, the proof of access (a
 * chunk with both paths), block hash and signature follow the rules of the chain. Difficulty, the delay function,
 * packing (none) and retargeting are trivial, because no miners compete.
 *
 * A step of the delay function takes a second on the main net. Here its difficulty is 1, so a step is 25 hashes; the
 * steps of successive blocks continue each other.
 * Source: ArweaveTeam/arweave, ar_block (generate_signed_hash, compute_h1), ar_serialize (block_to_json_struct);
 * ArweaveTeam/arweave, ar_vdf (step_number_to_salt_number, compute).
 * @module
 */
import { createHash } from "node:crypto";
import { type Block, blockHash, blockSignaturePreimage, nextHashListMerkle, readBlock } from "../../arweave/block.ts";
import { nextCumulativeDifficulty } from "../../arweave/block-check.ts";
import { blockHashBytes, type Id } from "../../arweave/id.ts";
import type { Wallet } from "../../arweave/wallet.ts";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, utf8Bytes, writeUnsignedFixed } from "../../lib/bytes.ts";
import { sha256, sha384 } from "../../lib/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue, writeJson } from "../../lib/json.ts";
import { devnetPrice } from "./chain-rules.ts";

/** The chunk of a proof of access. */
export type Recall = Readonly<{
  byte: bigint; // offset of the chunk's first byte in the weave
  chunk: Uint8Array;
  dataPath: Uint8Array;
  txPath: Uint8Array;
}>;

/** The content of a block, beside the fields that follow from the previous block. */
export type BlockDraft = Readonly<{
  previous: Block | undefined; // absent for the first block
  timestamp: number; // Unix seconds
  txs: readonly Id[];
  txRoot: Uint8Array; // 32 bytes; none without transactions
  size: bigint; // bytes that it adds to the weave
  accountsRoot: Uint8Array;
  endowment: bigint; // winston, after this block
  reward: bigint; // winston to the miner
  recall: Recall | undefined; // absent for the first block
}>;

const shape = "2.9";

/** Every hash is above this difficulty. */
const difficulty = 1n;

/** Interval between changes of `last_retarget`. Blocks. */
const retargetBlocks = 10;

const noBytes = new Uint8Array(0);
const zeros32 = new Uint8Array(32);

/**
 * Builds, hashes and signs a block. The same draft and key always give the same block.
 *
 * @param seed - The seed of the chain, and of the delay of the first block.
 */
export function makeBlock(draft: BlockDraft, miner: Wallet, seed: string): Block {
  const unsigned = unsignedFields(draft, miner, seed);
  const signature = encodeBase64url(miner.sign(blockSignaturePreimage(unsigned, shape)));
  const fields: JsonObject = { ...unsigned, signature };
  const hash = blockHash(fields, shape);
  assert(hash !== undefined, "a block since 2.0 has a hash");
  return readBlock(writeJson({ ...fields, indep_hash: hash }));
}

function unsignedFields(draft: BlockDraft, miner: Wallet, seed: string): JsonObject {
  const { previous, timestamp, recall } = draft;
  const height = previous === undefined ? 0 : previous.height + 1;
  const delay = delayFields(previous, seed);
  const chunk = recall?.chunk ?? noBytes;
  const solution = solve(decoded(delay["output"]), decoded(delay["seed"]), miner, chunk);
  const previousDifficulty = previous?.cumulativeDifficulty ?? 0n;
  return {
    ...economyFields(draft),
    replica_format: 0,
    packing_difficulty: 0,
    merkle_rebase_support_threshold: "0",
    chunk_hash: encodeBase64url(sha256(chunk)),
    block_time_history_hash: encodeBase64url(chain(previous, "block_time_history_hash", `${timestamp}`)),
    hash_preimage: encodeBase64url(solution.preimage),
    recall_byte: `${recall?.byte ?? 0n}`,
    previous_solution_hash: previous?.solution ?? encodeBase64url(zeros32),
    partition_number: 0,
    nonce_limiter_info: delay,
    poa2: proof(undefined),
    reward_key: encodeBase64url(miner.owner),
    double_signing_proof: {},
    previous_cumulative_diff: `${previousDifficulty}`,
    packing_2_5_threshold: "0",
    strict_data_split_threshold: "0",
    nonce: encodeBase64url(Uint8Array.of(0)),
    previous_block: previous?.hash ?? "",
    timestamp,
    last_retarget: height % retargetBlocks === 0 ? timestamp : (previous?.fields["last_retarget"] ?? timestamp),
    diff: `${difficulty}`,
    height,
    hash: encodeBase64url(solution.hash),
    txs: draft.txs,
    tx_root: encodeBase64url(draft.txRoot),
    wallet_list: encodeBase64url(draft.accountsRoot),
    reward_addr: miner.address,
    tags: [],
    weave_size: `${(previous?.weaveSize ?? 0n) + draft.size}`,
    block_size: `${draft.size}`,
    cumulative_diff: `${nextCumulativeDifficulty(previousDifficulty, difficulty)}`,
    hash_list_merkle: previous === undefined ? "" : encodeBase64url(hashListOf(previous)),
    poa: proof(recall),
  };
}

function hashListOf({ hashListMerkle, hash, weaveSize, txRoot }: Block): Uint8Array {
  return nextHashListMerkle({
    hashListMerkle: decoded(hashListMerkle),
    hash: blockHashBytes(hash),
    weaveSize,
    txRoot: decoded(txRoot),
  });
}

/** Prices are constant, the endowment only grows, and blocks have no inflation. */
function economyFields({ previous, endowment, reward }: BlockDraft): JsonObject {
  return {
    usd_to_ar_rate: ["1", "10"],
    scheduled_usd_to_ar_rate: ["1", "10"],
    price_per_gib_minute: `${devnetPrice.pricePerGibMinute}`,
    scheduled_price_per_gib_minute: `${devnetPrice.pricePerGibMinute}`,
    reward: `${reward}`,
    reward_pool: `${endowment}`,
    reward_history_hash: encodeBase64url(chain(previous, "reward_history_hash", `${reward}`)),
    debt_supply: "0",
    kryder_plus_rate_multiplier: `${devnetPrice.kryderPlusRateMultiplier}`,
    kryder_plus_rate_multiplier_latch: "0",
    denomination: "1",
    redenomination_height: 0,
  };
}

function delayFields(previous: Block | undefined, seed: string): Readonly<Record<string, JsonValue>> {
  const before = previous?.fields["nonce_limiter_info"];
  const last = isJsonObject(before) ? before : undefined;
  const step = previous === undefined ? 1 : previous.height + 2;
  const previousOutput = last === undefined ? sha256(utf8Bytes(seed)) : decoded(last["output"]);
  const { output, checkpoints } = delayStep(step, previousOutput);
  const seedHash = sha384(utf8Bytes(seed));
  return {
    output: encodeBase64url(output),
    global_step_number: step,
    seed: encodeBase64url(seedHash),
    next_seed: encodeBase64url(seedHash),
    zone_upper_bound: Number(previous?.weaveSize ?? 0n),
    next_zone_upper_bound: Number(previous?.weaveSize ?? 0n),
    prev_output: encodeBase64url(previousOutput),
    last_step_checkpoints: checkpoints.map(encodeBase64url),
    checkpoints: [encodeBase64url(output)],
    vdf_difficulty: "1",
    next_vdf_difficulty: "1",
  };
}

/** The solution for nonce 0 of partition 0; SHA-256 replaces the chain's RandomX, which only slows miners down. */
function solve(output: Uint8Array, seed: Uint8Array, miner: Wallet, chunk: Uint8Array) {
  const address = decoded(miner.address);
  const entropy = sha256(concatBytes([output, zeros32, seed.subarray(0, 32), address]));
  const preimage = sha256(concatBytes([entropy, writeUnsignedFixed(0n, 8), chunk]));
  return { preimage, hash: sha256(concatBytes([entropy, preimage])) };
}

function proof(recall: Recall | undefined): JsonObject {
  return {
    option: "1",
    tx_path: encodeBase64url(recall?.txPath ?? noBytes),
    data_path: encodeBase64url(recall?.dataPath ?? noBytes),
    chunk: encodeBase64url(recall?.chunk ?? noBytes),
  };
}

/** A running hash over a field of all blocks. */
function chain(previous: Block | undefined, field: string, added: string): Uint8Array {
  return sha256(concatBytes([decoded(previous?.fields[field]), utf8Bytes(added)]));
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function decoded(value: JsonValue | undefined): Uint8Array {
  return decodeBase64url(text(value)) ?? noBytes;
}

/** Published hashes of a step. */
const checkpointsPerStep = 25;

export type DelayStep = Readonly<{
  output: Uint8Array; // 32 bytes, the last checkpoint
  checkpoints: readonly Uint8Array[]; // newest first
}>;

/**
 * Computes a step from the previous step.
 *
 * @param step - Number of the step to compute, 1 or more.
 * @param previousOutput - 32 bytes.
 */
export function delayStep(step: number, previousOutput: Uint8Array): DelayStep {
  const firstSalt = step === 1 ? 0 : (step - 2) * checkpointsPerStep + 1;
  const checkpoints: Uint8Array[] = [];
  let output = previousOutput;
  for (let index = 0; index < checkpointsPerStep; index += 1) {
    const salt = writeUnsignedFixed(BigInt(firstSalt + index), 32);
    output = createHash("sha256").update(salt).update(output).digest();
    checkpoints.unshift(output);
  }
  return { output, checkpoints };
}
