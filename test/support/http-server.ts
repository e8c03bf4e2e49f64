/**
 * The HTTP server around an application, with defaults for tests.
 * @module
 */
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { type HttpServer, prepareServer, type ServerOptions } from "../../src/http/server.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";

/** Composes the routes and opens the listener at once. Throws when the port is taken. */
export function openServer(options: ServerOptions): HttpServer {
  return prepareServer(options)();
}

/** Opens it on a free port of this machine. */
export function openTestServer(options: Partial<ServerOptions> & Pick<ServerOptions, "app">): HttpServer {
  return openServer({
    hostname: "127.0.0.1",
    port: 0,
    bodyBytesMax: 1_000,
    log: silentLog,
    stats: createRequestMetrics(createMetrics(), silentLog),
    ...options,
  });
}
