/**
 * The server that bench/http.ts measures: the gateway's surface over bodies on disk, in a process of its own.
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { idFromBytes } from "../src/arweave/id.ts";
import { createNodes } from "../src/chain/nodes.ts";
import type { OpenContent } from "../src/content/content.ts";
import { Failure } from "../src/failures.ts";
import { createHealth } from "../src/gateway/health.ts";
import { createGateway } from "../src/http/gateway/gateway.ts";
import { createRequestFigures } from "../src/http/request-figures.ts";
import { openServer } from "../src/http/server.ts";
import { systemClock } from "../src/lib/clock.ts";
import { sha256 } from "../src/lib/hash.ts";
import { silentLog } from "../src/lib/log.ts";
import { createMetrics } from "../src/lib/metrics.ts";

const [folder = "", list = ""] = process.argv.slice(2);

/** Bodies by id: the files of the folder, whose names are ids. */
const sizes = new Map(
  list.split(",").map((entry) => [entry.split(":")[0] ?? "", Number(entry.split(":")[1])]),
);

const nothing = { tip: () => undefined, blockText: () => undefined, locate: () => undefined };
const metrics = createMetrics();
const gateway = createGateway({
  reader: {
    ...nothing,
    transactionAt: () => undefined,
    transactionStatus: () => undefined,
    transactionText: () => undefined,
    transactionsOfBlock: () => [],
    weaveSpan: () => undefined,
  },
  content: { open: async (id) => openFile(id) },
  nodes: createNodes([], { clock: systemClock, random: () => 0.5, log: silentLog }),
  chunkNodes: createNodes([], { clock: systemClock, random: () => 0.5, log: silentLog }),
  gatewayUrls: [],
  resolveLarge: () => Promise.reject(new Error("the bench has no manifests")),
  listeners: { onTransaction: () => undefined, onChunk: () => undefined },
  graphql: undefined,
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
    rootHosts: process.argv[4] === "isolating" ? ["localhost"] : [],
    isolation: "auto",
    redirectAll: false,
    sandboxScheme: undefined,
    apex: undefined,
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
  log: silentLog,
  figures: createRequestFigures(metrics, silentLog, () => "/"),
});
process.stdout.write(`${server.port}\n`);

const digest = sha256(new Uint8Array(1));

function openFile(id: ReturnType<typeof idFromBytes>): OpenContent {
  const size = sizes.get(id);
  if (size === undefined) throw new Failure("not_found", { id });
  const path = join(folder, id);
  const bytes = async ({ start, end }: { start: number; end: number }) =>
    new Uint8Array(readFileSync(path)).subarray(start, end);
  return {
    id,
    root: undefined,
    dataOffset: 0,
    size,
    contentType: "image/png",
    contentEncoding: undefined,
    digest,
    verified: true,
    stable: true,
    trusted: true,
    cached: () => true,
    bytes,
    read: async function* (span) {
      yield await bytes(span);
    },
    file: async ({ start }) => ({ path, start }),
  };
}
