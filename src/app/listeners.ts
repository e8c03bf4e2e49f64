/**
 * Opens the listeners of the gateway, of the admin API and of the other services, at the ports of the settings.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { hostAndPort } from "../config/setting-readers.ts";
import type { Config } from "../config/settings.ts";
import type { Health } from "../gateway/health.ts";
import type { RateLimits } from "../gateway/info.ts";
import { type BodyMemory, createBodyMemory } from "../http/body-memory.ts";
import { createServiceFailurePage } from "../http/failure-page.ts";
import type { Gateway } from "../http/gateway/gateway.ts";
import { readyResponse } from "../http/gateway/service-routes.ts";
import type { Certificate } from "../http/listener.ts";
import { createMetricsRoutes, gatewayMetricsPaths } from "../http/metrics-routes.ts";
import type { PaidReads } from "../http/paid-reads.ts";
import { createRateLimiter, type RateLimiter } from "../http/rate-limiter.ts";
import { createRequestMetrics, type RequestMetrics } from "../http/request-metrics.ts";
import type { RequestSpans } from "../http/request-spans.ts";
import { type HttpServer, type Mount, openServer, type ServerOptions } from "../http/server.ts";
import { createServiceApp, type Service } from "../http/service-app.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { BlobThread } from "../lib/event-loop.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { AppContext } from "./base.ts";
import { certificateFiles, firstCertificate, renewOnHangup } from "./certificate.ts";
import { badSettings, misuse } from "./complaints.ts";
import { addressTest, proxyTest } from "./list-settings.ts";
import { randomSeed } from "./random.ts";
import { openBlobThread } from "./threads.ts";

/** Another service and its listener. */
export type ServicePlace = Readonly<{
  name: "payment" | "upload";
  service: Service;
  /** Port of its own listener; 0 picks a free one. */
  port: number;
  /** Largest request body of its routes. Bytes. */
  bodyBytesMax: number;
}>;

/** Largest request body of the gateway's routes; each route has a smaller limit. Bytes. */
const bodyBytesMax = 16 * 2 ** 20;

/** Options that all listeners share. */
export type Listening = Readonly<{
  config: Config;
  certificate: Certificate | undefined;
  stats: RequestMetrics;
  /** Undefined: requests are not traced. */
  spans: RequestSpans | undefined;
  /** Shared, so that a client of several listeners has one limit. Undefined: no limits. */
  limiter: RateLimiter | undefined;
  /** Limits the memory of bodies in progress at all listeners together. */
  memory: BodyMemory;
  log: Log;
  closers: Closers;
}>;

/** A listener of the program. */
export type ListenerName = "gateway" | ServicePlace["name"];

/** Counts and logs the responses of all listeners. */
export function requestMetricsOf({ config, log }: AppContext, metrics: Metrics): RequestMetrics {
  return createRequestMetrics(metrics, log, {
    completed: config.LOG_REQUESTS,
    cached: config.LOG_REQUESTS && config.LOG_MEMORY_HITS,
  });
}

type PreparedListening = Readonly<{
  listening: Listening;
  /** SIGHUP reads the certificate of these listeners again. */
  renew: (servers: readonly HttpServer[]) => void;
}>;

/** Reads the certificate, and creates what the listeners share. */
export function prepareListening(
  { config, log, closers }: AppContext,
  metrics: Metrics,
  stats: RequestMetrics,
  spans: RequestSpans | undefined,
): PreparedListening {
  const files = certificateFiles(config);
  const certificate = files && firstCertificate(files, systemClock, log);
  const limiter = limiterOf(config, metrics);
  const memory = bodyMemoryOf(config, metrics, openBlobThread(closers));
  return {
    listening: { config, certificate, stats, spans, limiter, memory, log, closers },
    renew: (servers) => {
      if (files !== undefined) renewOnHangup(files, [...servers], { clock: systemClock, log, closers });
    },
  };
}

type ServiceListeners = Readonly<{
  servers: readonly HttpServer[];
  /** URL of the admin API if it has a separate listener. */
  adminUrl: string | undefined;
  serviceUrls: ReadonlyMap<ServicePlace["name"], string>;
}>;

type OtherRoutes = Readonly<{
  /** The admin API for a separate listener; undefined: it has none. */
  administration: AnyElysia | undefined;
  metrics: Metrics;
  /** Of a program without a gateway: served as `/ready` by each service. */
  health?: Health;
}>;

/** Opens the listeners of the admin API and of the services. @throws Misuse when a port or address is unavailable. */
export function openServiceListeners(
  listening: Listening,
  services: readonly ServicePlace[],
  { administration, metrics, health }: OtherRoutes,
): ServiceListeners {
  const apart = listening.config.METRICS_ON_ADMIN_LISTEN ? metrics : undefined;
  const adminServer = administration && openAdmin(listening, administration, apart);
  const serviceServers = services.map((each) => [each.name, openService(listening, each, health)] as const);
  return {
    servers: [...serviceServers.map(([, server]) => server), ...(adminServer === undefined ? [] : [adminServer])],
    adminUrl: adminServer?.url,
    serviceUrls: new Map(serviceServers.map(([name, { url }]) => [name, url] as const)),
  };
}

/** Reports the URLs of the open listeners. @param gateway - Undefined in a program without a gateway. */
export function noteListeners(
  note: ((name: ListenerName, url: string) => void) | undefined,
  gateway: HttpServer | undefined,
  { serviceUrls }: ServiceListeners,
): void {
  if (gateway !== undefined) note?.("gateway", gateway.url);
  for (const [name, url] of serviceUrls) note?.(name, url);
}

/**
 * Closes the listeners before all other parts; before them, health reports that the program is not ready.
 *
 * @param endStreams - Ends responses that never end by themselves.
 */
export function closeListenersFirst(
  { config, closers }: AppContext,
  servers: readonly HttpServer[],
  health: Pick<Health, "stop">,
  endStreams?: () => Promise<void>,
): void {
  // Concurrently: all listeners share one grace period for responses in progress.
  closers.add("listeners", async () => {
    await Promise.all(servers.map((each) => each.close(config.STOP_GRACE_MS)));
  });
  // A load balancer needs this time to send requests elsewhere.
  closers.add("readiness", async () => {
    health.stop();
    for (const each of servers) each.drain();
    await Bun.sleep(config.STOP_DELAY_MS);
    await endStreams?.(); // the listeners would wait for them
  });
}

/**
 * Opens the listener of the gateway. It accepts the largest body of the services that are mounted on it.
 *
 * @throws Misuse when its port or address is unavailable.
 */
export function openGatewayListener(
  { config, certificate, stats, spans, limiter, memory, log, closers }: Listening,
  gateway: Gateway,
  services: readonly ServicePlace[],
  paidReads?: PaidReads,
): HttpServer {
  const mounted = config.MOUNT_SERVICES ? services : [];
  const options: ServerOptions = {
    hostname: config.HOST,
    port: config.GATEWAY_PORT,
    certificate,
    app: () => gateway.app,
    mounts: mounted.map((each) => mountOf(each, gateway)),
    cachedResponse: gateway.hit,
    withoutRouter: gateway.finalRecord,
    failurePage: gateway.failurePage,
    pathOf: gateway.pathOf,
    bodyBytesMax: Math.max(bodyBytesMax, ...mounted.map((each) => each.bodyBytesMax)),
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter,
    paidReads,
    memory,
    log,
    stats,
    spans,
  };
  const port = { name: "GATEWAY_PORT", value: options.port };
  const server = claimPort(port, { name: "HOST", value: config.HOST }, () => openServer(options));
  closers.add("listener", () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** A service below `/payment` or `/upload` of the gateway's own hosts. */
function mountOf({ name, service }: ServicePlace, { isOwnHost }: Gateway): Mount {
  const prefix = `/${name}`;
  return {
    app: () => createServiceApp(service, prefix),
    serves: ({ host, path }) => (path === prefix || path.startsWith(`${prefix}/`)) && isOwnHost(host),
  };
}

/** Rate limits of the settings, in tokens. */
export function rateLimitsOf(config: Config): RateLimits {
  return {
    ip: {
      capacity: config.RATE_LIMITER_IP_TOKENS_PER_BUCKET,
      refillPerSecond: config.RATE_LIMITER_IP_REFILL_PER_SEC,
    },
    resource: {
      capacity: config.RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET,
      refillPerSecond: config.RATE_LIMITER_RESOURCE_REFILL_PER_SEC,
    },
  };
}

/** Creates the rate limiter of the settings. @throws Misuse for an invalid address in the allow list. */
function limiterOf(config: Config, metrics: Metrics): RateLimiter | undefined {
  const allowed = config.RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST;
  const isExempt = addressTest(allowed, "RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST");
  if (!config.ENABLE_RATE_LIMITER) return undefined;
  const { ip: client, resource } = rateLimitsOf(config);
  return createRateLimiter({
    client,
    resource,
    isExempt,
    seed: randomSeed(),
    clock: systemClock,
    metrics,
  });
}

function bodyMemoryOf(config: Config, metrics: Metrics, blobThread: BlobThread): BodyMemory {
  const { RESPONSE_BYTES_MAX: responseBytesMax, REQUEST_BYTES_MAX: requestBytesMax } = config;
  return createBodyMemory({ responseBytesMax, requestBytesMax, metrics, blobThread });
}

/**
 * Opens a separate listener of the admin API, with the certificate of the other listeners.
 *
 * @param metrics - Served there without the admin key; undefined if the other listeners serve them.
 */
function openAdmin(
  { config, certificate, stats, spans, memory, log, closers }: Listening,
  administration: AnyElysia,
  metrics: Metrics | undefined,
): HttpServer {
  const app = () =>
    new Elysia({ strictPath: true }).use(administration).use(createMetricsRoutes(metrics, gatewayMetricsPaths));
  const { host, port } = hostAndPort(config.ADMIN_LISTEN ?? "");
  const isTrustedProxy = proxyTest(config.TRUSTED_PROXIES);
  const options: ServerOptions = {
    hostname: host,
    port,
    certificate,
    app,
    bodyBytesMax,
    isTrustedProxy,
    memory,
    log,
    stats,
    spans,
    service: "admin",
  } as const;
  const place = { name: "ADMIN_LISTEN", value: config.ADMIN_LISTEN ?? "" };
  const server = claimPort(place, place, () => openServer(options));
  closers.add("administration's listener", () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** Opens the listener of another service. @param health - Served as `/ready`; undefined where the gateway does. */
function openService(
  { config, certificate, stats, spans, limiter, memory, log, closers }: Listening,
  { name, service, port, bodyBytesMax: largest }: ServicePlace,
  health: Health | undefined,
): HttpServer {
  const app = (): AnyElysia => {
    const routes = createServiceApp(service);
    return health === undefined ? routes : routes.get("/ready", () => readyResponse(health));
  };
  const options: ServerOptions = {
    hostname: config.HOST,
    port,
    certificate,
    app,
    bodyBytesMax: largest,
    service: name,
    failurePage: createServiceFailurePage(name),
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter,
    memory,
    log,
    stats,
    spans,
  };
  const place = { name: `${name.toUpperCase()}_PORT`, value: port };
  const server = claimPort(place, { name: "HOST", value: config.HOST }, () => openServer(options));
  closers.add(`${name}'s listener`, () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** A setting that names a port or an address, as the operator wrote it. */
export type PlaceSetting = Readonly<{ name: string; value: string | number }>;

/** Reasons for an unavailable port, by error code. */
const portReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EACCES: "this user may not listen there",
};

/**
 * Opens a listener, or reports which setting cannot be used and why.
 *
 * @param port - The setting of the port.
 * @param host - The setting of the address; the same setting if it names both.
 * @throws Misuse when the port or the address is unavailable.
 */
export function claimPort<Opened>(port: PlaceSetting, host: PlaceSetting, open: () => Opened): Opened {
  try {
    return open();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = portReasons[code];
    if (reason !== undefined) throw misuse(`${port.name} ${port.value} cannot be used: ${reason}`);
    if (!isOfAddress(error, code)) throw error;
    throw misuse(`${host.name} ${host.value} cannot be used: this machine has no such address`);
  }
}

/** Checks by a short-lived listener that this machine has an address. @throws Misuse when it has not. */
export function checkHost(name: string, value: string, host: string): void {
  try {
    Bun.listen({ hostname: host, port: 0, socket: { data() {} } }).stop(true);
  } catch {
    // A free port is never taken, so only the address can be wrong.
    throw badSettings([`${name} ${value} cannot be used: this machine has no such address`]);
  }
}

/** Whether the address is invalid. Bun 1.4.5 has several codes for an unknown name, and for some names none. */
function isOfAddress(error: unknown, code: string): boolean {
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") return true;
  return error instanceof Error && /\blisten$|^Failed to listen at /.test(error.message);
}
