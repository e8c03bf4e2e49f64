/**
 * The gateway's surface: content, the chain, queries and what the gateway says of itself, as one Elysia
 * plugin.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Id } from "../../arweave/id.ts";
import { type CheckChunk, createChunks as createProvenChunks } from "../../chain/chunks.ts";
import type { Nodes } from "../../chain/nodes.ts";
import type { GatewayContentStore } from "../../content/content.ts";
import { createBlocks } from "../../gateway/blocks.ts";
import { type BroadcastListeners, createBroadcast } from "../../gateway/broadcast.ts";
import { createChunkProofs } from "../../gateway/chunk-proofs.ts";
import type { EventHub } from "../../gateway/events/event-hub.ts";
import { createFrames } from "../../gateway/frames.ts";
import { countChunks, createPostMetrics } from "../../gateway/gateway-metrics.ts";
import type { Health } from "../../gateway/health.ts";
import { gatewayInfo, type InfoOptions } from "../../gateway/info.ts";
import type { IsolationRules } from "../../gateway/isolation.ts";
import type { LargeManifests } from "../../gateway/large-manifests.ts";
import type { Names } from "../../gateway/names/names.ts";
import { createNetwork } from "../../gateway/network.ts";
import { type PeerList, peerRecord } from "../../gateway/peer-list.ts";
import { createProofs } from "../../gateway/proofs.ts";
import { createRelay } from "../../gateway/relay.ts";
import { createRelayGuard, type RelayBlockList } from "../../gateway/relayed-block-list.ts";
import type { CheckRelayed } from "../../gateway/relayed-check.ts";
import { createResolver } from "../../gateway/resolve.ts";
import { createSignedContent } from "../../gateway/signed-content.ts";
import { createSpread } from "../../gateway/spread.ts";
import { createTransactions } from "../../gateway/transactions.ts";
import { createChunks } from "../../gateway/weave-chunks.ts";
import type { Clock } from "../../lib/clock.ts";
import { writeJson } from "../../lib/json.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { IndexReader } from "../../store/index/index-types.ts";
import { acceptsPages } from "../failure-page.ts";
import { createHosts, type Hosts } from "../hosts.ts";
import { createMetricsRoutes, gatewayMetricsPaths } from "../metrics-routes.ts";
import { gatewayReference } from "../reference/gateway-reference.ts";
import { createReferenceRoutes } from "../reference/reference-routes.ts";
import type { Target } from "../request-target.ts";
import { normalizedPath } from "../reserved-paths.ts";
import { jsonTextResponse } from "../responses.ts";
import { createChainRoutes } from "./chain-routes.ts";
import { createChunkRoutes } from "./chunk-routes.ts";
import type { Apex } from "./content-address.ts";
import { createContentRoutes } from "./content-routes.ts";
import type { NoteContent } from "./content-sender.ts";
import { createEventRoutes } from "./event-routes.ts";
import { createFinalRecords } from "./final-records.ts";
import { createFrameRoutes } from "./frame-routes.ts";
import { createFailurePage, frontPage } from "./gateway-pages.ts";
import { createInvalidItemRoutes } from "./invalid-item-routes.ts";
import { createNameRoutes } from "./name-routes.ts";
import type { NotFoundPage } from "./named-content.ts";
import { createProofRoutes } from "./proof-routes.ts";
import { createResponseCaches } from "./response-cache.ts";
import {
  createExplorerRoutes,
  createVerifyModuleRoute,
  createWalletPageRoutes,
  type WalletPagesOptions,
} from "./script-pages.ts";
import { createServiceRoutes, rootDetail } from "./service-routes.ts";

/** The parts of the index that routes read; query threads have their own connections. */
export type GatewayReader = Pick<
  IndexReader,
  | "block"
  | "blockText"
  | "finalBlock"
  | "finalTransaction"
  | "invalidItems"
  | "itemsWithin"
  | "locate"
  | "tip"
  | "transactionAt"
  | "transactionRecord"
  | "transactionStatus"
  | "transactionText"
  | "transactionsOfBlock"
  | "weaveSpan"
>;

export type GatewayOptions = Readonly<{
  reader: GatewayReader;
  content: Pick<GatewayContentStore, "open" | "openIndexed">;
  /** Of what nodes give; content asks for itself. */
  blockList: RelayBlockList;
  nodes: Nodes;
  /** Asked for chunks; gateways that serve `/chunk` may be among them. */
  chunkNodes: Nodes;
  checkChunk: CheckChunk;
  names: Names;
  /** For the peer record. */
  peers: PeerList;
  /** Runs `checkRelayed` (workers/verify.ts) in a thread. */
  checkRelayed: CheckRelayed;
  largeManifests: Pick<LargeManifests, "resolve">;
  listeners: BroadcastListeners;
  /** The routes of `/graphql`. */
  graphql: AnyElysia | undefined;
  /** Live events; undefined where they are off. */
  events?: Pick<EventHub, "subscribe"> | undefined;
  /** The routes of administration; undefined where they have a listener of their own. */
  administration: AnyElysia | undefined;
  /** The pages that use a wallet. */
  walletPages?: WalletPagesOptions | undefined;
  info: InfoOptions;
  health: Health;
  metrics: Metrics;
  /** Whether queries run here. Default: true. */
  servesMetrics?: boolean;
  clock: Clock;
  settings: GatewaySettings;
}>;

/** How a gateway behaves. */
export type GatewaySettings = Readonly<{
  /** Hosts whose subdomains are names and sandboxes; redirects from hosts below none of them go to the first. */
  rootHosts: readonly string[];
  /** Where the operator says that the gateway is. */
  publicUrl?: string | undefined;
  isolation: IsolationRules["mode"];
  redirectAll: boolean;
  sandboxScheme: "http" | "https" | undefined;
  /** Content of `/`, and of every path that names nothing else. */
  apex: Apex | undefined;
  /** Response of hosts of unknown names. */
  notFoundPage: NotFoundPage;
  /** Whether content carries its tags, owner and signature as headers. */
  sendsArweaveHeaders: boolean;
  /** A body up to this size that is not on disk is sent when complete. Bytes. */
  coldBufferBytes: number;
  /** Memory of the response cache; 0 disables it. Bytes. */
  responseCacheBytesMax: number;
}>;

/** The gateway over HTTP. */
export type Gateway = Readonly<{
  app: AnyElysia;
  /** Responds from the response cache, or returns undefined (`ImmediateOptions.cachedResponse`). */
  hit: (request: Request) => Response | undefined;
  /** Finds the read of a record that never changes (`ImmediateOptions.withoutRouter`). */
  finalRecord: ReturnType<typeof createFinalRecords>;
  /** Shows a failure to a person (`ServerOptions.failurePage`). */
  failurePage: ReturnType<typeof createFailurePage>;
  /** The path that a request means (`ServerOptions.pathOf`): hosts of content have no other spellings of ours. */
  pathOf: (target: Target) => string;
  /** Whether a host is the gateway's own, with all routes, and not that of an id or a name. */
  isOwnHost: (host: string) => boolean;
  /** Drops cached responses of an id: when it is blocked, or its place changed. */
  forget: (id: Id) => void;
  /** Drops all cached responses, also of nodes: when a hash is blocked, or the chain has changed. */
  forgetAll: () => void;
}>;

/** The result needs no close. */
export function createGateway(options: GatewayOptions): Gateway {
  const { reader, content, nodes, clock, metrics, settings, checkRelayed } = options;
  const hosts = createHosts(settings.rootHosts);
  const memory = createResponseCaches(settings.responseCacheBytesMax, clock);
  const relay = createRelay(nodes);
  const network = createNetwork(nodes, reader, clock);
  const relayedData = createRelayGuard(options.blockList);
  const proofs = createChunkProofs(reader, content);
  const provenChunks = createProvenChunks(options.chunkNodes, nodes, options.checkChunk);
  const ownChunks = createProvenChunks(nodes, nodes, options.checkChunk);
  const sources = { provenChunks, ownChunks, relay };
  const chunkParts = { reader, content, ...sources, proofs, relayedData, keep: options.listeners.onChunk };
  const infoText = writeJson(gatewayInfo(options.info));
  const spread = createSpread(nodes, undefined, createPostMetrics(metrics, nodes.all));

  const transactions = createTransactions({ reader, content, relay, relayedData, checkRelayed });
  const contentRoutes = createContentRoutes({
    resolver: createResolver(options.largeManifests),
    content,
    signedContentOf: settings.sendsArweaveHeaders ? createSignedContent({ reader, content }) : undefined,
    memory,
    hosts,
    isolation: {
      mode: settings.isolation,
      hasRootHost: settings.rootHosts.length > 0,
      redirectAll: settings.redirectAll,
    },
    sandboxScheme: settings.sandboxScheme,
    apex: settings.apex,
    names: options.names,
    notFoundPage: settings.notFoundPage,
    coldBufferBytes: settings.coldBufferBytes,
    clock,
    note: createCacheStats(metrics),
  });
  addMetrics(metrics, memory.bytes, memory.count);

  const app = new Elysia({ strictPath: true })
    .use(
      createServiceRoutes({
        info: () => gatewayInfo(options.info),
        peers: (signal) => peerRecord(options.peers, network, signal),
        health: options.health,
      }),
    )
    .use(createMetricsRoutes(options.servesMetrics === false ? undefined : metrics, gatewayMetricsPaths))
    .use(
      createChainRoutes({
        network,
        blocks: createBlocks(reader, network, relay, checkRelayed),
        transactions,
        broadcast: createBroadcast(spread, options.listeners),
        relay,
      }),
    )
    .use(createProofRoutes(createProofs({ reader, content, chunkProofs: proofs, provenChunks })))
    .use(
      createChunkRoutes({
        chunks: countChunks(createChunks(chunkParts), metrics),
        memory: memory.chunks,
      }),
    );
  app.use(createInvalidItemRoutes(reader)).use(createNameRoutes(options.names)).use(createVerifyModuleRoute());
  app.use(createFrameRoutes({ frames: createFrames({ reader, content, transactions }), sender: contentRoutes.sender }));
  // The explorer reads its lists by GraphQL.
  if (options.graphql !== undefined) app.use(options.graphql).use(createExplorerRoutes());
  for (const routes of addedRoutes(options)) app.use(routes);
  if (settings.apex === undefined)
    app.get("/", ({ request }) => frontResponse(request, app, options, infoText), { detail: rootDetail });
  app.use(createReferenceRoutes(gatewayReference, () => app.routes, settings.publicUrl));
  app.use(contentRoutes.routes);
  const forgetAll = inOrder(memory.clear, relay.forgetAll, network.forget);
  const failurePage = createFailurePage({ hosts, publicUrl: settings.publicUrl, has: hasRoute(app) });
  const lookUp = { pathOf: pathsOn(hosts), isOwnHost: hosts.isOwn };
  const finalRecord = createFinalRecords({ reader, memory: memory.records, isOwnHost: hosts.isOwn });
  return { app, hit: contentRoutes.hit, finalRecord, failurePage, ...lookUp, forget: memory.forget, forgetAll };
}

/** The routes of the program's other parts, and the pages that use them. */
function addedRoutes({ administration, events, walletPages }: GatewayOptions): readonly AnyElysia[] {
  const pages = walletPages && createWalletPageRoutes(walletPages);
  const live = events && createEventRoutes(events);
  return [pages, live, administration].filter((routes) => routes !== undefined);
}

/** The front page for browsers, and the information record for programs. */
function frontResponse(
  request: Request,
  app: AnyElysia,
  { info: { release, services }, health }: GatewayOptions,
  infoText: string,
): Response {
  if (!acceptsPages(request.headers)) return jsonTextResponse(infoText, 200, { Vary: "Accept" });
  const page = frontPage({ release, services, health: health.record(), has: hasRoute(app) });
  page.headers.set("Vary", "Accept");
  return page;
}

function hasRoute(app: AnyElysia): (path: string) => boolean {
  return (path) => app.routes.some((route) => route.path === path);
}

/** Hosts of content have none of our paths, and so no other spellings of them. */
function pathsOn(hosts: Hosts): Gateway["pathOf"] {
  return ({ host, path }) => {
    const meant = normalizedPath(path);
    return meant === path || hosts.isOwn(host) ? meant : path;
  };
}

function inOrder(...calls: readonly (() => void)[]): () => void {
  return () => {
    for (const call of calls) call();
  };
}

function addMetrics(metrics: Metrics, bytes: () => number, count: () => number): void {
  metrics.gaugeOf({
    name: "memory_hits_bytes",
    help: "Memory that bodies up to 1 MiB take, in bytes.",
    read: bytes,
  });
  metrics.gaugeOf({ name: "memory_hits_entries", help: "Bodies up to 1 MiB in memory.", read: count });
}

/** Counts responses by whether their bytes were on this disk, under ar-io-node's names. */
function createCacheStats(metrics: Metrics): NoteContent {
  const of = (name: string, help: string) => {
    const { series } = metrics.counterSeries({ name, help, labels: ["request_type"] });
    return { full: series({ request_type: "full" }), range: series({ request_type: "range" }) };
  };
  const onDisk = of("contiguous_data_cache_hit_total", "Content that was on this disk; from memory not counted.");
  const misses = of("contiguous_data_cache_miss_total", "Content that had to be fetched.");
  return (status, wasOnDisk) => {
    if (status !== 200 && status !== 206) return; // no content
    const counter = wasOnDisk ? onDisk : misses;
    counter[status === 206 ? "range" : "full"].add(1);
  };
}
