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
import { checksIn } from "../content/content.ts";
import { createChunkKeeper, createDataKeeper } from "../gateway/chunk-keeper.ts";
import { createConcerns } from "../gateway/concerns.ts";
import { addGatewayMetrics, createForkMetrics } from "../gateway/gateway-metrics.ts";
import { createHealth, type Health, type HealthCheck } from "../gateway/health.ts";
import { isolationReasons } from "../gateway/isolation.ts";
import { createLargeManifests, type LargeManifests } from "../gateway/large-manifests.ts";
import { createGateway, type Gateway } from "../http/gateway/gateway.ts";
import { graphqlForward, graphqlOrigin } from "../http/graphql/graphql-forward.ts";
import { graphql } from "../http/graphql/graphql-routes.ts";
import { createRequestMetrics } from "../http/request-metrics.ts";
import { createServiceApp } from "../http/service.ts";
import { type Indexing, openIndexing } from "../indexing/indexing.ts";
import { openWebhooks, type Webhooks } from "../indexing/webhooks.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { openHttp } from "../lib/http-client.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { invalidValue } from "../lib/printable.ts";
import type { IndexReader } from "../store/index/types.ts";
import { openManifestIndexes } from "../store/manifests/manifest-indexes.ts";
import { openOutbox } from "../store/outbox.ts";
import { version } from "../version.ts";
import { type OpenAdministration, openAdministrationRoutes } from "./administration.ts";
import { type Base, type BaseParts, createCheckList, openBase, type Sources } from "./base.ts";
import { certificateFiles, firstCertificate, renewOnHangup } from "./certificate.ts";
import { badSettings } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import type { SetFilters } from "./filters.ts";
import { type AdminKey, adminKeyOf } from "./keys.ts";
import {
  bodyMemoryOf,
  limiterOf,
  listenForAdmin,
  listenForGateway,
  listenForService,
  rateLimitsOf,
  type ServicePlace,
} from "./listeners.ts";
import { type OpenNames, openNames } from "./names.ts";
import { systemRandom, systemRandomBytes } from "./random.ts";
import { loadsOf, openBlobThread, openManifestThreads, type Threads } from "./threads.ts";
import { paidReadsOf, type SoldReading } from "./x402.ts";

/** What a gateway is opened with. */
export type GatewayParts = BaseParts &
  Readonly<{
    /** Hosts whose subdomains are names and sandboxes. */
    rootHosts: readonly string[];
    /** Why the start is not over yet, though the gateway is open; none when it is. */
    starting?: HealthCheck | undefined;
    /** The wallet of uploads, where there is one. */
    wallet?: Readonly<{ wallet: Pick<Wallet, "address"> }> | undefined;
    /** Says which databases were found damaged since the start. */
    damage?: HealthCheck;
    /** What readers can pay for beyond the limits, and where they reach the gateway. */
    paid?: SoldReading | undefined;
    /** Notified of each listener with its address; the port of a setting of 0 is known only then. */
    onListening?: (name: ListenerName, url: string) => void;
  }>;

/** A listener of the program. */
export type ListenerName = "gateway" | ServicePlace["name"];

/** Events of administration and of posts, for the parts that are opened after their sources. */
type GatewayEvents = {
  blockListChanged: [];
  /** Ids are in the index from now on. */
  items: [ids: readonly Id[]];
  /** A requested transaction was found, verified and indexed. */
  queuedTransaction: [id: Id];
  bundleQueued: [];
  transactionPosted: [];
};

/** A gateway that runs. */
export type OpenGateway = Readonly<{
  url: string;
  /** Where administration is, when it has a listener of its own. */
  adminUrl: string | undefined;
  /** Where the other services are, by name. */
  serviceUrls: ReadonlyMap<ServicePlace["name"], string>;
  /** Has a bundle indexed, whatever the filters say; also one that is not mined yet. */
  wantBundle: (id: Id) => Promise<void>;
  /** The key of administration, unless the operator knows it already; to be shown once. */
  shownKey: AdminKey["shown"];
  reader: IndexReader;
  indexing: Indexing;
  health: Health;
  sources: Sources;
  /** Empties the response caches: the chain has changed. */
  forgetAll: () => void;
}>;

/** Longest that another host may take for a query. Milliseconds. */
const forwardMsMax = 60_000;

/**
 * Opens the gateway; everything is closed by `closers`.
 *
 * @param base - Parts that every service uses.
 * @param services - The other services: each gets a listener of its own, and a place on the gateway's.
 * @throws Misuse when a filter is no filter; Error when the port cannot be had.
 */
export function openGateway(
  parts: GatewayParts,
  base: Base = openBase(parts),
  services: readonly ServicePlace[] = [],
): OpenGateway {
  const { config, log, closers } = parts;
  const { filters, metrics, threads, reader, sources } = base;
  const named = openNames({ config, blockList: sources.blockList, metrics, log, closers });

  const events = new EventEmitter<GatewayEvents>();
  const { content, extents, nodes } = sources;
  const concerns = createCheckList([createConcerns({ extents, nodes, pools: threads })]);
  const queryStart = createQueryStart(config, threads);
  const checks = [concerns.check, parts.damage ?? (() => [])];
  const health = healthOf(parts, reader, [named.notes], checks, [queryStart.check]);
  const key = adminKeyOf(config);
  const administration = administrationOf(parts, base, key.key, events, concerns.check);
  const isApart = config.ADMIN_LISTEN !== undefined;
  const gateway = surfaceOf(parts, base, {
    health,
    named,
    services,
    administration: isApart ? undefined : administration.routes,
    onPosted: () => events.emit("transactionPosted"),
  });
  events.on("blockListChanged", gateway.forgetAll);
  events.on("items", (ids) => forget(ids, gateway, sources));
  const { server, adminServer, serviceServers, servers } = openListeners(
    parts,
    metrics,
    gateway,
    services,
    isApart ? administration.routes : undefined,
  );
  const webhooks = openSetWebhooks({ config, folder: parts.folder, filters, reader, metrics, log, closers });
  if (webhooks !== undefined) events.on("queuedTransaction", webhooks.onQueuedTransaction);
  const indexing = startIndexing(parts, base, gateway, webhooks);
  events.on("bundleQueued", indexing.wakeBundles);
  events.on("transactionPosted", indexing.wake);
  concerns.add(() => indexing.status().reasons);
  closers.add("indexing", indexing.close);
  closeInOrder(parts, servers, health);
  addGatewayMetrics(metrics, {
    reader,
    isFollowing: () => indexing.status().follow.running,
    nodes,
    cache: extents.stats,
    fetches: content.stats,
    jobs: () => loadsOf(threads, "open"),
    threads: () => loadsOf(threads, "threads"),
  });
  // After all that a start waits for: the threads want the processors too.
  void queryStart.begin();
  const serviceUrls = new Map(serviceServers.map(([name, { url }]) => [name, url] as const));
  const { wantBundle } = administration;
  return {
    url: server.url,
    adminUrl: adminServer?.url,
    serviceUrls,
    wantBundle,
    shownKey: key.shown,
    reader,
    indexing,
    health,
    sources,
    forgetAll: () => {
      gateway.forgetAll();
      content.forgetAll();
    },
  };
}

function administrationOf(
  { config, folder, log, closers }: GatewayParts,
  { filters, threads, reader, index, sources }: Base,
  key: string,
  events: EventEmitter<GatewayEvents>,
  concerns: HealthCheck,
): OpenAdministration {
  return openAdministrationRoutes({
    config,
    key,
    folder,
    filters,
    threads,
    reader,
    index,
    sources,
    listeners: {
      onBlockListChange: () => events.emit("blockListChanged"),
      onItems: (ids) => events.emit("items", ids),
      onQueuedTransaction: (id) => events.emit("queuedTransaction", id),
      onBundle: () => events.emit("bundleQueued"),
      concerns,
    },
    log,
    closers,
  });
}

/** Opens all listeners. @param administration - Routes for a listener of their own. */
function openListeners(
  parts: GatewayParts,
  metrics: Metrics,
  gateway: Gateway,
  services: readonly ServicePlace[],
  administration: AnyElysia | undefined,
) {
  const { config, log, closers } = parts;
  const stats = createRequestMetrics(metrics, log, config.LOG_MEMORY_HITS);
  const files = certificateFiles(config);
  const certificate = files && firstCertificate(files, systemClock, log);
  const limiter = limiterOf(config, metrics);
  const memory = bodyMemoryOf(config, metrics, openBlobThread(closers));
  const listening = { config, certificate, stats, limiter, memory, log, closers };
  const server = listenForGateway(listening, gateway, services, paidReadsOf(parts.paid, limiter, log));
  const apart = config.METRICS_ON_ADMIN_LISTEN ? metrics : undefined;
  const adminServer = administration && listenForAdmin(listening, administration, apart);
  const serviceServers = services.map((each) => [each.name, listenForService(listening, each)] as const);
  const servers = [server, ...serviceServers.map(([, each]) => each)];
  if (adminServer !== undefined) servers.push(adminServer);
  if (files !== undefined) renewOnHangup(files, servers, { clock: systemClock, log, closers });
  parts.onListening?.("gateway", server.url);
  for (const [name, { url }] of serviceServers) parts.onListening?.(name, url);
  return { server, adminServer, serviceServers, servers };
}

type Closing = Pick<ReturnType<typeof listenForGateway>, "close" | "drain">;

/** Listeners end first of all, and readiness before them. */
function closeInOrder({ config, closers }: GatewayParts, servers: readonly Closing[], health: Health): void {
  // All at once: responses under way share one time limit, however many listeners there are.
  closers.add("listeners", async () => {
    await Promise.all(servers.map((each) => each.close(config.STOP_GRACE_MS)));
  });
  // Before anything else ends, so that who sends requests here can see it and send them elsewhere.
  closers.add("readiness", async () => {
    health.stop();
    for (const each of servers) each.drain();
    await Bun.sleep(config.STOP_DELAY_MS);
  });
}

/** Threads that have started when the first query comes: until then the gateway is not ready. */
function createQueryStart({ GRAPHQL_HOST: host }: Config, { query }: Threads) {
  let isStarting = host === undefined;
  return {
    check: () => (isStarting ? ["The query threads are starting."] : []),
    begin: async (): Promise<void> => {
      if (host === undefined) await query.warm();
      isStarting = false;
    },
  };
}

function healthOf(
  parts: GatewayParts,
  reader: IndexReader,
  notes: readonly HealthCheck[],
  checks: readonly HealthCheck[],
  readiness: readonly HealthCheck[],
): Health {
  const { config, rootHosts } = parts;
  const isolation = {
    mode: config.CONTENT_ISOLATION,
    hasRootHost: rootHosts.length > 0,
    redirectAll: config.SANDBOX_ALL,
  };
  return createHealth({
    clock: systemClock,
    checks,
    notes: [() => isolationReasons(isolation), ...notes],
    readiness: [
      () => (reader.tip() === undefined ? ["No block has been followed yet."] : []),
      parts.starting ?? (() => []),
      ...readiness,
    ],
  });
}

type SurfaceNeeds = Readonly<{
  health: Health;
  named: OpenNames;
  services: readonly ServicePlace[];
  /** Undefined: served by a listener of its own. */
  administration: AnyElysia | undefined;
  onPosted: () => void;
}>;

function surfaceOf(parts: GatewayParts, base: Base, needs: SurfaceNeeds): Gateway {
  const { config, folder, log, closers } = parts;
  const { filters, threads, reader, sources, metrics } = base;
  const { health, named, services, administration, onPosted } = needs;
  const check = checksIn(threads.verify).transaction;
  const keepData = createDataKeeper({ check, content: sources.content, log });
  return createGateway({
    reader,
    content: sources.content,
    blockList: sources.blockList,
    nodes: sources.nodes,
    chunkNodes: sources.chunkNodes,
    names: named.names,
    peers: sources.peers,
    checkRelayed: (job, signal) => threads.verify.run("checkRelayed", job, { signal }),
    largeManifests: openLargeManifests({ config, folder, log, closers }),
    listeners: {
      onTransaction: async (transaction, body, signal) => {
        await keepData(transaction, body, signal);
        onPosted(); // the data is there before the transaction is pending in the index
      },
      onChunk: createChunkKeeper(sources.extents, log),
    },
    graphql: queriesOf(parts, threads),
    administration,
    services: mountsOf(config, services),
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

/** What the information record says is switched on, beside services and limits. */
function featuresOf(config: Config): readonly string[] {
  const switches = {
    "arweave-headers": config.ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED,
    "graphql-forwarding": config.GRAPHQL_HOST !== undefined,
    "redirects-to-sandboxes": config.SANDBOX_ALL,
    webhooks: config.WEBHOOK_TARGET_SERVERS.length > 0,
  };
  return Object.entries(switches).flatMap(([name, isOn]) => (isOn ? [name] : []));
}

/** Queries run here, or are forwarded to the host that an operator names. */
function queriesOf({ config, folder, log, closers }: GatewayParts, threads: Threads): AnyElysia {
  if (config.GRAPHQL_HOST === undefined) {
    return graphql({
      pool: threads.query,
      indexPath: folder.index,
      contentFolder: folder.content,
      timeoutMs: config.QUERY_TIMEOUT_MS,
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

/** Where queries are sent. @throws Misuse when it is no host. */
export function graphqlOriginOf(host: string, port: number): string {
  const origin = graphqlOrigin(host, port);
  if (origin === undefined) throw badSettings([invalidValue("GRAPHQL_HOST", host, "a host or an origin")]);
  return origin;
}

/** Where the other services are, as far as it can be said of all callers: a public address, or a place on this port. */
function servicesOf(config: Config, services: readonly ServicePlace[]): Readonly<Record<string, string>> {
  const publicUrls = { payment: config.PAYMENT_PUBLIC_URL, upload: config.UPLOAD_PUBLIC_URL };
  return Object.fromEntries(
    services.flatMap(({ name }) => {
      const url = publicUrls[name] ?? (config.MOUNT_SERVICES ? `/${name}` : undefined);
      return url === undefined ? [] : [[name, url] as const];
    }),
  );
}

function mountsOf(config: Config, services: readonly ServicePlace[]): AnyElysia[] {
  return config.MOUNT_SERVICES ? services.map((each) => createServiceApp(each.service, `/${each.name}`)) : [];
}

function startIndexing(
  { config, log }: GatewayParts,
  { filters, metrics, threads, reader, index, sources }: Base,
  gateway: Gateway,
  webhooks: Webhooks | undefined,
): Indexing {
  const forks = createForkMetrics(metrics, reader.tip()?.height ?? -1);
  return openIndexing({
    nodes: sources.nodes,
    verify: threads.verify,
    unbundle: threads.unbundle,
    index,
    reader,
    content: sources.content,
    start: config.START_HEIGHT,
    stop: config.STOP_HEIGHT,
    unbundleFilter: filters.unbundle.filter,
    indexFilter: filters.index.filter,
    reevaluateOnChange: config.FILTER_CHANGE_REPROCESS,
    isMempoolWatched: config.ENABLE_MEMPOOL_WATCHER,
    hooks: {
      onBlock: (block) => {
        forks.onBlock(block.height);
        forget(block.ids, gateway, sources);
        webhooks?.onBlock(block);
      },
      onItems: (ids) => {
        forget(ids, gateway, sources);
        webhooks?.onItems(ids);
      },
      onRollback: (fromHeight) => {
        forks.onRollback(fromHeight);
        webhooks?.onRollback(fromHeight);
        gateway.forgetAll();
        sources.content.forgetAll();
      },
    },
    times: { followMs: config.FOLLOW_INTERVAL_MS },
    clock: systemClock,
    random: systemRandom,
    log,
  });
}

/** What is said of ids changes: nothing that was remembered of them holds. */
function forget(ids: readonly Id[], gateway: Gateway, { content }: Sources): void {
  for (const id of ids) {
    gateway.forget(id);
    content.forget(id);
  }
}

/** What webhooks are opened with. */
export type WebhookParts = Readonly<{
  config: Config;
  folder: DataFolder;
  filters: SetFilters;
  reader: IndexReader;
  metrics: Metrics;
  log: Log;
  closers: Closers;
}>;

/** Timeout of a delivery. Milliseconds. */
const responseMsMax = 10_000;

/** Opens webhooks where a target is named; they are closed by `closers`. */
export function openSetWebhooks(parts: WebhookParts): Webhooks | undefined {
  const { config, folder, filters, reader, metrics, log, closers } = parts;
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
    help: "Webhooks that wait to be taken.",
    read: webhooks.waiting,
  });
  return webhooks;
}

/** What they are opened with. */
export type LargeManifestsSetup = Readonly<{
  config: Config;
  folder: DataFolder;
  log: Log;
  closers: Closers;
}>;

/** Opens them; they are closed by `closers`. */
export function openLargeManifests({ config, folder, log, closers }: LargeManifestsSetup): LargeManifests {
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
