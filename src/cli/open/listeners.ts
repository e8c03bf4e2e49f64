/**
 * The listeners: the gateway's, administration's and those of the other services.
 * @module
 */

import type { AnyElysia } from "elysia";
import type { Gateway } from "../../http/gateway/gateway.ts";
import type { Certificate } from "../../http/listener.ts";
import { createRateLimiter, type RateLimiter } from "../../http/rate-limiter.ts";
import type { RequestFigures } from "../../http/request-figures.ts";
import { reservedSegments } from "../../http/reserved.ts";
import { type HttpServer, openServer } from "../../http/server.ts";
import { createServiceApp, type Service } from "../../http/service.ts";
import { systemClock } from "../../lib/clock.ts";
import type { Closers } from "../../lib/closers.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { hostAndPort } from "../../settings/readers.ts";
import type { Config } from "../../settings.ts";
import { claimPort } from "../claim-port.ts";
import { systemRandom } from "../random.ts";
import { addressTest, proxyTest } from "../trusted-proxies.ts";

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
  figures: RequestFigures;
  /** One for all of them: who asks a service as well as the gateway has one limit. Undefined: there are no limits. */
  limiter: RateLimiter | undefined;
  log: Log;
  closers: Closers;
}>;

/** The gateway's; it takes what the services take that are mounted on it. */
export function listenForGateway(
  { config, certificate, figures, limiter, log, closers }: Listening,
  gateway: Gateway,
  services: readonly ServicePlace[],
): HttpServer {
  const mounted = config.MOUNT_SERVICES ? services.map((each) => each.bodyBytesMax) : [];
  const options = {
    hostname: config.HOST,
    port: config.GATEWAY_PORT,
    certificate,
    app: gateway.app,
    hit: gateway.hit,
    bodyBytesMax: Math.max(bodyBytesMax, ...mounted),
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter,
    log,
    figures,
  };
  const server = claimPort(
    { name: "GATEWAY_PORT", value: options.port },
    { name: "HOST", value: config.HOST },
    () => openServer(options),
  );
  closers.add("listener", () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** Creates the limiter that the settings tell. @throws Misuse when what is exempt is no address. */
export function limiterOf(config: Config, metrics: Metrics): RateLimiter | undefined {
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
    metrics,
  });
}

/** Administration on a listener of its own; its key is as worthy of a certificate as anything. */
export function listenForAdmin(
  { config, certificate, figures, log, closers }: Listening,
  app: AnyElysia,
): HttpServer {
  const { host, port } = hostAndPort(config.ADMIN_LISTEN ?? "");
  const isTrustedProxy = proxyTest(config.TRUSTED_PROXIES);
  const options = { hostname: host, port, certificate, app, bodyBytesMax, isTrustedProxy, log, figures };
  const place = { name: "ADMIN_LISTEN", value: config.ADMIN_LISTEN ?? "" };
  const server = claimPort(place, place, () => openServer(options));
  closers.add("administration's listener", () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** Another service on a listener of its own. */
export function listenForService(
  { config, certificate, figures, limiter, log, closers }: Listening,
  { name, service, port, bodyBytesMax: largest }: ServicePlace,
): HttpServer {
  const options = {
    hostname: config.HOST,
    port,
    certificate,
    app: createServiceApp(service),
    bodyBytesMax: largest,
    isTrustedProxy: proxyTest(config.TRUSTED_PROXIES),
    limiter,
    log,
    figures,
  };
  const server = claimPort(
    { name: `${name.toUpperCase()}_PORT`, value: port },
    { name: "HOST", value: config.HOST },
    () => openServer(options),
  );
  closers.add(`${name}'s listener`, () => server.close(config.STOP_GRACE_MS));
  return server;
}

/** Few labels, whatever is asked for: the reserved first segment, or content. */
export function labelOfPath(path: string): string {
  const first = path.split("/", 2)[1] ?? "";
  return reservedSegments.has(first) ? `/${first}` : "/{id}";
}
