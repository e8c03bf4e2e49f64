/**
 * The listeners: the gateway's, administration's and those of the other services.
 * @module
 */

import { type AnyElysia, Elysia } from "elysia";
import { hostAndPort } from "../config/setting-readers.ts";
import type { Config } from "../config/settings.ts";
import type { RateLimits } from "../gateway/info.ts";
import { type BodyMemory, createBodyMemory } from "../http/body-memory.ts";
import type { Gateway } from "../http/gateway/gateway.ts";
import type { Certificate } from "../http/listener.ts";
import { createMetricsRoutes, gatewayMetricsPaths } from "../http/metrics-routes.ts";
import type { PaidReads } from "../http/paid-reads.ts";
import { createRateLimiter, type RateLimiter } from "../http/rate-limiter.ts";
import type { RequestMetrics } from "../http/request-metrics.ts";
import { type HttpServer, openServer } from "../http/server.ts";
import { createServiceApp, type Service } from "../http/service.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { BlobThread } from "../lib/event-loop.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { addressTest, proxyTest } from "./address-settings.ts";
import { claimPort } from "./claim-port.ts";
import { systemRandom } from "./random.ts";

/** Another service: its routes, and where they stand. */
export type ServicePlace = Readonly<{
  name: "payment" | "upload";
  service: Service;
  /** Of its own listener; 0 takes a free one. */
  port: number;
  /** Largest body of its routes. Bytes. */
  bodyBytesMax: number;
}>;

/** Largest body of the gateway's own routes; each has a smaller limit of its own. */
const bodyBytesMax = 16 * 2 ** 20;

/** What all listeners have in common. */
export type Listening = Readonly<{
  config: Config;
  certificate: Certificate | undefined;
  stats: RequestMetrics;
  /** One for all of them: who asks a service as well as the gateway has one limit. Undefined: there are no limits. */
  limiter: RateLimiter | undefined;
  /** Memory of bodies under way, at all listeners together. */
  memory: BodyMemory;
  log: Log;
  closers: Closers;
}>;

/** The gateway's; it takes what the services take that are mounted on it. */
export function listenForGateway(
  { config, certificate, stats, limiter, memory, log, closers }: Listening,
  gateway: Gateway,
  services: readonly ServicePlace[],
  paidReads?: PaidReads,
): HttpServer {
  const mounted = config.MOUNT_SERVICES ? services.map((each) => each.bodyBytesMax) : [];
  const options = {
    hostname: config.HOST,
    port: config.GATEWAY_PORT,
    certificate,
    app: gateway.app,
    hit: gateway.hit,
    pathOf: gateway.pathOf,
    bodyBytesMax: Math.max(bodyBytesMax, ...mounted),
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter,
    paidReads,
    memory,
    log,
    stats,
  };
  const server = claimPort({ name: "GATEWAY_PORT", value: options.port }, { name: "HOST", value: config.HOST }, () =>
    openServer(options),
  );
  closers.add("listener", () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** The limits of the settings, in tokens. */
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

/** Creates the limiter that the settings tell. @throws Misuse when what is exempt is no address. */
export function limiterOf(config: Config, metrics: Metrics): RateLimiter | undefined {
  const allowed = config.RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST;
  const isExempt = addressTest(allowed, "RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST");
  if (!config.ENABLE_RATE_LIMITER) return undefined;
  const { ip: client, resource } = rateLimitsOf(config);
  return createRateLimiter({
    client,
    resource,
    isExempt,
    seed: Math.floor(systemRandom() * 2 ** 32),
    clock: systemClock,
    metrics,
  });
}

/** Creates the memory of bodies that the settings allow. */
export function bodyMemoryOf(config: Config, metrics: Metrics, blobThread: BlobThread): BodyMemory {
  const { RESPONSE_BYTES_MAX: responseBytesMax, REQUEST_BYTES_MAX: requestBytesMax } = config;
  return createBodyMemory({ responseBytesMax, requestBytesMax, metrics, blobThread });
}

/**
 * Administration on a listener of its own; its key is as worthy of a certificate as anything.
 *
 * @param metrics - Served there, without the key; undefined when they are served at the other listeners.
 */
export function listenForAdmin(
  { config, certificate, stats, memory, log, closers }: Listening,
  administration: AnyElysia,
  metrics: Metrics | undefined,
): HttpServer {
  const app = new Elysia({ strictPath: true })
    .use(administration)
    .use(createMetricsRoutes(metrics, gatewayMetricsPaths));
  const { host, port } = hostAndPort(config.ADMIN_LISTEN ?? "");
  const isTrustedProxy = proxyTest(config.TRUSTED_PROXIES);
  const options = {
    hostname: host,
    port,
    certificate,
    app,
    bodyBytesMax,
    isTrustedProxy,
    memory,
    log,
    stats,
    service: "admin",
  } as const;
  const place = { name: "ADMIN_LISTEN", value: config.ADMIN_LISTEN ?? "" };
  const server = claimPort(place, place, () => openServer(options));
  closers.add("administration's listener", () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** Another service on a listener of its own. */
export function listenForService(
  { config, certificate, stats, limiter, memory, log, closers }: Listening,
  { name, service, port, bodyBytesMax: largest }: ServicePlace,
): HttpServer {
  const options = {
    hostname: config.HOST,
    port,
    certificate,
    app: createServiceApp(service),
    bodyBytesMax: largest,
    service: name,
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter,
    memory,
    log,
    stats,
  };
  const server = claimPort(
    { name: `${name.toUpperCase()}_PORT`, value: port },
    { name: "HOST", value: config.HOST },
    () => openServer(options),
  );
  closers.add(`${name}'s listener`, () => server.close(config.STOP_GRACE_MS));
  return server;
}
