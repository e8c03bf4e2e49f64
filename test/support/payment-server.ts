/**
 * Routes of the payment service on a real socket, at both of their paths.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { createPromoGuard, createSessionGuard } from "../../src/http/payment/client-guards.ts";
import { createTopUpRoutes } from "../../src/http/payment/top-up-routes.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { openServer } from "./http-server.ts";
import { createRecordingLog } from "./recording-log.ts";

/** The routes of a service that accepts no cards. */
export function cardlessTopUpRoutes(): AnyElysia {
  return createTopUpRoutes({
    topUps: undefined,
    promoGuard: createPromoGuard(Date.now, 1),
    sessionGuard: createSessionGuard(Date.now, 1),
    publicUrl: () => "",
    returnOrigins: [],
  });
}

/** A listener with the routes that a test gave. */
export type PaymentServer = Readonly<{
  server: HttpServer;
  url: string;
  /** Log lines so far, parsed. */
  lines: Record<string, unknown>[];
  close: () => Promise<void>;
}>;

/**
 * Opens a listener on a free port of the loopback address.
 *
 * @param create - Makes the routes anew for each place: the root and `/v1`.
 * @param bodyBytesMax - Of any request; 1 MiB by default.
 */
export function openPaymentServer(create: () => readonly AnyElysia[], bodyBytesMax: number = 2 ** 20): PaymentServer {
  const { log, lines } = createRecordingLog();
  const place = (prefix: string) =>
    create().reduce((all, routes) => all.use(routes), new Elysia({ prefix, strictPath: true }) as AnyElysia);
  const server = openServer({
    hostname: "127.0.0.1",
    port: 0,
    app: new Elysia({ strictPath: true }).use(place("")).use(place("/v1")),
    bodyBytesMax,
    log,
    stats: createRequestMetrics(createMetrics(), log),
  });
  return { server, url: server.url, lines, close: () => server.close(1_000) };
}
