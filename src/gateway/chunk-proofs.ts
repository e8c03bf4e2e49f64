/**
 * Proofs of chunks from the followed chain: the path from a block's root to a transaction, and from a transaction's
 * data root to a chunk.
 *
 * Format 1 has no data root field; the root of such a transaction is computed from its data.
 * @module
 */
import { LRUCache } from "lru-cache";
import { readBlock } from "../arweave/block.ts";
import type { BlockHash, Id } from "../arweave/id.ts";
import {
  type ChunkSpan,
  chunkSpans,
  createDataRoot,
  dataRootOf,
  dataTreeOfHashes,
  type MerkleTree,
  type TailRule,
} from "../arweave/merkle.ts";
import { buildTxTree, layoutTransactions, type PlacedTransaction, type TxTree } from "../arweave/tx-root.ts";
import type { Content } from "../content/content.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { IndexReader, WeaveSpan } from "../store/index/index-types.ts";

/** A transaction's proof under its block's root. */
export type TxProof = Readonly<{
  path: Uint8Array;
  /** The proven root over the transaction's chunks, base64url. */
  dataRoot: string;
}>;

/** A chunk's proof under its data root. */
export type DataProof = Readonly<{ span: ChunkSpan; path: Uint8Array }>;

export type ChunkProofs = Readonly<{
  /**
   * Proves a transaction in its block's tree; `undefined` where the block has none (before 2.0), or its transactions or
   * their data are not all at hand.
   */
  txProof: (transaction: WeaveSpan, signal: AbortSignal) => Promise<TxProof | undefined>;
  /**
   * The path to the chunk that contains a byte, from data on this disk; `undefined` when the data is not here, or is
   * split irregularly.
   *
   * @param at - Byte of the data.
   */
  dataProof: (
    transaction: WeaveSpan,
    content: OpenContent,
    at: number,
    signal: AbortSignal,
  ) => Promise<DataProof | undefined>;
}>;

/** Cached trees of blocks; one of a thousand transactions takes 0.6 MB. */
const blockTreesMax = 24;

/** Cached trees of data, 37 KB each for data of 64 MiB. */
const dataTreesMax = 24;

/**
 * Memory of the hashes of chunks from which other trees are built again, in up to 0.4 ms: those of 31 GB in large
 * transactions, or of 9,700 transactions of one chunk. Bytes.
 */
const hashBytesMax = 4 * 2 ** 20;

/** An entry of hashes beside them (measured). Bytes. */
const hashesEntryBytes = 400;

/** Data hashed for a proof that no other source has; more would delay the response. Bytes. */
const hashedBytesMax = 64 * 2 ** 20;

/** Retry delay for a block whose tree could not be built: its data may be available then. Milliseconds. */
const missingStoredMs = 30_000;

/** Irregularly split data is hashed once; number of cached ids. */
const oddMax = 10_000;

type DataTree = Readonly<{ rule: TailRule; tree: MerkleTree }>;

/** Of the chunks of a data tree. */
type DataHashes = Readonly<{ rule: TailRule; hashes: Uint8Array }>;

type BlockTree = Readonly<{ tree: TxTree; roots: ReadonlyMap<Id, string> }>;

/** The data root of a format 1 transaction without data. */
const emptyRoot = encodeBase64url(dataRootOf(new Uint8Array(0), "plain"));

export function createChunkProofs(
  reader: Pick<IndexReader, "block" | "blockText" | "transactionsOfBlock">,
  content: Pick<Content, "open">,
): ChunkProofs {
  const blockTrees = new LRUCache<BlockHash, BlockTree>({ max: blockTreesMax });
  const blocksWithout = new LRUCache<BlockHash, true>({ max: blockTreesMax, ttl: missingStoredMs });
  const blockFlights = createSingleFlight<BlockTree | undefined>();
  const dataTrees = createDataTrees();
  const odd = new LRUCache<Id, true>(entryLimit(oddMax));
  const dataFlights = createSingleFlight<DataTree | undefined>();

  const blockTree = async (height: number, signal: AbortSignal): Promise<BlockTree | undefined> => {
    // By hash: after a reorg another block has this height.
    const hash = reader.block(height)?.hash;
    if (hash === undefined || blocksWithout.has(hash)) return undefined;
    const known = blockTrees.get(hash);
    if (known !== undefined) return known;
    return await blockFlights.run(hash, signal, async (own) => {
      const made = await makeBlockTree(hash, height, own);
      if (made === undefined) blocksWithout.set(hash, true);
      else blockTrees.set(hash, made);
      return made;
    });
  };

  const makeBlockTree = async (hash: BlockHash, height: number, signal: AbortSignal) => {
    const text = reader.blockText(hash)?.text;
    const block = text === undefined ? undefined : readBlock(text);
    if (block === undefined || block.shape === "1.0") return undefined;
    const transactions = await withRoots(reader.transactionsOfBlock(height), content, signal);
    const layout = transactions === undefined ? undefined : layoutTransactions(block, transactions);
    if (transactions === undefined || layout?.kind !== "placed" || !layout.isProven) return undefined;
    const roots = new Map(transactions.map(({ id, dataRoot }) => [id, dataRoot]));
    return { tree: buildTxTree(transactions, layout.layout), roots };
  };

  const dataTree = async (transaction: WeaveSpan, data: OpenContent, signal: AbortSignal) => {
    const { id } = transaction;
    const known = dataTrees.get(id, data.size);
    if (known !== undefined || odd.has(id)) return known;
    const whole = { start: 0, end: data.size };
    if (data.size > hashedBytesMax || !data.cached(whole)) return undefined;
    return await dataFlights.run(id, signal, (own) => makeDataTree(transaction, data, own));
  };

  const makeDataTree = async ({ id, dataRoot, place }: WeaveSpan, data: OpenContent, signal: AbortSignal) => {
    const expected = dataRoot === "" ? (await blockTree(place.height, signal))?.roots.get(id) : dataRoot;
    if (expected === undefined) return undefined;
    for (const rule of ["halved", "plain"] as const) {
      const made = await hashTree(data, rule, signal);
      if (encodeBase64url(made.tree.root) !== expected) continue;
      dataTrees.add(id, made);
      return made;
    }
    odd.set(id, true);
    return undefined;
  };

  return {
    txProof: async ({ id, place }, signal) => {
      const block = await blockTree(place.height, signal);
      const path = block?.tree.places.find((found) => found.id === id)?.path();
      return path === undefined ? undefined : { path, dataRoot: block?.roots.get(id) ?? "" };
    },
    dataProof: async (transaction, data, at, signal) => {
      const found = await dataTree(transaction, data, signal);
      if (found === undefined) return undefined;
      const spans = chunkSpans(data.size, found.rule);
      const index = spans.findIndex(({ start, end }) => start <= at && at < end);
      const span = spans[index];
      return span === undefined ? undefined : { span, path: found.tree.path(index) };
    },
  };
}

/** Trees of data by id: the newest whole, others as the hashes of their chunks. */
function createDataTrees() {
  const trees = new LRUCache<Id, DataTree>({ max: dataTreesMax });
  const hashed = new LRUCache<Id, DataHashes>({
    maxSize: hashBytesMax,
    sizeCalculation: ({ hashes }) => hashes.byteLength + hashesEntryBytes,
  });
  const rebuild = (id: Id, size: number): DataTree | undefined => {
    const known = hashed.get(id);
    if (known === undefined) return undefined;
    const made = { rule: known.rule, tree: dataTreeOfHashes(known.hashes, size, known.rule) };
    trees.set(id, made);
    return made;
  };
  return {
    get: (id: Id, size: number): DataTree | undefined => trees.get(id) ?? rebuild(id, size),
    add: (id: Id, made: DataTree): void => {
      trees.set(id, made);
      hashed.set(id, { rule: made.rule, hashes: made.tree.hashes });
    },
  };
}

/** The transactions with the computed roots of format 1; `undefined` when the data of one is not available. */
async function withRoots(
  transactions: readonly PlacedTransaction[],
  content: Pick<Content, "open">,
  signal: AbortSignal,
): Promise<readonly PlacedTransaction[] | undefined> {
  const found: PlacedTransaction[] = [];
  let hashed = 0;
  for (const transaction of transactions) {
    const { id, format, dataSize } = transaction;
    if (format === 2) found.push(transaction);
    else if (dataSize === 0) found.push({ ...transaction, dataRoot: emptyRoot });
    else {
      hashed += dataSize;
      const dataRoot = hashed > hashedBytesMax ? undefined : await rootOfData(id, content, signal);
      if (dataRoot === undefined) return undefined;
      found.push({ ...transaction, dataRoot });
    }
  }
  return found;
}

async function rootOfData(id: Id, content: Pick<Content, "open">, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { tree } = await hashTree(await content.open(id, signal), "plain", signal);
    return encodeBase64url(tree.root);
  } catch (error) {
    // Blocked, or no source has it: the block's tree cannot be built, and the caller gets `undefined`.
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

async function hashTree(content: OpenContent, rule: TailRule, signal: AbortSignal): Promise<DataTree> {
  const hash = createDataRoot(content.size, rule);
  for await (const piece of content.inspect({ start: 0, end: content.size }, signal)) hash.update(piece);
  return { rule, tree: hash.finish() };
}
