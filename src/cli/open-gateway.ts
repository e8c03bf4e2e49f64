/**
 * The gateway put together: threads, index, content, indexing and the listener, opened in this order and closed in
 * reverse.
 * @module
 */

import type { AnyElysia } from "elysia";
import type { Id } from "../arweave/id.ts";
import { openHttp } from "../chain/http.ts";
import { createConcerns } from "../gateway/concerns.ts";
import { addGatewayFigures, createForkFigures } from "../gateway/figures.ts";
import { createHealth, type Health, type HealthCheck } from "../gateway/health.ts";
import { isolationReasons } from "../gateway/isolation.ts";
import { createChunkKeeper } from "../gateway/kept-chunks.ts";
import { createGateway, type Gateway } from "../http/gateway/gateway.ts";
import { graphql } from "../http/gateway/graphql.ts";
import { graphqlForward, graphqlOrigin } from "../http/gateway/graphql-forward.ts";
import type { Certificate } from "../http/listener.ts";
import { createRateLimiter, type RateLimiter } from "../http/rate-limiter.ts";
import { createRequestFigures, type RequestFigures } from "../http/request-figures.ts";
import { reservedSegments } from "../http/reserved.ts";
import { type HttpServer, openServer } from "../http/server.ts";
import { createServiceApp, type Service } from "../http/service.ts";
import { type Indexing, openIndexing } from "../indexing/indexing.ts";
import type { Webhooks } from "../indexing/webhooks.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { hostAndPort } from "../setting-readers.ts";
import type { Config } from "../settings.ts";
import { createIndexWriterCalls, type WriteJob } from "../store/index-thread.ts";
import type { IndexReader } from "../store/index-types.ts";
import { version } from "../version.ts";
import { type AdminKey, adminKeyOf } from "./admin-key.ts";
import { certificateFiles, firstCertificate, renewOnHangup } from "./certificate.ts";
import { badSettings } from "./complaints.ts";
import { openAdministrationRoutes } from "./open-administration.ts";
import { type Base, type BaseParts, openBase } from "./open-base.ts";
import { type OpenNames, openNames } from "./open-names.ts";
import type { Sources } from "./open-sources.ts";
import { openSetWebhooks } from "./open-webhooks.ts";
import { systemRandom } from "./random.ts";
import { addressTest, proxyTest } from "./trusted-proxies.ts";

/** What a gateway is opened with. */
export type GatewayParts = BaseParts &
  Readonly<{
    /** Hosts whose subdomains are names and sandboxes. */
    rootHosts: readonly string[];
  }>;

/** Another service: its routes, and where they stand. */
export type ServicePlace = Readonly<{
  name: "payment" | "upload";
  service: Service;
  /** Of its own listener; 0 takes a free one. */
  port: number;
  /** Largest body of its routes. Bytes. */
  bodyBytesMax: number;
}>;

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
}>;

/** Longest wait for answers under way when the program stops. Milliseconds. */
const drainMsMax = 10_000;

/** Longest that another host may take for a query. Milliseconds. */
const forwardMsMax = 60_000;

/** Largest body of the gateway's own routes; each has a smaller limit of its own. */
const bodyBytesMax = 16 * 2 ** 20;

/**
 * Opens the gateway; everything is closed by `closers`.
 *
 * @param base - What it stands on.
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
  const named = openNames({ config, refusals: sources.moderation, metrics, log, closers });

  // The listener and indexing tell each other: items that arrive leave memory, posts that arrive wake the follower.
  const told: { gateway?: Gateway; indexing?: Indexing } = {};
  const concerns = createConcerns({ ...sources, pools: threads });
  const health = healthOf(
    parts,
    reader,
    [named.notes],
    [concerns, () => told.indexing?.status().reasons ?? []],
  );
  const key = adminKeyOf(config);
  const administration = openAdministrationRoutes({
    ...{ ...parts, ...base, key: key.key },
    listeners: {
      onRefusals: () => told.gateway?.forgetAll(),
      onItems: (ids) => forget(ids, told.gateway, sources),
      onBundle: () => told.indexing?.wakeBundles(),
      concerns: () => told.indexing?.status().reasons ?? [],
    },
  });
  const isApart = config.ADMIN_LISTEN !== undefined;
  const gateway = surfaceOf(
    { ...parts, ...base, health, named, services },
    isApart ? undefined : administration.routes,
    () => told.indexing?.wake(),
  );
  told.gateway = gateway;
  const figures = createRequestFigures(metrics, log, labelOfPath);
  const files = certificateFiles(config);
  const certificate = files && firstCertificate(files, systemClock, log);
  const listening = { config, certificate, figures, log, closers };
  const mounted = config.MOUNT_SERVICES ? services.map((each) => each.bodyBytesMax) : [];
  const server = listen(listening, gateway, Math.max(bodyBytesMax, ...mounted));
  const adminServer = isApart ? listenForAdmin(listening, administration.routes) : undefined;
  const serviceServers = services.map((each) => [each.name, listenForService(listening, each)] as const);
  const servers = [server, ...serviceServers.map(([, each]) => each)];
  if (adminServer !== undefined) servers.push(adminServer);
  if (files !== undefined) renewOnHangup(files, servers, { clock: systemClock, log, closers });
  const webhooks = openSetWebhooks({ ...parts, filters, reader, metrics });
  const indexing = startIndexing({ ...parts, ...base }, gateway, webhooks);
  told.indexing = indexing;
  closers.add("indexing", indexing.close);
  // Before anything else ends, so that who sends requests here can see it and send them elsewhere.
  closers.add("readiness", async () => {
    health.stop();
    for (const each of servers) each.drain();
    await Bun.sleep(config.STOP_DELAY_MS);
  });
  addGatewayFigures(metrics, {
    reader,
    isFollowing: () => indexing.status().follow.running,
    cache: sources.extents.figures,
    fetches: sources.content.figures,
    jobs: () => Object.fromEntries(Object.entries(threads).map(([name, pool]) => [name, pool.load().open])),
  });
  const adminUrl = adminServer?.url;
  const serviceUrls = new Map(serviceServers.map(([name, { url }]) => [name, url] as const));
  const { wantBundle } = administration;
  return {
    url: server.url,
    adminUrl,
    serviceUrls,
    wantBundle,
    shownKey: key.shown,
    reader,
    indexing,
    health,
    sources,
  };
}

function healthOf(
  parts: GatewayParts,
  reader: IndexReader,
  notes: readonly HealthCheck[],
  checks: readonly HealthCheck[],
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
    readiness: [() => (reader.tip() === undefined ? ["No block has been followed yet."] : [])],
  });
}

type SurfaceParts = GatewayParts &
  Base &
  Readonly<{
    health: Health;
    named: OpenNames;
    services: readonly ServicePlace[];
  }>;

function surfaceOf(
  parts: SurfaceParts,
  administration: AnyElysia | undefined,
  onPosted: () => void,
): Gateway {
  const { config, filters, threads, reader, sources, metrics, health, named } = parts;
  return createGateway({
    reader,
    content: sources.content,
    refusals: sources.moderation,
    nodes: sources.nodes,
    chunkNodes: sources.chunkNodes,
    names: named.names,
    peers: sources.peers,
    // The thread finishes for those who come after: what it keeps of a manifest dies with it.
    resolveLarge: (job, signal) => threads.verify.run("resolveLargeManifest", job, { signal }),
    listeners: { onTransaction: onPosted, onChunk: createChunkKeeper(sources.extents, parts.log) },
    graphql: queriesOf(parts),
    administration,
    services: mountsOf(parts),
    info: {
      wallet: config.AR_IO_WALLET,
      processId: config.IO_PROCESS_ID,
      unbundleFilter: filters.unbundle.json,
      indexFilter: filters.index.json,
      release: version,
      services: {},
    },
    health,
    metrics,
    clock: systemClock,
    settings: {
      rootHosts: parts.rootHosts,
      isolation: config.CONTENT_ISOLATION,
      redirectAll: config.SANDBOX_ALL,
      sandboxScheme: config.SANDBOX_PROTOCOL,
      apex: named.apex,
      notFoundPage: named.notFoundPage,
      coldBufferBytes: config.COLD_BUFFER,
      hitsBytesMax: config.HOT_BYTES_MAX,
    },
  });
}

/** Queries are answered here, or by the host that an operator names. */
function queriesOf({ config, folder, threads, log, closers }: SurfaceParts): AnyElysia {
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
  const origin = graphqlOrigin(config.GRAPHQL_HOST, config.GRAPHQL_PORT);
  if (origin === undefined)
    throw badSettings([`GRAPHQL_HOST must be a host or an origin, got "${config.GRAPHQL_HOST}"`]);
  const http = openHttp({
    firstByteMs: config.QUERY_TIMEOUT_MS,
    stallMs: config.QUERY_TIMEOUT_MS,
    totalMs: forwardMsMax,
  });
  closers.add("client of GRAPHQL_HOST", http.close);
  return graphqlForward({ origin, http, name: crypto.randomUUID(), log });
}

type Listening = Readonly<{
  config: Config;
  certificate: Certificate | undefined;
  figures: RequestFigures;
  log: Log;
  closers: Closers;
}>;

function listen(listening: Listening, gateway: Gateway, largestBody: number): HttpServer {
  const { config, certificate, figures, log, closers } = listening;
  const server = openServer({
    hostname: config.HOST,
    port: config.GATEWAY_PORT,
    certificate,
    app: gateway.app,
    hit: gateway.hit,
    bodyBytesMax: largestBody,
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter: limiterOf(config),
    log,
    figures,
  });
  closers.add("listener", () => server.close(drainMsMax));
  return server;
}

function limiterOf(config: Config): RateLimiter | undefined {
  const allowed = config.RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST;
  const isExempt = addressTest(allowed, "RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST");
  if (!config.ENABLE_RATE_LIMITER) return undefined;
  return createRateLimiter({
    client: {
      capacity: config.RATE_LIMITER_IP_TOKENS_PER_BUCKET,
      refillPerSecond: config.RATE_LIMITER_IP_REFILL_PER_SEC,
    },
    resource: {
      capacity: config.RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET,
      refillPerSecond: config.RATE_LIMITER_RESOURCE_REFILL_PER_SEC,
    },
    isExempt,
    seed: Math.floor(systemRandom() * 2 ** 32),
    clock: systemClock,
  });
}

/** Administration on a listener of its own; its key is as worthy of a certificate as anything. */
function listenForAdmin(
  { config, certificate, figures, log, closers }: Listening,
  app: AnyElysia,
): HttpServer {
  const { host, port } = hostAndPort(config.ADMIN_LISTEN ?? "");
  const isTrustedProxy = proxyTest(config.TRUSTED_PROXIES);
  const options = { hostname: host, port, certificate, app, bodyBytesMax, isTrustedProxy, log, figures };
  const server = openServer(options);
  closers.add("administration's listener", () => server.close(drainMsMax));
  return server;
}

function mountsOf({ config, services }: SurfaceParts): AnyElysia[] {
  return config.MOUNT_SERVICES ? services.map((each) => createServiceApp(each.service, `/${each.name}`)) : [];
}

/** Another service on a listener of its own. */
function listenForService(
  { config, certificate, figures, log, closers }: Listening,
  { name, service, port, bodyBytesMax: largest }: ServicePlace,
): HttpServer {
  const server = openServer({
    hostname: config.HOST,
    port,
    certificate,
    app: createServiceApp(service),
    bodyBytesMax: largest,
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    log,
    figures,
  });
  closers.add(`${name}'s listener`, () => {
    server.drain();
    return server.close(drainMsMax);
  });
  return server;
}

/** Few labels, whatever is asked for: the reserved first segment, or content. */
function labelOfPath(path: string): string {
  const first = path.split("/", 2)[1] ?? "";
  return reservedSegments.has(first) ? `/${first}` : "/{id}";
}

type IndexingParts = GatewayParts & Base;

function startIndexing(parts: IndexingParts, gateway: Gateway, webhooks: Webhooks | undefined): Indexing {
  const { config, folder, filters, metrics, threads, reader, sources, log } = parts;
  const forks = createForkFigures(metrics, reader.tip()?.height ?? -1);
  return openIndexing({
    nodes: sources.nodes,
    verify: threads.verify,
    unbundle: threads.unbundle,
    index: createIndexWriterCalls(folder.index, (job: WriteJob) => threads.index.run("write", job)),
    reader,
    content: sources.content,
    start: config.START_HEIGHT,
    stop: config.STOP_HEIGHT,
    unbundleFilter: filters.unbundle.filter,
    indexFilter: filters.index.filter,
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
function forget(ids: readonly Id[], gateway: Gateway | undefined, { content }: Sources): void {
  for (const id of ids) {
    gateway?.forget(id);
    content.forget(id);
  }
}
