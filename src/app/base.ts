/**
 * The parts that every service uses: threads, the index, nodes, content and metrics.
 * @module
 */
import { EventEmitter } from "node:events";
import { type Gateways, hopHeaders, openGateways } from "../chain/gateways.ts";
import { nodeTimeoutsDefault, openNode } from "../chain/node.ts";
import { createNodes, type Nodes, weightOf } from "../chain/nodes.ts";
import { openPeers, type Peer } from "../chain/peers.ts";
import { createReach, createUrlGuard } from "../chain/reach.ts";
import { openRootFiles } from "../chain/root-files.ts";
import { openRootQueries } from "../chain/root-queries.ts";
import type { Config } from "../config/settings.ts";
import { type ContentChecks, checksIn, type GatewayContentStore, openContent } from "../content/content.ts";
import type { FindUploaded } from "../content/uploaded.ts";
import { createLookupMetrics } from "../gateway/gateway-metrics.ts";
import type { HealthCheck } from "../gateway/health.ts";
import type { PeerList } from "../gateway/peer-list.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { addProcessMetrics, createMetrics, type Metrics } from "../lib/metrics.ts";
import { secp256k1Implementation } from "../lib/secp256k1.ts";
import { type BlockList, openBlockList } from "../store/block-list.ts";
import { type Extents, openExtents } from "../store/extents/extents.ts";
import { openFoundItems } from "../store/found-items.ts";
import { openIndexReader } from "../store/index/index-reader.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import { prepareIndex } from "../store/index/index-writer.ts";
import { createIndexWriterCalls, type IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import type { DataFolder } from "./data-folder.ts";
import { readFilters, type SetFilters } from "./list-settings.ts";
import { systemRandom } from "./random.ts";
import { openThreads, type Threads } from "./threads.ts";

/** The parameters of every part of the program. */
export type AppContext = Readonly<{
  config: Config;
  /** Locked by this process. */
  folder: DataFolder;
  log: Log;
  closers: Closers;
}>;

/** Parameters of {@link openBase}. */
export type BaseParts = AppContext &
  Readonly<{
    /** Chain nodes, in the order of requests. */
    nodeUrls: readonly string[];
    /** Finds uploads that are stored here; absent without an upload service. */
    findUploaded?: FindUploaded;
  }>;

/** Checks of health, to which parts that open later add theirs. */
export type CheckList = Readonly<{ check: HealthCheck; add: (check: HealthCheck) => void }>;

/** Creates a list of health checks, to which parts that open later add their own. */
export function createCheckList(first: readonly HealthCheck[]): CheckList {
  const checks = [...first];
  return {
    check: () => checks.flatMap((check) => check()),
    add: (check) => {
      checks.push(check);
    },
  };
}

export type Base = Readonly<{
  filters: SetFilters;
  metrics: Metrics;
  threads: Threads;
  reader: IndexReader;
  /** The one client of the thread that writes the index. */
  index: IndexWriterCalls;
  /** Adds a listener that is called when the index may have changed. */
  onIndexWritten: (listener: () => void) => void;
  /** Run in threads. */
  checks: ContentChecks;
  sources: Sources;
}>;

/** Opens the base; `closers` close it. @throws Misuse for an invalid filter. */
export function openBase(parts: BaseParts): Base {
  const { config, folder, log, closers, nodeUrls, findUploaded = async () => undefined } = parts;
  const filters = readFilters(config);
  checkSignatures(log, closers);
  const metrics = createMetrics();
  addProcessMetrics(metrics);
  const threads = openThreads(config, closers);
  const reader = openIndex(folder, threads.index, closers);
  const written = new EventEmitter<{ written: [] }>();
  const index = createIndexWriterCalls(folder.index, (job) => threads.index.run("write", job), {
    onWritten: () => written.emit("written"),
  });
  const checks = checksIn(threads.verify, threads.content);
  const sources = openSources(parts, { nodeUrls, reader, checks, findUploaded, metrics });
  const onIndexWritten = (listener: () => void) => void written.on("written", listener);
  return { filters, metrics, threads, reader, index, onIndexWritten, checks, sources };
}

/** Loading the addon of secp256k1 would delay the first response by 5 ms. Milliseconds. */
const signaturesCheckedAfterMs = 1_000;

/** Warns after the start when there is no addon of secp256k1. */
function checkSignatures(log: Log, closers: Closers): void {
  const check = () => {
    if (secp256k1Implementation() === "pure") log.warn("signatures over secp256k1 take long: its addon is missing");
  };
  const timer = setTimeout(check, signaturesCheckedAfterMs);
  closers.add("check of signatures", () => clearTimeout(timer));
}

/**
 * The file is prepared here, so that a reader need not wait for the thread that writes the index. It is closed after
 * the reader has opened it: the last connection to close would fold the log into the file, for the reader to make anew.
 */
function openIndex(folder: DataFolder, pool: Pool<Workers["index"]>, closers: Closers): IndexReader {
  const closePrepared = prepareIndex(folder.index);
  closers.add("index", () => pool.run("close", { path: folder.index }));
  const reader = openIndexReader(folder.index);
  closePrepared();
  closers.add("index reader", reader.close);
  return reader;
}

/** The sources of content: nodes, gateways, peers, and the caches. */
export type Sources = Readonly<{
  nodes: Nodes;
  /** Nodes and gateways that serve chunks. Every chunk is verified, so a gateway is as good a source as a node. */
  chunkNodes: Nodes;
  gateways: Pick<Gateways, "sourceStatus">;
  peers: PeerList;
  extents: Extents;
  blockList: BlockList;
  content: GatewayContentStore;
}>;

type SourceParts = Readonly<{
  nodeUrls: readonly string[];
  reader: IndexReader;
  checks: ContentChecks;
  findUploaded: FindUploaded;
  metrics: Metrics;
}>;

function openSources(app: AppContext, { nodeUrls, reader, checks, findUploaded, metrics }: SourceParts): Sources {
  const { config, folder, log, closers } = app;
  const common = { clock: systemClock, random: systemRandom, log };
  const nodes = createNodes(
    nodeUrls.map((url) => openNode(url)),
    common,
  );
  closers.add("nodes", nodes.close);
  const chunkNodes = createNodes(
    [
      ...nodeUrls.map((url) => openNode(url)),
      ...config.TRUSTED_GATEWAYS_URLS.map(({ url }) => openNode(url, nodeTimeoutsDefault, { headers: hopHeaders })),
    ],
    common,
  );
  closers.add("chunk nodes", chunkNodes.close);
  const gateways = openGateways(config.TRUSTED_GATEWAYS_URLS, common);
  closers.add("gateways", gateways.close);
  const peers = openPeerList(app, nodes, chunkNodes, gateways);
  const rootFiles = openRootFiles(config.CDB64_ROOT_TX_INDEX_SOURCES, {
    ...common,
    // Clients never receive bytes of an index file, so a span of the file needs no hash of the complete file.
    async openContent(id, signal) {
      const { size, inspect } = await content.openIndexFile(id, signal);
      return { size, read: inspect };
    },
  });
  closers.add("indexes of items", rootFiles.close);
  const rootQueries = openRootQueries(config.TRUSTED_GATEWAYS_URLS, common);
  closers.add("gateways' queries", rootQueries.close);
  const blockList = openBlockList(folder.moderation, systemClock);
  closers.add("block list", blockList.close);
  const extents = openExtents({
    folder: folder.content,
    mapPath: folder.contentMap,
    bytesMax: config.CACHE_BYTES_MAX,
    freeBytesMin: config.CACHE_FREE_BYTES_MIN,
    clock: systemClock,
    log,
  });
  closers.add("content cache", extents.close);
  const foundItems = openFoundItems(folder.foundItems, { log });
  closers.add("places of found items", foundItems.close);
  const content = openContent({
    reader,
    blockList,
    extents,
    nodes,
    chunkNodes,
    gateways,
    rootFiles,
    rootQueries,
    foundItems,
    checks,
    findUploaded,
    onLookup: createLookupMetrics(metrics),
  });
  closers.add("content", content.close);
  return { nodes, chunkNodes, gateways, peers, extents, blockList, content };
}

/** Most peers at one host of the public Internet. */
const perHostMax = 2;

function openPeerList(app: AppContext, nodes: Nodes, chunkNodes: Nodes, gateways: Gateways): PeerList {
  const discovered = discoverPeers(app, nodes, chunkNodes);
  return {
    gateways: () => {
      const chunkWeights = new Map(chunkNodes.sourceStatus().map((status) => [status.url, weightOf(status)]));
      const weight = (url: string) => chunkWeights.get(url) ?? 1;
      const trusted = gateways.sourceStatus().map((status) => {
        return { url: status.url, dataWeight: weightOf(status), chunkWeight: weight(status.url) };
      });
      const others = discovered().filter(({ kind }) => kind === "gateway");
      return [...trusted, ...others.map(({ url }) => ({ url, dataWeight: weight(url), chunkWeight: weight(url) }))];
    },
    nodes: () => discovered().filter(({ kind }) => kind === "node"),
  };
}

/** Starts the discovery of peers if the settings enable it. @returns Lists the peers so far. */
function discoverPeers({ config, log, closers }: AppContext, nodes: Nodes, chunkNodes: Nodes): () => readonly Peer[] {
  if (!config.PEER_DISCOVERY) return () => [];
  const rules = { ports: config.PEER_PORTS, allowsPrivate: config.PEER_PRIVATE_ADDRESSES };
  const trusted = new Set(nodes.all.map(({ url }) => url));
  const peers = openPeers({
    nodes: nodes.all,
    gateways: chunkNodes.all.filter(({ url }) => !trusted.has(url)),
    chunkNodes,
    reach: createReach(rules),
    isBlockedUrl: createUrlGuard(rules),
    // On a private network all peers may be on one machine.
    perHostMax: config.PEER_PRIVATE_ADDRESSES ? Number.POSITIVE_INFINITY : perHostMax,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("peers", peers.close);
  peers.start();
  return peers.list;
}
