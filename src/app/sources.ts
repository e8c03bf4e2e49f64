/**
 * Everything that content is made of, opened: this folder's cache and refusals, the nodes, other gateways.
 * @module
 */
import { hopHeaders, openGateways } from "../chain/gateways.ts";
import { nodeTimeoutsDefault, openNode } from "../chain/node.ts";
import { createNodes, type Nodes } from "../chain/nodes.ts";
import { openRootFiles } from "../chain/root-files.ts";
import { openRootQueries } from "../chain/root-queries.ts";
import type { Config } from "../config/settings.ts";
import { checksIn } from "../content/checks.ts";
import { type GatewayContentStore, openContent } from "../content/content.ts";
import type { FindUploaded } from "../content/uploaded.ts";
import { createLookupMetrics } from "../gateway/gateway-metrics.ts";
import type { PeerList } from "../gateway/peers.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { type BlockList, openBlockList } from "../store/block-list.ts";
import { type Extents, openExtents } from "../store/extents/extents.ts";
import { openFoundItems } from "../store/found-items.ts";
import type { IndexReader } from "../store/index/types.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import type { DataFolder } from "./data-folder.ts";
import { openPeerList } from "./peers.ts";
import { systemRandom } from "./random.ts";

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
  /** Finds what was uploaded here; told when the upload service is open, which itself needs what is opened here. */
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
