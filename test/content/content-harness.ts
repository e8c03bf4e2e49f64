/**
 * Content put together for a test: a real cache on a real disk, real sockets to nodes and gateways, an index in memory.
 * @module
 */
import { afterEach } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address, BlockHash, Id } from "../../src/arweave/id.ts";
import { type Gateways, openGateways } from "../../src/chain/gateways.ts";
import { openNode } from "../../src/chain/node.ts";
import { createNodes, type Nodes } from "../../src/chain/nodes.ts";
import { openRootFiles } from "../../src/chain/root-files.ts";
import { openRootQueries } from "../../src/chain/root-queries.ts";
import { gatewayList } from "../../src/config/setting-readers.ts";
import { type ContentChecks, type GatewayContentStore, openContent } from "../../src/content/content.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { HttpTimeouts } from "../../src/lib/http-client.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type Extents, openExtents } from "../../src/store/extents/extents.ts";
import { openFoundItems } from "../../src/store/found-items.ts";
import type { ItemSpan, Located, PageBlock } from "../../src/store/index/index-types.ts";
import type { RootSpec } from "../../src/store/root-spec.ts";
import { hashPiece } from "../../workers/content.ts";
import { checkBlockNames, checkItem, checkItemMessage, checkTransactions } from "../../workers/verify.ts";
import { checkChunkAtOnce, type DataNode, type MadeData, openDataNode } from "../chain/data-node.ts";
import type { Fault } from "../chain/fault-server.ts";

/** What a test sees and moves. */
export type Harness = Readonly<{
  content: GatewayContentStore;
  extents: Extents;
  nodes: Nodes;
  gateways: Gateways;
  index: Map<Id, Located>;
  items: ItemSpan[]; // within any root
  blockedIds: Set<Id>;
  blockedDigests: Set<string>; // hex
  /** Closes everything but the folder, and opens it again. */
  restart: () => Promise<Harness>;
  /** Closes everything, and leaves the folder. */
  closeKeeping: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** What a test chooses. */
export type HarnessOptions = Readonly<{
  nodeUrls: readonly string[];
  /** Each as in TRUSTED_GATEWAYS_URLS. */
  gatewayUrls?: readonly string[];
  timeouts?: HttpTimeouts;
  bytesMax?: number;
  folder?: string;
  index?: Map<Id, Located>;
  /** CDB64 files, by path or URL. */
  rootFiles?: readonly string[];
  /** Keeps places of found items in this folder's file, so many of them. */
  foundItemsMax?: number;
  findMsMax?: number;
  fetchMsMax?: number;
  /** The checks that run in threads; by default on the calling thread. */
  checks?: Partial<ContentChecks>;
  /** Blocks that were followed. */
  blockAt?: (at: number | BlockHash) => PageBlock | undefined;
}>;

/** On a busy machine a response takes its time; without a response, a test waits for less. */
export const patient: HttpTimeouts = { firstByteMs: 8_000, stallMs: 8_000, totalMs: 20_000 };
export const impatient: HttpTimeouts = { firstByteMs: 800, stallMs: 800, totalMs: 4_000 };
/** How long to wait for a source with this fault. */
export const timeoutsFor = (fault: Fault | undefined): HttpTimeouts => (fault?.kind === "hang" ? impatient : patient);

/** A set that reports its changes. */
function watchedSet<Value>(onChange: () => void): Set<Value> {
  const set = new Set<Value>();
  const { add, clear } = set;
  return Object.assign(set, {
    add: (value: Value) => {
      onChange();
      return add.call(set, value);
    },
    clear: () => {
      onChange();
      clear.call(set);
    },
  });
}

/** Opens content over sources. */
export function openHarness(options: HarnessOptions): Harness {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "cairn-content-"));
  const timeouts = options.timeouts ?? patient;
  const parts = { clock: systemClock, random: seeded(1), log: silentLog };
  const nodes = createNodes(
    options.nodeUrls.map((url) => openNode(url, timeouts)),
    parts,
  );
  const gateways = openGateways((options.gatewayUrls ?? []).flatMap(gatewayList), { ...parts, timeouts });
  const rootFiles = openRootFiles(options.rootFiles ?? [], {
    ...parts,
    timeouts,
    async openContent(id, signal) {
      const { size, inspect } = await content.openIndexFile(id, signal);
      return { size, read: inspect };
    },
  });
  const rootQueries = openRootQueries((options.gatewayUrls ?? []).flatMap(gatewayList), {
    ...parts,
    timeouts,
  });
  const extents = openExtents({
    folder: join(folder, "content"),
    mapPath: join(folder, "content.sqlite"),
    bytesMax: options.bytesMax ?? 2 ** 30,
    freeBytesMin: 0,
    clock: systemClock,
    log: silentLog,
  });
  const foundItems =
    options.foundItemsMax === undefined
      ? undefined
      : openFoundItems(join(folder, "found-items.sqlite"), {
          log: silentLog,
          rowsMax: options.foundItemsMax,
        });
  const index = options.index ?? new Map<Id, Located>();
  const items: ItemSpan[] = [];
  let blockListVersion = 0;
  const onBlockListChange = () => {
    blockListVersion += 1;
  };
  const blockedIds = watchedSet<Id>(onBlockListChange);
  const blockedDigests = watchedSet<string>(onBlockListChange);
  const content = openContent({
    reader: {
      locate: (id) => index.get(id),
      block: (at) => options.blockAt?.(at),
      itemsWithin: (_root, start, end, limit) =>
        items.filter((item) => item.start < end && item.end > start).slice(0, limit),
      version: () => items.length,
    },
    blockList: {
      isBlockedId: (id) => blockedIds.has(id),
      isBlockedDigest: (digest) => blockedDigests.has(digest.toHex()),
      isBlockedWithin: () => false,
      hasBlockedDigests: () => blockedDigests.size > 0,
      has: (kind) => (kind === "id" ? blockedIds.size : blockedDigests.size) > 0,
      version: () => blockListVersion,
    },
    extents,
    nodes,
    chunkNodes: nodes,
    gateways,
    rootFiles,
    rootQueries,
    ...(foundItems === undefined ? {} : { foundItems }),
    ...(options.findMsMax === undefined ? {} : { findMsMax: options.findMsMax }),
    ...(options.fetchMsMax === undefined ? {} : { fetchMsMax: options.fetchMsMax }),
    checks: {
      transaction: async (id, text) => {
        const [checked] = checkTransactions({ transactions: [{ id, text }] });
        if (checked === undefined) throw new Error("every transaction has an outcome");
        return checked;
      },
      blockNames: async (job) => checkBlockNames(job),
      item: async (job) => checkItem(job),
      itemMessage: async (job) => checkItemMessage(job),
      chunk: checkChunkAtOnce,
      hashPiece: async (job) => hashPiece(job),
      ...options.checks,
    },
  });
  const closeParts = async () => {
    await content.close();
    nodes.close();
    gateways.close();
    rootFiles.close();
    rootQueries.close();
    foundItems?.close();
    await extents.close();
  };
  return {
    content,
    extents,
    nodes,
    gateways,
    index,
    items,
    blockedIds,
    blockedDigests,
    restart: async () => {
      await closeParts();
      return openHarness({ ...options, folder, index });
    },
    closeKeeping: closeParts,
    close: async () => {
      await closeParts();
      removeFolder(folder);
    },
  };
}

/** The row of a whole transaction, or of a slice of its data. */
export function locatedOf(id: Id, root: RootSpec, slice?: Readonly<{ start: number; end: number }>): Located {
  const isItem = slice !== undefined;
  return {
    id,
    kind: isItem ? "item" : "transaction",
    place: { height: 100, txIndex: 0, offset: isItem ? slice.start : -1 },
    rootId: root.id,
    size: isItem ? slice.end - slice.start : root.size,
    dataOffset: isItem ? slice.start : 0,
    itemOffset: 0,
    headerSize: 0,
    signatureType: isItem ? 1 : -1,
    ownerAddress: root.id as string as Address,
    verified: true,
    stable: true,
    pending: false,
    rootFormat: root.dataRoot === "" ? 1 : 2,
    dataRoot: root.dataRoot,
    rootSize: root.size,
    ...(root.weaveStart === undefined ? {} : { weaveStart: root.weaveStart }),
  };
}

/** Numbers in [0, 1) that are the same every time. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** All pieces of a stream as one. */
export async function joined(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const piece of pieces) parts.push(piece);
  return new Uint8Array(Buffer.concat(parts));
}

/** Whether two byte strings are the same; cheaper than a matcher on large ones. */
export function isSame(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one !== undefined && Buffer.compare(one, other) === 0;
}

/** Closes everything that the tests of a file open, after each test and in reverse order. */
export function closeAfterEach() {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  return {
    closers,
    nodeWith: async (...data: MadeData[]): Promise<DataNode> => {
      const node = await openDataNode(...data);
      closers.push(node.stop);
      return node;
    },
    harnessWith: (options: HarnessOptions, ...data: MadeData[]): Harness => {
      const harness = openHarness(options);
      closers.push(harness.close);
      for (const { root } of data) harness.index.set(root.id, locatedOf(root.id, root));
      return harness;
    },
  };
}
