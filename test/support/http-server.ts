/**
 * The HTTP server around an application, with defaults for tests.
 * @module
 */
import type { AnyElysia } from "elysia";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { type HttpServer, openServer as openProgramServer, type ServerOptions } from "../../src/http/server.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";

/** Options of a server whose routes are composed already. */
export type TestServerOptions = Omit<ServerOptions, "app"> & Readonly<{ app: AnyElysia }>;

/** Throws when the port is taken. */
export function openServer({ app, ...options }: TestServerOptions): HttpServer {
  return openProgramServer({ ...options, app: () => app });
}

/** Opens it on a free port of this machine. */
export function openTestServer(options: Partial<TestServerOptions> & Pick<TestServerOptions, "app">): HttpServer {
  return openServer({
    hostname: "127.0.0.1",
    port: 0,
    bodyBytesMax: 1_000,
    log: silentLog,
    stats: createRequestMetrics(createMetrics(), silentLog),
    ...options,
  });
}
