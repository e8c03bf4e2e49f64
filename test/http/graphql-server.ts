/**
 * A listener with `/graphql` and nothing else, for tests.
 * @module
 */
import { type GraphqlOptions, graphql } from "../../src/http/graphql/graphql-routes.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type Log, silentLog } from "../../src/lib/log.ts";
import type { Pool, Workers } from "../../src/threads/pool.ts";
import { openServer } from "../support/http-server.ts";
import { asRun } from "../support/pools.ts";

type QueryPool = Pool<Workers["graphql"]>;

/** Opens the listener on a free port. */
export function openGraphqlServer(
  given: Readonly<{
    pool: QueryPool;
    /** None: a pool without an index. */
    index?: GraphqlOptions["index"];
    contentFolder?: string;
    store?: GraphqlOptions["store"];
    timeoutMs?: number;
    log?: Log;
  }>,
): HttpServer {
  return openServer({
    hostname: "127.0.0.1",
    port: 0,
    app: graphql({
      pool: given.pool,
      index: given.index ?? { path: "", encodedRow: () => undefined, block: () => undefined },
      contentFolder: given.contentFolder ?? "",
      store: given.store,
      timeoutMs: given.timeoutMs ?? 10_000,
      clock: systemClock,
      log: given.log ?? silentLog,
    }),
    bodyBytesMax: 16 * 2 ** 20,
    log: given.log ?? silentLog,
    stats: { responded: () => undefined, respondedFromCache: () => undefined },
  });
}

/** A pool that runs jobs in this thread. */
export function poolOf(run: (job: never) => unknown): QueryPool {
  return {
    run: asRun(async (_name, job) => await run((typeof job === "function" ? job(0) : job) as never)),
    ping: async () => "ok",
    load: () => ({ open: 0, threads: 0 }),
    close: async () => undefined,
  };
}
