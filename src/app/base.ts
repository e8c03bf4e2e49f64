/**
 * The parts that every service uses: threads, the index, nodes, content and metrics.
 * @module
 */
import { type Gateways, hopHeaders, openGateways } from "../chain/gateways.ts";
import { nodeTimeoutsDefault, openNode } from "../chain/node.ts";
import { createNodes, type Nodes, weightOf } from "../chain/nodes.ts";
import { openPeers, type Peer } from "../chain/peers.ts";
import { createReach, createRefusal } from "../chain/reach.ts";
import { openRootFiles } from "../chain/root-files.ts";
import { openRootQueries } from "../chain/root-queries.ts";
import type { Config } from "../config/settings.ts";
import { checksIn, type GatewayContentStore, openContent } from "../content/content.ts";
import type { FindUploaded } from "../content/uploaded.ts";
import { createLookupMetrics } from "../gateway/gateway-metrics.ts";
import type { HealthCheck } from "../gateway/health.ts";
import type { PeerList } from "../gateway/peers.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { addProcessMetrics, createMetrics, type Metrics } from "../lib/metrics.ts";
import { secp256k1Implementation } from "../lib/secp256k1.ts";
import { type BlockList, openBlockList } from "../store/block-list.ts";
import { type Extents, openExtents } from "../store/extents/extents.ts";
import { openFoundItems } from "../store/found-items.ts";
import { openIndexReader } from "../store/index/reader.ts";
import { createIndexWriterCalls, type IndexWriterCalls } from "../store/index/thread.ts";
import type { IndexReader } from "../store/index/types.ts";
import { openIndexWriter } from "../store/index/writer.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import type { DataFolder } from "./data-folder.ts";
import { readFilters, type SetFilters } from "./filters.ts";
import { systemRandom } from "./random.ts";
import { openThreads, type Threads } from "./threads.ts";

/** What the base is opened with. */
export type BaseParts = Readonly<{
  config: Config;
  /** Locked by this process. */
  folder: DataFolder;
  /** Chain nodes, in the order of requests. */
  nodeUrls: readonly string[];
  /** Finds uploads that are stored here; none without an upload service. */
  findUploaded?: FindUploaded;
  log: Log;
  closers: Closers;
}>;

/**
 * Creates the list of health checks of parts that open one after another: each part adds its own when it is open.
 *
 * @param first - Checks of what is open already.
 */
export function createCheckList(
  first: readonly HealthCheck[],
): Readonly<{ check: HealthCheck; add: (check: HealthCheck) => void }> {
  const checks = [...first];
  return {
    check: () => checks.flatMap((check) => check()),
    add: (check) => {
      checks.push(check);
    },
  };
}

/** The base, open. */
export type Base = Readonly<{
  filters: SetFilters;
  metrics: Metrics;
  threads: Threads;
  reader: IndexReader;
  /** The one client of the thread that writes the index. */
  index: IndexWriterCalls;
  sources: Sources;
}>;

/**
 * Opens it; everything is closed by `closers`.
 *
 * @throws Misuse when a filter is no filter.
 */
export function openBase({
  config,
  folder,
  nodeUrls,
  findUploaded = async () => undefined,
  log,
  closers,
}: BaseParts): Base {
  const filters = readFilters(config);
  log.info("signatures over secp256k1", { implementation: secp256k1Implementation() });
  const metrics = createMetrics();
  addProcessMetrics(metrics);
  const threads = openThreads(config, closers);
  const reader = openIndex(folder, threads.index, closers);
  const index = createIndexWriterCalls(folder.index, (job) => threads.index.run("write", job));
  const sources = openSources({
    config,
    folder,
    nodeUrls,
    reader,
    verify: threads.verify,
    log,
    closers,
    metrics,
    findUploaded,
  });
  return { filters, metrics, threads, reader, index, sources };
}

/** Creates the index file, so that responses need not wait for the thread that writes it. */
function openIndex(folder: DataFolder, pool: Pool<Workers["index"]>, closers: Closers): IndexReader {
  openIndexWriter(folder.index, { clock: systemClock }).close();
  closers.add("index", () => pool.run("close", { path: folder.index }));
  const reader = openIndexReader(folder.index);
  closers.add("index reader", reader.close);
  return reader;
}

/** What content is made of, open. */
export type Sources = Readonly<{
  nodes: Nodes;
  /** Asked for chunks; gateways among them, because every chunk is proven. */
  chunkNodes: Nodes;
  peers: PeerList;
  extents: Extents;
  blockList: BlockList;
  content: GatewayContentStore;
}>;

/** What is needed to open them. */
export type SourceParts = Readonly<{
  config: Config;
  folder: DataFolder;
  nodeUrls: readonly string[];
  reader: IndexReader;
  verify: Pool<Workers["verify"]>;
  /** Finds uploads that are stored here. */
  findUploaded: FindUploaded;
  metrics: Metrics;
  log: Log;
  closers: Closers;
}>;

/** Opens them; each is closed by `closers`. */
export function openSources({
  config,
  folder,
  nodeUrls,
  reader,
  verify,
  findUploaded,
  metrics,
  log,
  closers,
}: SourceParts): Sources {
  const common = { clock: systemClock, random: systemRandom, log };
  const nodes = createNodes(
    nodeUrls.map((url) => openNode(url)),
    common,
  );
  closers.add("nodes", nodes.close);
  // Every chunk is proven, so a gateway is as good a source of chunks as a node.
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
  const peers = openPeerList({ config, nodes, chunkNodes, gateways, log, closers });
  const rootFiles = openRootFiles(config.CDB64_ROOT_TX_INDEX_SOURCES, {
    ...common,
    // A look-up gives no byte of an index to anyone, so that a span of it needs no hash of all of it.
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
    checks: checksIn(verify),
    findUploaded,
    onLookup: createLookupMetrics(metrics),
  });
  closers.add("content", content.close);
  return { nodes, chunkNodes, peers, extents, blockList, content };
}

/** What is needed. */
export type PeerListParts = Readonly<{
  config: Config;
  nodes: Nodes;
  /** Nodes, then the trusted gateways; peers help out here. */
  chunkNodes: Nodes;
  gateways: Gateways;
  log: Log;
  closers: Closers;
}>;

/** Machines at one host of the public Internet. */
const perHostMax = 2;

/** Opens the list; learning, where it is switched on, is ended by `closers`. */
export function openPeerList({ config, nodes, chunkNodes, gateways, log, closers }: PeerListParts): PeerList {
  const learnt = learnPeers({ config, nodes, chunkNodes, gateways, log, closers });
  const weights = () =>
    new Map(chunkNodes.sourceStatus().map((sourceStatus) => [sourceStatus.url, weightOf(sourceStatus)]));
  return {
    gateways: () => {
      const chunkWeights = weights();
      const chosen = gateways.sourceStatus().map((sourceStatus) => {
        const chunkWeight = chunkWeights.get(sourceStatus.url) ?? 1;
        return { url: sourceStatus.url, dataWeight: weightOf(sourceStatus), chunkWeight };
      });
      const others = learnt().filter(({ kind }) => kind === "gateway");
      return [
        ...chosen,
        ...others.map(({ url }) => {
          const weight = chunkWeights.get(url) ?? 1;
          return { url, dataWeight: weight, chunkWeight: weight };
        }),
      ];
    },
    nodes: () => learnt().filter(({ kind }) => kind === "node"),
  };
}

function learnPeers({ config, nodes, chunkNodes, log, closers }: PeerListParts): () => readonly Peer[] {
  if (!config.PEER_DISCOVERY) return () => [];
  const rules = { ports: config.PEER_PORTS, allowsPrivate: config.PEER_PRIVATE_ADDRESSES };
  const chosen = new Set(nodes.all.map(({ url }) => url));
  const peers = openPeers({
    nodes: nodes.all,
    gateways: chunkNodes.all.filter(({ url }) => !chosen.has(url)),
    chunkNodes,
    reach: createReach(rules),
    isBlockedUrl: createRefusal(rules),
    // On a closed network one machine may be all there is.
    perHostMax: config.PEER_PRIVATE_ADDRESSES ? Number.POSITIVE_INFINITY : perHostMax,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("peers", peers.close);
  peers.start();
  return peers.list;
}
