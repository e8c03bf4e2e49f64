/**
 * The server that graphql.ts measures: `/graphql` over an index file, and a route of fixed text, in a process of its
 * own.
 * @module
 */
import { graphql } from "../../src/http/graphql/graphql-routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { openPool } from "../../src/threads/pool.ts";
import { openServer } from "../../test/support/http-server.ts";

const [indexPath = "", contentFolder = ""] = process.argv.slice(2);
const idleMs = Number.POSITIVE_INFINITY;
const pool = openPool({ entry: "graphql", threads: 1, queueMax: 64, timeoutMs: 60_000, idleMs });
const server = openServer({
  hostname: "127.0.0.1",
  port: 0,
  app: graphql({
    pool,
    index: openIndexReader(indexPath),
    contentFolder,
    timeoutMs: 30_000,
    clock: systemClock,
    log: silentLog,
  }).get("/text", () => new Response("fixed text")),
  bodyBytesMax: 2 ** 20,
  log: silentLog,
  stats: { responded: () => undefined, respondedFromCache: () => undefined },
});
process.stdout.write(`${server.port}\n`);
