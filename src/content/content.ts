/**
 * The bytes of an id from any source: this disk, chunks from nodes, other gateways.
 *
 * The index knows the place of an id: a slice of its root transaction's data. Only checked bytes are served as
 * verified: chunks are checked against the data root when they arrive, stored bytes against their checksums when
 * they are read. Opening an id that the index knows transfers nothing, unless only another gateway has verified it.
 * Source: docs/reference/gateway.md#verification.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { CheckTransactionsJob } from "../../workers/verify.ts";
import type { Id } from "../arweave/id.ts";
import { type CheckChunk, createChunks } from "../chain/chunks.ts";
import type { Gateways } from "../chain/gateways.ts";
import type { Hint, HintSources } from "../chain/hint.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import type { ByteSpan } from "../lib/range.ts";
import { extentCallBytesMax } from "../store/extents/extent-reads.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { FoundItems } from "../store/found-items.ts";
import type { IndexReader, Located } from "../store/index/index-types.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import { type ContentBlockList, createBlockGuard } from "./block-guard.ts";
import { type Bodies, type CheckTransaction, createBodies } from "./bodies.ts";
import { createChunkCheck } from "./chunk-check.ts";
import type { CheckItemMessage } from "./digest-recorder.ts";
import { type CacheFetcher, createCacheFetcher } from "./fetch-to-cache.ts";
import { openFound, openLocated } from "./open-place.ts";
import type { OpenContent } from "./opened-content.ts";
import { createPieceHash, createRootDigests, type HashPiece } from "./root-digests.ts";
import { type CheckBlockNames, createRootTransactions } from "./root-transactions.ts";
import { createUnindexedLookup, type LookupStats, type UnindexedLookup } from "./unindexed-lookup.ts";
import { createUploadedContent, type FindUploaded } from "./uploaded.ts";
import { type CheckItem, createHintVerifier } from "./verify-hint.ts";

/** Data on this disk that stays until it is released. */
export type EnsuredData = Readonly<{ path: string; release: () => void }>;

/** Finds and reads content. */
export type Content = Readonly<{
  /**
   * Finds an id. Transfers nothing when the index knows it.
   * Rejects with Failure `not_found`, `blocked`; for ids that the index does not have also `source_failed`,
   * `source_timeout`, `busy`.
   * @param hint - The client's hint of the item's position, for an id that the index does not have. Always checked.
   */
  open: (id: Id, signal: AbortSignal, hint?: Hint) => Promise<OpenContent>;
  /**
   * Brings a span of a root's data onto this disk, checked, and keeps it until `release`. Rejects with
   * Failure `source_failed`, `source_timeout`, `busy` without free space; the signal's reason.
   */
  ensure: (root: RootSpec, span: ByteSpan, signal: AbortSignal) => Promise<EnsuredData>;
  /**
   * Stores the whole data of a root that the caller has verified otherwise (format 1).
   * Returns false when it could not be stored.
   */
  keep: (root: RootSpec, bytes: Uint8Array) => Promise<boolean>;
  /** Forgets that an id was unknown: to be called when it is announced or uploaded. Indexed ids are found anyway. */
  forget: (id: Id) => void;
  /** Ends every fetch under way. */
  close: () => Promise<void>;
}>;

/** Content with what the gateway's own parts need beside it. */
export type GatewayContentStore = Content &
  Readonly<{
    /** As `open`, for askers that are gateways themselves: what the index does not have is not found. */
    openIndexed: (id: Id, signal: AbortSignal) => Promise<OpenContent>;
    /** As `open`, for the index files by which items are found: these are not searched for themselves. */
    openIndexFile: (id: Id, signal: AbortSignal) => Promise<OpenContent>;
    /** Forgets all that was found outside of the index: blocks were taken back. */
    forgetAll: () => void;
    /** Fetches under way and since the start. */
    stats: CacheFetcher["stats"];
  }>;

export type ContentParts = Readonly<{
  reader: Pick<IndexReader, "locate" | "itemsWithin" | "block" | "version">;
  blockList: ContentBlockList;
  extents: Extents;
  /** Asked for transactions. */
  nodes: Nodes;
  /** Asked for chunks; gateways that serve `/chunk` may be among them, since every chunk is proven. */
  chunkNodes: Nodes;
  gateways: Gateways;
  /** Finds what was uploaded here and is in no block yet. */
  findUploaded?: FindUploaded;
  /** Sources of hints for items that the index does not have. */
  rootFiles: HintSources;
  rootQueries: HintSources;
  /** Where items were found before. */
  foundItems?: FoundItems;
  /** Run in threads. */
  checks: ContentChecks;
  /** Longest search for an id that the index does not have. Milliseconds; 10 s by default. */
  findMsMax?: number;
  /** Longest time of a fetch, its wait in the queue included. Milliseconds; a minute by default. */
  fetchMsMax?: number;
  /** Called for each look-up of an id that the index does not have. */
  onLookup?: LookupStats;
}>;

/** Hashes of content from gateways, which is not stored, are remembered as long as its description. Milliseconds. */
const digestStoredMs = 60_000;
const digestsMax = 10_000;

/** Opens the content. The caller closes the parts that it passes. */
export function openContent(parts: ContentParts): GatewayContentStore {
  const { reader, extents, nodes, gateways } = parts;
  const chunks = createChunks(parts.chunkNodes, nodes, parts.checks.chunk);
  const bodies = createBodies(nodes, gateways, parts.checks.transaction);
  const life = new AbortController();
  const fetcher = createCacheFetcher({ extents, chunks, bodies, life: life.signal, fetchMsMax: parts.fetchMsMax });
  const rootDigests = createRootDigests(extents, parts.checks.hashPiece, life.signal);
  const lookup = createLookup(parts, bodies, fetcher);
  const guard = createBlockGuard(reader, parts.blockList);
  const uploaded = createUploadedContent(parts.findUploaded ?? (async () => undefined), guard);
  const digests = new LRUCache<Id, Uint8Array>({ ...entryLimit(digestsMax), ttl: digestStoredMs });
  const checkItemMessage = parts.checks.itemMessage;
  const openParts = { extents, fetcher, guard, gateways, digests, rootDigests, lookup, checkItemMessage };

  /** Opens what the index has; undefined also when an item is not at the place that another gateway's index states. */
  async function openHere(id: Id, signal: AbortSignal): Promise<OpenContent | undefined> {
    const located = reader.locate(id);
    guard.checkId(id, located?.rootId ?? id, located?.digest);
    if (located === undefined) return undefined;
    if (isImportedItem(located)) return await openImported(located, signal);
    const found = openLocated(openParts, located);
    if (found?.digest !== undefined) guard.checkId(id, id, found.digest);
    return found;
  }

  async function openImported({ id, rootId, itemOffset }: Located, signal: AbortSignal) {
    try {
      return openFound(openParts, id, await lookup.findAt(id, { rootId, path: [], itemOffset }, signal));
    } catch (error) {
      if (error instanceof Failure && error.code === "not_found") return undefined;
      throw error;
    }
  }

  return {
    async open(id, signal, hint) {
      const here = (await openHere(id, signal)) ?? (await uploaded.open(id));
      return here ?? openFound(openParts, id, await lookup.find(id, hint, signal));
    },
    async openIndexed(id, signal) {
      const here = (await openHere(id, signal)) ?? (await uploaded.open(id));
      if (here === undefined) throw new Failure("not_found", { id });
      return here;
    },
    async openIndexFile(id, signal) {
      const here = (await openHere(id, signal)) ?? (await uploaded.open(id));
      return here ?? openFound(openParts, id, await lookup.findWithoutFiles(id, signal));
    },
    ensure: (root, span, signal) => ensure({ extents, fetcher }, root, span, signal),
    keep: fetcher.keep,
    forget: lookup.forget,
    forgetAll: lookup.forgetAll,
    stats: fetcher.stats,
    async close() {
      life.abort(new DOMException("content was closed", "AbortError"));
      await rootDigests.ended();
    },
  };
}

/** Whether only another gateway has verified a mined item: its bytes are checked before they are served. */
function isImportedItem({ kind, pending, verified }: Located): boolean {
  return kind === "item" && !pending && !verified;
}

function createLookup(parts: ContentParts, bodies: Bodies, fetcher: CacheFetcher): UnindexedLookup {
  const { reader, nodes, gateways, extents, checks } = parts;
  const roots = createRootTransactions({
    reader,
    bodies,
    nodes,
    keep: fetcher.keep,
    checkBlockNames: checks.blockNames,
  });
  const hintVerifier = createHintVerifier({ roots, extents, fetcher, checkItem: checks.item });
  return createUnindexedLookup({
    bodies,
    gateways,
    roots,
    files: parts.rootFiles,
    queries: parts.rootQueries,
    hintVerifier,
    foundItems: parts.foundItems,
    fetcher,
    findMsMax: parts.findMsMax,
    onLookup: parts.onLookup,
  });
}

async function ensure(
  { extents, fetcher }: Readonly<{ extents: Extents; fetcher: CacheFetcher }>,
  root: RootSpec,
  span: ByteSpan,
  signal: AbortSignal,
): Promise<EnsuredData> {
  assert(span.start >= 0 && span.end <= root.size, "a span is within its root");
  const release = extents.hold(root);
  try {
    // What was here before is compared; what comes now was checked a moment ago.
    for (const { start, end } of presentParts(span, extents.missing(root, span))) {
      for (let at = start; at < end; at += extentCallBytesMax) {
        signal.throwIfAborted();
        await extents.read(root, { start: at, end: Math.min(end, at + extentCallBytesMax) });
      }
    }
    await fetcher.ensure(root, span, signal);
    return { path: extents.path(root), release };
  } catch (error) {
    release();
    throw error;
  }
}

/** The parts of a span outside of the missing parts. */
function presentParts(span: ByteSpan, missing: readonly ByteSpan[]): ByteSpan[] {
  const parts: ByteSpan[] = [];
  let at = span.start;
  for (const { start, end } of missing) {
    if (at < start) parts.push({ start: at, end: start });
    at = end;
  }
  if (at < span.end) parts.push({ start: at, end: span.end });
  return parts;
}

/** Checks that take a thread's time. */
export type ContentChecks = Readonly<{
  transaction: CheckTransaction;
  blockNames: CheckBlockNames;
  item: CheckItem;
  itemMessage: CheckItemMessage;
  chunk: CheckChunk;
  hashPiece: HashPiece;
}>;

/** Runs the checks in threads: of `workers/verify.ts`, of the runtime, and of `workers/content.ts`. */
export function checksIn(verify: Pool<Workers["verify"]>, thread: Pool<Workers["content"]>): ContentChecks {
  return {
    transaction: async (id, text, signal) => {
      const job: CheckTransactionsJob = { transactions: [{ id, text }] };
      const [checked] = await verify.run("checkTransactions", job, { signal });
      assert(checked !== undefined, "one transaction gets one result");
      return checked;
    },
    blockNames: (job, signal) => verify.run("checkBlockNames", job, { signal }),
    item: (job, signal) => verify.run("checkItem", job, { signal }),
    itemMessage: (job, signal) => verify.run("checkItemMessage", job, { signal }),
    chunk: createChunkCheck(thread),
    hashPiece: createPieceHash(thread),
  };
}
