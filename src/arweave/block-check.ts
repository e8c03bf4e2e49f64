/**
 * Verification of a block: its hash, its producer's signature, its link to the previous block, the layout of its data.
 * The verdict lists checks that need more than block and transactions as unchecked: proof of work beyond the
 * threshold, accounts, prices, the steps of the clock.
 * Source: docs/reference/formats.md#blocks.
 * @module
 */
import { Failure } from "../failures.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { equalBytes, readUnsigned } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { verifyRsaPss } from "../lib/rsa.ts";
import { compressPoint, hasLowS, secp256k1 } from "../lib/secp256k1.ts";
import {
  type Block,
  type BlockShape,
  blockHash,
  blockShapes,
  blockSignaturePreimage,
  isShapeSince,
  nextHashListMerkle,
} from "./block.ts";
import { blockHashBytes } from "./id.ts";
import { chunkSize } from "./merkle.ts";
import { ecdsaSignatureSize, transactionOwnerAddress } from "./transaction.ts";
import { type BlockLayout, layoutTransactions, type PlacedTransaction } from "./tx-root.ts";
import { bytesField, objectField, readBytes } from "./wire.ts";

/** The checks, by name. */
export type BlockCheck =
  | "hash"
  | "signature"
  | "difficulty"
  | "proof chunks"
  | "previous block"
  | "block index"
  | "cumulative difficulty"
  | "weave size"
  | "transactions";

/** The result of a verification. `unchecked` lists the checks that could not be made. */
export type BlockVerdict = Readonly<
  | {
      kind: "accepted";
      checked: readonly BlockCheck[];
      unchecked: readonly BlockCheck[];
      /** Present when transactions were given. */
      layout: BlockLayout | undefined;
    }
  | { kind: "rejected"; reason: string }
>;

/** Hash of the first block of the main network. */
export const mainNetGenesis = "7wIU7KolICAjClMlcZ38LZzshhI7xGkm2tDCJR7Wvhe3ESUo2-Z4-y0x1uaglRJE";

/** Fork heights of the main network, with the shape of blocks from there on. */
const mainNetForks: readonly (readonly [number, BlockShape])[] = [
  [1_602_350, "2.9"],
  [1_547_120, "2.8"],
  [1_275_480, "2.7"],
  [1_132_210, "2.6"],
  [812_970, "2.5"],
  [633_720, "2.4"],
  [422_250, "2.0"],
  [0, "1.0"],
];

const rsaSize = 512;
const ecdsaKeySize = 33;
const noBytes = new Uint8Array(0);

/** The valid keys of a proof of access, and the block's fields with the hashes of its chunks. */
const proofKeys: readonly string[] = ["option", "tx_path", "data_path", "chunk", "unpacked_chunk"];
type PartHashes = readonly (readonly [part: string, hash: string])[];
const proofHashes: readonly (readonly [proof: string, hashes: PartHashes])[] = [
  [
    "poa",
    [
      ["chunk", "chunk_hash"],
      ["unpacked_chunk", "unpacked_chunk_hash"],
    ],
  ],
  [
    "poa2",
    [
      ["chunk", "chunk2_hash"],
      ["unpacked_chunk", "unpacked_chunk2_hash"],
    ],
  ],
];

/** One check's outcome. */
type Outcome = "checked" | "unchecked" | Readonly<{ reason: string }>;

/**
 * Verifies a block.
 *
 * @param transactions - All transactions of the block, verified, in any order; `undefined` while some are missing.
 * @param previous - The block before, verified; `undefined` when it is not at hand.
 */
export function verifyBlock(
  block: Block,
  transactions: readonly PlacedTransaction[] | undefined,
  previous: Block | undefined,
): BlockVerdict {
  const layout = transactions === undefined ? undefined : layoutOf(block, transactions);
  const checks: readonly (readonly [BlockCheck, () => Outcome])[] = [
    ["hash", () => checkHash(block)],
    ["signature", () => checkSignature(block)],
    ["difficulty", () => checkDifficulty(block)],
    ["proof chunks", () => checkProofChunks(block)],
    ["previous block", () => checkPrevious(block, previous)],
    ["block index", () => checkBlockIndex(block, previous)],
    ["cumulative difficulty", () => checkCumulativeDifficulty(block, previous)],
    ["weave size", () => checkWeaveSize(block, previous)],
    ["transactions", () => outcomeOf(layout)],
  ];
  const checked: BlockCheck[] = [];
  const unchecked: BlockCheck[] = [];
  for (const [name, check] of checks) {
    const outcome = attempt(check);
    if (typeof outcome !== "string") return { kind: "rejected", reason: outcome.reason };
    (outcome === "checked" ? checked : unchecked).push(name);
  }
  return { kind: "accepted", checked, unchecked, layout };
}

/**
 * Checks a block against the main network's fork heights; `undefined` when it agrees.
 * Only for a chain whose first block is `mainNetGenesis`.
 */
export function mainNetFault(block: Block): string | undefined {
  if (block.height === 0 && block.hash !== mainNetGenesis) return "this is not the main network's first block";
  const expected = mainNetForks.find(([height]) => block.height >= height)?.[1];
  if (expected === block.shape) return undefined;
  return `block ${block.height} has the shape of ${block.shape} instead of ${expected}`;
}

/** The cumulative difficulty after a block of a difficulty, which means 2^256 / (2^256 − difficulty) attempts. */
export function nextCumulativeDifficulty(previous: bigint, difficulty: bigint): bigint {
  return previous + 2n ** 256n / (2n ** 256n - difficulty);
}

function checkHash(block: Block): Outcome {
  const made = blockHash(block.fields, block.shape);
  if (made === undefined) return "unchecked";
  return made === block.hash ? "checked" : { reason: "indep_hash is not the hash of the block's fields" };
}

function checkSignature({ fields, shape, height }: Block): Outcome {
  if (!isShapeSince(shape, "2.6")) return "unchecked";
  const signature = bytesField(fields, "signature", rsaSize);
  // The first block is not mined and may have no signature: its hash alone identifies it.
  if (height === 0 && signature.length === 0) return "unchecked";
  const key = bytesField(fields, "reward_key", rsaSize);
  if (transactionOwnerAddress(key) !== fields["reward_addr"])
    return { reason: "reward_addr is not that of reward_key" };
  const preimage = blockSignaturePreimage(fields, shape);
  const isSigned =
    isShapeSince(shape, "2.9") && key.length === ecdsaKeySize
      ? verifyEcdsa(key, preimage, signature)
      : key.length === rsaSize && verifyRsaPss(key, preimage, signature);
  return isSigned ? "checked" : { reason: "signature is not that of reward_key over the block" };
}

function verifyEcdsa(key: Uint8Array, preimage: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== ecdsaSignatureSize || !hasLowS(signature)) return false;
  const point = secp256k1.recover(signature.subarray(0, 64), signature[64] ?? 0, sha256(preimage));
  return point !== undefined && equalBytes(compressPoint(point), key);
}

/** Since 2.0 the solution is above the difficulty. Packing may require more, never less. */
function checkDifficulty({ shape, solution, difficulty }: Block): Outcome {
  if (shape === "1.0") return "unchecked";
  const value = readUnsigned(decodeBase64url(solution) ?? noBytes);
  return value > difficulty ? "checked" : { reason: "hash is not above diff" };
}

/**
 * Since 2.7 the block's hash covers hashes of the chunks instead of the chunks. A proof with other keys is invalid.
 * A relay may have emptied a chunk; the check is then not made.
 */
function checkProofChunks(block: Block): Outcome {
  if (!isShapeSince(block.shape, "2.7")) return "unchecked";
  const outcomes = proofHashes.map(([proof, hashes]) => checkProof(block.fields, proof, hashes));
  return outcomes.find((outcome) => typeof outcome !== "string") ?? worseOf(outcomes);
}

function checkProof(fields: JsonObject, proof: string, hashes: PartHashes): Outcome {
  const parts = objectField(fields, proof);
  const unknown = Object.keys(parts).find((key) => !proofKeys.includes(key));
  if (unknown !== undefined) return { reason: `${proof} has the unknown part ${unknown}` };
  if (parts["option"] !== "1") return { reason: `${proof}.option is not 1` };
  const outcomes = hashes.map(([part, hash]): Outcome => {
    const isLeftOut = part === "unpacked_chunk" && parts[part] === undefined;
    const chunk = isLeftOut ? noBytes : bytesField(parts, part, chunkSize);
    if (matchesHash(chunk, fields[hash])) return "checked";
    return chunk.length === 0 ? "unchecked" : { reason: `${hash} is not the hash of ${proof}.${part}` };
  });
  return outcomes.find((outcome) => typeof outcome !== "string") ?? worseOf(outcomes);
}

function worseOf(outcomes: readonly Outcome[]): Outcome {
  return outcomes.includes("unchecked") ? "unchecked" : "checked";
}

/** An absent hash matches an empty chunk. */
function matchesHash(chunk: Uint8Array, hash: JsonValue | undefined): boolean {
  if (hash === undefined) return chunk.length === 0;
  return equalBytes(sha256(chunk), readBytes(hash, "a chunk's hash", 32));
}

function checkPrevious(block: Block, previous: Block | undefined): Outcome {
  if (previous === undefined) return "unchecked";
  if (block.height !== previous.height + 1) return { reason: "height is not one above the previous block's" };
  if (block.previous !== previous.hash) return { reason: "previous_block is not the previous block's hash" };
  if (blockShapes.indexOf(block.shape) < blockShapes.indexOf(previous.shape)) {
    return { reason: "the block has an older shape than the previous one" };
  }
  if (!isShapeSince(block.shape, "2.6")) return "checked";
  return block.fields["previous_solution_hash"] === previous.solution
    ? "checked"
    : { reason: "previous_solution_hash is not the previous block's hash" };
}

function checkBlockIndex(block: Block, previous: Block | undefined): Outcome {
  if (previous === undefined || previous.shape === "1.0") return "unchecked";
  const expected = nextHashListMerkle({
    hashListMerkle: decodeBase64url(previous.hashListMerkle) ?? noBytes,
    hash: blockHashBytes(previous.hash),
    weaveSize: previous.weaveSize,
    txRoot: decodeBase64url(previous.txRoot) ?? noBytes,
  });
  return equalBytes(expected, decodeBase64url(block.hashListMerkle) ?? noBytes)
    ? "checked"
    : { reason: "hash_list_merkle does not follow from the previous block" };
}

function checkCumulativeDifficulty(block: Block, previous: Block | undefined): Outcome {
  if (previous?.cumulativeDifficulty === undefined || block.shape === "1.0") return "unchecked";
  if (block.difficulty >= 2n ** 256n) return { reason: "diff is not below 2^256" };
  const expected = nextCumulativeDifficulty(previous.cumulativeDifficulty, block.difficulty);
  if (block.cumulativeDifficulty !== expected) {
    return { reason: "cumulative_diff does not follow from the previous block" };
  }
  const stated = block.fields["previous_cumulative_diff"];
  return stated === undefined || stated === previous.cumulativeDifficulty.toString()
    ? "checked"
    : { reason: "previous_cumulative_diff is not the previous block's" };
}

function checkWeaveSize(block: Block, previous: Block | undefined): Outcome {
  if (previous === undefined) return "unchecked";
  return block.weaveSize === previous.weaveSize + block.blockSize
    ? "checked"
    : { reason: "weave_size is not the previous block's and block_size" };
}

function layoutOf(block: Block, transactions: readonly PlacedTransaction[]): BlockLayout {
  const ids = new Set<string>(block.txs);
  if (transactions.length !== ids.size || !transactions.every(({ id }) => ids.has(id))) {
    return { kind: "rejected", reason: "the transactions are not those that the block names" };
  }
  return layoutTransactions(block, transactions);
}

function outcomeOf(layout: BlockLayout | undefined): Outcome {
  if (layout === undefined || layout.kind === "unplaced") return "unchecked";
  if (layout.kind === "rejected") return { reason: layout.reason };
  return layout.isProven ? "checked" : "unchecked";
}

function attempt(check: () => Outcome): Outcome {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { reason: String(error.context["reason"] ?? error.message) };
  }
}
