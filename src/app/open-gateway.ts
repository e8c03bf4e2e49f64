/**
 * The gateway: names, administration, routes, listeners, webhooks and indexing, opened in this order and closed in
 * reverse order.
 * @module
 */
import { EventEmitter } from "node:events";

import type { AnyElysia } from "elysia";
import type { Id } from "../arweave/id.ts";
import type { Wallet } from "../arweave/wallet.ts";
import type { Config } from "../config/settings.ts";
import { type EventHub, openEventHub } from "../gateway/events/event-hub.ts";
import { createForkMetrics } from "../gateway/gateway-metrics.ts";
import { createConcerns, createHealth, type Health, type HealthCheck } from "../gateway/health.ts";
import { isolationReasons } from "../gateway/isolation.ts";
import { createLargeManifests, type LargeManifests } from "../gateway/large-manifests.ts";
import { createChunkKeeper, createDataKeeper } from "../gateway/posted-data.ts";
import type { AdminEndpoint } from "../http/admin-endpoints.ts";
import type { Monitored } from "../http/gateway/admin-routes.ts";
import { createGateway, type Gateway } from "../http/gateway/gateway.ts";
import { graphqlForward, graphqlOrigin } from "../http/graphql/graphql-forward.ts";
import { graphql } from "../http/graphql/graphql-routes.ts";
import type { RequestMetrics } from "../http/request-metrics.ts";
import type { FollowStatus } from "../indexing/follow.ts";
import type { Indexing, IndexingHooks } from "../indexing/indexing.ts";
import { openWebhooks, type Webhooks } from "../indexing/webhooks.ts";
import { systemClock } from "../lib/clock.ts";
import { openHttp } from "../lib/http-client.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Metrics } from "../lib/metrics.ts";
import { invalidValue } from "../lib/printable.ts";
import type { BlockList } from "../store/block-list.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import { openManifestIndexes } from "../store/manifests/manifest-indexes.ts";
import { openOutbox } from "../store/outbox.ts";
import { version } from "../version.ts";
import { openAdministrationRoutes } from "./administration.ts";
import { type Base, type BaseParts, createCheckList, openBase, type Sources } from "./base.ts";
import { openChainIndexing } from "./chain-indexing.ts";
import { badSettings } from "./complaints.ts";
import { type AdminKey, adminKeyOf } from "./keys.ts";
import {
  closeListenersFirst,
  type ListenerName,
  noteListeners,
  openGatewayListener,
  openServiceListeners,
  prepareListening,
  rateLimitsOf,
  requestMetricsOf,
  type ServicePlace,
} from "./listeners.ts";
import { type MonitoredServices, openMonitoring } from "./monitoring.ts";
import { openColumnar, queriedStoreOptions } from "./open-columnar.ts";
import { type OpenNames, openNames } from "./open-names.ts";
import { paidReadsOf, type SoldReading } from "./open-paid-reading.ts";
import { systemRandom, systemRandomBytes } from "./random.ts";
import { openManifestThreads, type Threads } from "./threads.ts";
import { openTraces } from "./traces.ts";
import { walletPagesOf } from "./wallet-pages.ts";

/** Parameters of {@link openGateway}. */
export type GatewayParts = BaseParts &
  Readonly<{
    /** Hosts whose subdomains are names and sandboxes. */
    rootHosts: readonly string[];
    /** Reasons why the start is not complete, although the gateway is open. */
    starting?: HealthCheck | undefined;
    /** The wallet of uploads; undefined while uploads are off. */
    wallet?: Readonly<{ wallet: Pick<Wallet, "address"> }> | undefined;
    /** Under `dev`: key of a funded wallet, for the page for uploads. */
    testWallet?: JsonObject | undefined;
    /** Databases that were found damaged since the start. */
    damage?: HealthCheck;
    /** Paid reading beyond the rate limits; undefined while it is off. */
    paid?: SoldReading | undefined;
    /** Parts of other services that the operator monitors. */
    monitored?: MonitoredServices;
    /** Endpoints that the payment service adds to the admin API. */
    operatorEndpoints?: readonly AdminEndpoint[];
    /** Called with the URL of each open listener. For a setting of port 0 it has the port that was chosen. */
    onListening?: (name: ListenerName, url: string) => void;
  }>;

/** Events of the admin API and of posts. Parts that open after their source subscribe to them. */
type GatewayEvents = {
  blockListChanged: [];
  /** The index has these ids from now on. */
  items: [ids: readonly Id[]];
  /** A requested transaction was found, verified and indexed. */
  queuedTransaction: [id: Id];
  bundleQueued: [];
  transactionPosted: [];
};

export type OpenGateway = Readonly<{
  url: string;
  /** URL of the admin API if it has a separate listener. */
  adminUrl: string | undefined;
  /** URLs of the other services. */
  serviceUrls: ReadonlyMap<ServicePlace["name"], string>;
  /** Requests a bundle to be indexed regardless of the filters, also before a block contains it. */
  wantBundle: (id: Id) => Promise<void>;
  /** The generated admin key, to be shown once; empty if the operator set one. */
  shownKey: AdminKey["shown"];
  reader: IndexReader;
  indexing: Indexing;
  health: Health;
  /** The status record of the operator. */
  status: Monitored["status"];
  sources: Sources;
  /** Empties the response caches after a change of the chain. */
  forgetAll: () => void;
}>;

/** Timeout of a query on another host. Milliseconds. */
const forwardMsMax = 60_000;

/**
 * Opens the gateway; `closers` close it.
 *
 * @param services - The other services. Each gets its own listener, and a path on the gateway's listener.
 * @throws Misuse for an invalid filter or an unavailable port.
 */
export function openGateway(
  parts: GatewayParts,
  base: Base = openBase(parts),
  services: readonly ServicePlace[] = [],
): OpenGateway {
  const { config } = parts;
  const { metrics, threads, reader, sources } = base;
  const { content, extents, nodes } = sources;
  const named = openNames(parts, sources.blockList, metrics);
  const events = new EventEmitter<GatewayEvents>();
  const columnar = openColumnar(parts, base);
  const concerns = createCheckList([createConcerns({ extents, nodes, pools: threads }), columnar.check]);
  const queryStart = createQueryStart(config, threads);
  const follow = () => indexing.status().follow;
  const health = healthOf(parts, reader, named.notes, concerns.check, queryStart.check, follow);
  const key = adminKeyOf(config, parts.folder.keys);
  const requests = requestMetricsOf(parts, metrics);
  const monitored = openMonitoring(parts, base, {
    requests,
    indexing: () => indexing.status(),
    services: parts.monitored ?? {},
  });
  const administration = openAdministrationRoutes(parts, base, {
    key: key.key,
    listeners: {
      onBlockListChange: () => events.emit("blockListChanged"),
      onItems: (ids) => events.emit("items", ids),
      onQueuedTransaction: (id) => events.emit("queuedTransaction", id),
      onBundle: () => events.emit("bundleQueued"),
      concerns: concerns.check,
    },
    confirm: columnar.confirm,
    monitored,
    credits: parts.operatorEndpoints,
  });
  const isApart = config.ADMIN_LISTEN !== undefined;
  const live = openEvents(parts, base);
  const gateway = createRoutes(parts, base, {
    health,
    live,
    named,
    services,
    administration: isApart ? undefined : administration.routes,
    onPosted: () => events.emit("transactionPosted"),
  });
  events.on("blockListChanged", gateway.forgetAll);
  events.on("items", (ids) => forget(ids, gateway, sources));
  const apart = isApart ? administration.routes : undefined;
  const { servers, ...urls } = openListeners(parts, metrics, {
    requests,
    gateway,
    services,
    administration: apart,
  });
  const webhooks = openSetWebhooks(parts, base);
  if (webhooks !== undefined) events.on("queuedTransaction", webhooks.onQueuedTransaction);
  const indexing = openChainIndexing(parts, base, hooksOf(base, gateway, webhooks), concerns);
  events.on("bundleQueued", indexing.wakeBundles);
  events.on("transactionPosted", indexing.wake);
  closeListenersFirst(parts, servers, health, live?.close);
  startThreads(parts, queryStart);
  return {
    ...urls,
    wantBundle: administration.wantBundle,
    shownKey: key.shown,
    reader,
    indexing,
    health,
    sources,
    status: monitored.status,
    forgetAll: () => {
      gateway.forgetAll();
      content.forgetAll();
    },
  };
}

type ListenersNeeds = Readonly<{
  requests: RequestMetrics;
  gateway: Gateway;
  services: readonly ServicePlace[];
  /** The admin API for a separate listener. */
  administration: AnyElysia | undefined;
}>;

/** Opens all listeners, and before them the traces of their requests. */
function openListeners(
  parts: GatewayParts,
  metrics: Metrics,
  { requests, gateway, services, administration }: ListenersNeeds,
) {
  const spans = openTraces(parts, metrics, parts.nodeUrls);
  const { listening, renew } = prepareListening(parts, metrics, requests, spans);
  const limiter = listening.limiter?.at(gateway.isOwnHost);
  const paidReads = paidReadsOf(parts.paid, limiter, parts.log);
  const server = openGatewayListener({ ...listening, limiter }, gateway, services, paidReads);
  const others = openServiceListeners(listening, services, { administration, metrics });
  const servers = [server, ...others.servers];
  renew(servers);
  noteListeners(parts.onListening, server, others);
  return { servers, url: server.url, adminUrl: others.adminUrl, serviceUrls: others.serviceUrls };
}

/**
 * Starts a query thread before the first query; the gateway is not ready before it has started. The others start when
 * queries overlap: each takes 25 MiB.
 */
function createQueryStart({ GRAPHQL_HOST: host }: Config, { query }: Threads) {
  let isStarting = host === undefined;
  return {
    check: () => (isStarting ? ["The query thread is starting."] : []),
    begin: async (): Promise<void> => {
      // One that cannot start makes queries fail, which say why.
      if (host === undefined) await Promise.allSettled([query.ping()]);
      isStarting = false;
    },
  };
}

/** Threads start this long after the listeners: they compete with the first response for the processors. */
const threadsStartAfterMs = 50;

/** Starts the threads for which a first query would wait. */
function startThreads({ closers }: GatewayParts, queryStart: ReturnType<typeof createQueryStart>): void {
  const timer = setTimeout(() => void queryStart.begin(), threadsStartAfterMs);
  closers.add("start of threads", () => clearTimeout(timer));
}

function healthOf(
  { config, rootHosts, starting, damage }: GatewayParts,
  reader: IndexReader,
  notes: HealthCheck,
  concerns: HealthCheck,
  queryStart: HealthCheck,
  follow: () => FollowStatus,
): Health {
  const isolation = {
    mode: config.CONTENT_ISOLATION,
    hasRootHost: rootHosts.length > 0,
    redirectAll: config.SANDBOX_ALL,
  };
  const none = () => [];
  return createHealth({
    clock: systemClock,
    checks: [concerns, damage ?? none],
    notes: [() => isolationReasons(isolation), notes],
    readiness: [
      () => (reader.tip() === undefined ? ["No block has been followed yet."] : []),
      starting ?? none,
      queryStart,
    ],
    chain: () => {
      const { ours, theirHeight, lag } = follow();
      return { height: ours?.height ?? null, tip: theirHeight ?? null, lag: lag ?? null };
    },
  });
}

type RoutesNeeds = Readonly<{
  health: Health;
  live: EventHub | undefined;
  named: OpenNames;
  services: readonly ServicePlace[];
  /** Undefined if the admin API has a separate listener. */
  administration: AnyElysia | undefined;
  onPosted: () => void;
}>;

function createRoutes(parts: GatewayParts, base: Base, needs: RoutesNeeds): Gateway {
  const { config, log } = parts;
  const { filters, threads, reader, sources, metrics } = base;
  const { health, live, named, services, administration, onPosted } = needs;
  const keepData = createDataKeeper({ check: base.checks.transaction, content: sources.content, log });
  return createGateway({
    reader,
    content: sources.content,
    blockList: sources.blockList,
    nodes: sources.nodes,
    chunkNodes: sources.chunkNodes,
    checkChunk: base.checks.chunk,
    names: named.names,
    peers: sources.peers,
    checkRelayed: (job, signal) => threads.verify.run("checkRelayed", job, { signal }),
    largeManifests: openLargeManifests(parts),
    listeners: {
      onTransaction: async (transaction, body, signal) => {
        await keepData(transaction, body, signal);
        onPosted(); // after the data is stored, so that the data precedes the pending row in the index
      },
      onChunk: createChunkKeeper(sources.extents, log),
    },
    graphql: queriesOf(parts, base, live),
    events: live,
    administration,
    walletPages: { pages: walletPagesOf(config, parts.wallet !== undefined), testWallet: parts.testWallet },
    info: {
      wallet: config.AR_IO_WALLET ?? parts.wallet?.wallet.address,
      processId: config.IO_PROCESS_ID,
      unbundleFilter: filters.unbundle.json,
      indexFilter: filters.index.json,
      release: version,
      services: servicesOf(config, services),
      features: featuresOf(config),
      limits: config.ENABLE_RATE_LIMITER ? rateLimitsOf(config) : undefined,
    },
    health,
    metrics,
    servesMetrics: !config.METRICS_ON_ADMIN_LISTEN,
    clock: systemClock,
    settings: {
      rootHosts: parts.rootHosts,
      publicUrl: config.GATEWAY_PUBLIC_URL,
      isolation: config.CONTENT_ISOLATION,
      redirectAll: config.SANDBOX_ALL,
      sandboxScheme: config.SANDBOX_PROTOCOL,
      apex: named.apex,
      notFoundPage: named.notFoundPage,
      sendsArweaveHeaders: config.ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED,
      coldBufferBytes: config.COLD_BUFFER,
      responseCacheBytesMax: config.HOT_BYTES_MAX,
    },
  });
}

/** Opens live events, unless the settings leave no subscribers. */
function openEvents(
  { config, log, closers }: GatewayParts,
  { reader, metrics, onIndexWritten }: Base,
): EventHub | undefined {
  if (config.EVENT_SUBSCRIBERS_MAX === 0) return undefined;
  const live = openEventHub({ journal: reader.journal, subscribersMax: config.EVENT_SUBSCRIBERS_MAX, log });
  // Also when a listener cannot be opened.
  closers.add("live events", live.close);
  onIndexWritten(live.wake);
  metrics.gaugeOf({ name: "event_subscribers", help: "Clients that follow live events.", read: live.count });
  metrics.countOf({
    name: "event_subscribers_cut_total",
    help: "Clients of live events that were cut because they read too slowly.",
    read: live.cuts,
  });
  return live;
}

/** Names of the enabled features for the information record. */
function featuresOf(config: Config): readonly string[] {
  const switches = {
    "arweave-headers": config.ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED,
    "graphql-forwarding": config.GRAPHQL_HOST !== undefined,
    "redirects-to-sandboxes": config.SANDBOX_ALL,
    webhooks: config.WEBHOOK_TARGET_SERVERS.length > 0,
  };
  return Object.entries(switches).flatMap(([name, isOn]) => (isOn ? [name] : []));
}

/** GraphQL requests are executed here, or forwarded to GRAPHQL_HOST. */
function queriesOf(
  { config, folder, log, closers }: GatewayParts,
  { threads, reader }: Base,
  live: EventHub | undefined,
): AnyElysia {
  if (config.GRAPHQL_HOST === undefined) {
    return graphql({
      pool: threads.query,
      index: reader,
      contentFolder: folder.content,
      store: queriedStoreOptions(config, folder),
      timeoutMs: config.QUERY_TIMEOUT_MS,
      live,
      clock: systemClock,
      log,
    });
  }
  const origin = graphqlOriginOf(config.GRAPHQL_HOST, config.GRAPHQL_PORT);
  const http = openHttp({
    firstByteMs: config.QUERY_TIMEOUT_MS,
    stallMs: config.QUERY_TIMEOUT_MS,
    totalMs: forwardMsMax,
  });
  closers.add("client of GRAPHQL_HOST", http.close);
  return graphqlForward({ origin, http, name: crypto.randomUUID(), log });
}

/** The origin of GRAPHQL_HOST. @throws Misuse for an invalid host. */
export function graphqlOriginOf(host: string, port: number): string {
  const origin = graphqlOrigin(host, port);
  if (origin === undefined) throw badSettings([invalidValue("GRAPHQL_HOST", host, "a host or an origin")]);
  return origin;
}

/** Addresses of the other services that hold for every client: a public URL, or a path of this listener. */
function servicesOf(config: Config, services: readonly ServicePlace[]): Readonly<Record<string, string>> {
  const publicUrls = { payment: config.PAYMENT_PUBLIC_URL, upload: config.UPLOAD_PUBLIC_URL };
  return Object.fromEntries(
    services.flatMap(({ name }) => {
      const url = publicUrls[name] ?? (config.MOUNT_SERVICES ? `/${name}` : undefined);
      return url === undefined ? [] : [[name, url] as const];
    }),
  );
}

/** Webhooks and caches follow the changes of the index. */
function hooksOf({ metrics, reader, sources }: Base, gateway: Gateway, webhooks: Webhooks | undefined): IndexingHooks {
  const forks = createForkMetrics(metrics, reader.tip()?.height ?? -1);
  return {
    onBlock: (block) => {
      forks.onBlock(block.height);
      forget(block.ids, gateway, sources);
      webhooks?.onBlock(block);
    },
    onItems: (ids, rootId) => {
      forget(ids, gateway, sources);
      // Cached responses of the root have bytes of these items, and one of them may be blocked.
      if (rootId !== undefined && isAnythingBlocked(sources.blockList)) gateway.forget(rootId);
      webhooks?.onItems(ids);
    },
    onRollback: (fromHeight) => {
      forks.onRollback(fromHeight);
      gateway.forgetAll();
      sources.content.forgetAll();
      webhooks?.onRollback(fromHeight); // last: it writes to a disk that may be full
    },
  };
}

function isAnythingBlocked(blockList: BlockList): boolean {
  return blockList.has("id") || blockList.has("hash");
}

/** Drops the cached responses and the cached content of ids that have changed. */
function forget(ids: readonly Id[], gateway: Gateway, { content }: Sources): void {
  for (const id of ids) {
    gateway.forget(id);
    content.forget(id);
  }
}

/** Timeout of a delivery. Milliseconds. */
const responseMsMax = 10_000;

/** Opens webhooks if the settings name a target. */
function openSetWebhooks(
  { config, folder, log, closers }: GatewayParts,
  { filters, reader, metrics }: Base,
): Webhooks | undefined {
  const targets = [...new Set(config.WEBHOOK_TARGET_SERVERS)];
  if (targets.length === 0) return undefined;
  const outbox = openOutbox(folder.webhooks, targets, systemClock);
  closers.add("outbox of webhooks", outbox.close);
  const http = openHttp({ firstByteMs: responseMsMax, stallMs: responseMsMax, totalMs: responseMsMax });
  closers.add("client of webhooks", http.close);
  const webhooks = openWebhooks({
    targets,
    indexFilter: filters.webhookIndex.filter,
    blockFilter: filters.webhookBlock.filter,
    secret: config.WEBHOOK_SECRET,
    outbox,
    reader,
    http,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("webhooks", webhooks.close);
  metrics.gaugeOf({
    name: "webhook_letters",
    help: "Webhook deliveries in the outbox.",
    read: webhooks.waiting,
  });
  return webhooks;
}

function openLargeManifests({ config, folder, log, closers }: GatewayParts): LargeManifests {
  const indexes = openManifestIndexes({
    folder: folder.manifests,
    bytesMax: config.MANIFEST_INDEX_BYTES_MAX,
    clock: systemClock,
    log,
  });
  closers.add("manifest indexes", indexes.close);
  const builders = openManifestThreads(closers);
  const manifests = createLargeManifests({
    indexes,
    builders,
    log,
    randomBytes: systemRandomBytes,
    clock: systemClock,
  });
  closers.add("builds of manifest indexes", manifests.close);
  return manifests;
}
