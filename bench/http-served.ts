/**
 * The server that bench/http.ts measures: the gateway's surface over content that lies in the cache on disk,
 * checked and mapped as the program does it, in a process of its own.
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readId } from "../src/arweave/id.ts";
import { createHealth } from "../src/gateway/health.ts";
import { createGateway } from "../src/http/gateway/gateway.ts";
import { graphql } from "../src/http/gateway/graphql.ts";
import { createRequestFigures } from "../src/http/request-figures.ts";
import { openServer } from "../src/http/server.ts";
import { assert } from "../src/lib/assert.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog, silentLog } from "../src/lib/log.ts";
import { createMetrics } from "../src/lib/metrics.ts";
import type { Located } from "../src/store/rows.ts";
import { openPool } from "../src/threads/pool.ts";
import { locatedOf, openRig } from "../test/content/rig.ts";

/** Folder of the bodies, whose names are ids; folder of the cache; the ids; an index file where /graphql is to answer. */
const [bodies = "", cache = "", ids = "", indexPath] = process.argv.slice(2);

/** What goes wrong is said; requests are not, as under LOG_LEVEL=warn. */
const log = createLog({
  level: "warn",
  format: "json",
  clock: systemClock,
  write: (line) => process.stderr.write(line),
});
const rig = openRig({ nodeUrls: [], folder: cache, bytesMax: 2 ** 34 });
for (const name of ids.split(",")) {
  const id = readId(name);
  assert(id !== undefined, "bodies are named by ids");
  const body = new Uint8Array(readFileSync(join(bodies, name)));
  const root = { id, dataRoot: "", size: body.byteLength };
  const row: Located = { ...locatedOf(id, root), contentType: "image/png" };
  rig.index.set(id, row);
  assert(await rig.content.keep(root, body), "there is room for every body");
}

const metrics = createMetrics();
const gateway = createGateway({
  reader: {
    tip: () => undefined,
    block: () => undefined,
    blockText: () => undefined,
    itemsWithin: () => [],
    locate: (id) => rig.index.get(id),
    transactionAt: () => undefined,
    transactionStatus: () => undefined,
    transactionText: () => undefined,
    transactionsOfBlock: () => [],
    weaveSpan: () => undefined,
  },
  content: rig.content,
  refusals: {
    isBlockedId: () => false,
    isBlockedDigest: () => false,
    hasBlockedDigests: () => false,
    isBlockedWithin: () => false,
    isBlockedUnder: () => false,
  },
  nodes: rig.nodes,
  chunkNodes: rig.nodes,
  names: { resolve: async () => ({ kind: "absent" }) },
  peers: { gateways: () => [], nodes: () => [] },
  resolveLarge: () => Promise.reject(new Error("the bench has no manifests")),
  listeners: { onTransaction: () => undefined, onChunk: () => undefined },
  graphql: indexPath === undefined ? undefined : openGraphql(indexPath),
  administration: undefined,
  info: {
    wallet: undefined,
    processId: undefined,
    unbundleFilter: {},
    indexFilter: {},
    release: "bench",
    services: {},
  },
  health: createHealth({ clock: systemClock, checks: [], notes: [], readiness: [] }),
  metrics,
  clock: systemClock,
  settings: {
    rootHosts: [],
    isolation: "auto",
    redirectAll: false,
    sandboxScheme: undefined,
    apex: undefined,
    notFoundPage: { id: undefined, name: undefined },
    coldBufferBytes: 8 * 2 ** 20,
    hitsBytesMax: 2 ** 30,
  },
});
const server = openServer({
  hostname: "127.0.0.1",
  port: 0,
  app: gateway.app,
  hit: gateway.hit,
  bodyBytesMax: 2 ** 20,
  log,
  figures: createRequestFigures(metrics, log, () => "/"),
});
process.stdout.write(`${server.port}\n`);

/** As the program opens it, with as many threads as it has unless told. */
function openGraphql(path: string) {
  const idleMs = Number.POSITIVE_INFINITY;
  const pool = openPool({ entry: "query", threads: 2, queueMax: 64, timeoutMs: 60_000, idleMs });
  return graphql({
    pool,
    indexPath: path,
    contentFolder: cache,
    timeoutMs: 10_000,
    clock: systemClock,
    log: silentLog,
  });
}
