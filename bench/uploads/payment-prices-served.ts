/**
 * The server that payment-prices.ts measures, in its own process: the price routes over sources that are
 * refreshed in the background as in the program, and one route with a fixed text.
 * @module
 */
import { Elysia } from "elysia";
import { createSandboxPriceFeed } from "../../src/dev/sandbox/price-feed.ts";
import { createPromoGuard } from "../../src/http/payment/client-guards.ts";
import { createPriceRoutes } from "../../src/http/payment/price-routes.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { jsonResponse } from "../../src/http/responses.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { defaultRules } from "../../src/payment/prices/price-rules.ts";
import { openNetworkPrice, openPriceFeed } from "../../src/payment/prices/price-sources.ts";
import { createPrices, feedPairsOf } from "../../src/payment/prices/prices.ts";
import { openServer } from "../../test/support/http-server.ts";

/** Logs warnings and errors, but no requests, as with LOG_LEVEL=warn. */
const log = createLog({
  level: "warn",
  format: "json",
  clock: systemClock,
  write: (line) => process.stderr.write(line),
});
const responseFeed = createSandboxPriceFeed();
const feedServer = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => responseFeed(request) ?? new Response(null, { status: 404 }),
});
const source = { ageMaxMs: 3_600_000, clock: systemClock, random: () => 0.5, log };
const feed = openPriceFeed({
  ...source,
  url: `http://127.0.0.1:${feedServer.port}`,
  pairs: feedPairsOf(defaultRules),
});
const network = openNetworkPrice({
  ...source,
  nodes: { ask: async () => ({ kind: "ok", value: 8_807_988_991_060n as never }) },
});
const prices = createPrices({
  rules: defaultRules,
  network,
  feed,
  clock: systemClock,
  promos: { find: async () => [] },
});
const metrics = createMetrics();
const server = openServer({
  hostname: "127.0.0.1",
  port: 0,
  app: new Elysia({ strictPath: true })
    .use(createPriceRoutes({ prices, promoGuard: createPromoGuard(systemClock, 1) }))
    .get("/trivial", () => jsonResponse("a fixed text")),
  bodyBytesMax: 2 ** 20,
  log,
  stats: createRequestMetrics(metrics, log),
});
process.stdout.write(`${server.port}\n`);
