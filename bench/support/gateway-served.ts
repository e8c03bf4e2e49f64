/**
 * The server that the benches of bodies, ranges, routes, GraphQL and cold content measure, in its own process: the
 * gateway's routes over content in the disk cache, which is verified and mapped as in the program.
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { type BlockHash, readId } from "../../src/arweave/id.ts";
import { manifestContentType } from "../../src/arweave/manifest.ts";
import { chunkSize } from "../../src/arweave/merkle.ts";
import { createChunkCheck } from "../../src/content/chunk-check.ts";
import { createPieceHash } from "../../src/content/root-digests.ts";
import { createHealth } from "../../src/gateway/health.ts";
import { createBodyMemory } from "../../src/http/body-memory.ts";
import { createGateway } from "../../src/http/gateway/gateway.ts";
import { graphql } from "../../src/http/graphql/graphql-routes.ts";
import { createRateLimiter } from "../../src/http/rate-limiter.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { createRequestSpans } from "../../src/http/request-spans.ts";
import { assert } from "../../src/lib/assert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog, silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { createSpanWriter } from "../../src/lib/otlp-json.ts";
import { openSpanExporter } from "../../src/lib/span-exporter.ts";
import { createTracer } from "../../src/lib/spans.ts";
import { createSampler } from "../../src/lib/trace-context.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import type { IndexReader, WeaveSpan } from "../../src/store/index/index-types.ts";
import type { RootSpec } from "../../src/store/root-spec.ts";
import { openPool } from "../../src/threads/pool.ts";
import { madeId, makeData } from "../../test/chain/data-node.ts";
import { locatedOf, openHarness } from "../../test/content/content-harness.ts";
import { openServer } from "../../test/support/http-server.ts";
import type { LoopDelay, ServedFixture, ServedLine } from "./gateway-process.ts";

const [fixturePath = ""] = process.argv.slice(2);
const fixture: ServedFixture = JSON.parse(readFileSync(fixturePath, "utf8"));

/** Logs warnings and errors, but no requests, as with LOG_LEVEL=warn. */
const log = createLog({
  level: "warn",
  format: "json",
  clock: systemClock,
  write: (line) => process.stderr.write(line),
});
const nodeUrls = fixture.node === undefined ? [] : [fixture.node.url];
const never = Number.POSITIVE_INFINITY;
const thread = openPool({ entry: "content", threads: 1, queueMax: 64, timeoutMs: 60_000, idleMs: never });
const checks = { chunk: createChunkCheck(thread), hashPiece: createPieceHash(thread) };
const harness = openHarness({ nodeUrls, folder: fixture.cache, bytesMax: 2 ** 34, checks });
for (const name of fixture.ids) {
  const id = readId(name);
  assert(id !== undefined, "bodies are named by ids");
  await keep({ id, dataRoot: "" }, new Uint8Array(readFileSync(join(fixture.bodies, name))), "image/png");
}
const manifest = await keepManifest();
const chunked = makeData(1, fixture.chunks * chunkSize);
await keep(chunked.root, chunked.bytes, "image/png");
for (const root of fixture.node?.roots ?? []) {
  const id = readId(root.id);
  assert(id !== undefined, "content of a node is named by ids");
  const spec: RootSpec = { id, dataRoot: root.dataRoot, size: root.size, weaveStart: BigInt(root.weaveStart) };
  harness.index.set(id, { ...locatedOf(id, spec), contentType: "image/png" });
}
const { weaveStart = 0n } = chunked.root;
const span: WeaveSpan = {
  id: chunked.root.id,
  place: { height: 100, txIndex: 0, offset: -1 },
  start: weaveStart,
  end: weaveStart + BigInt(chunked.root.size),
  format: 2,
  dataRoot: chunked.root.dataRoot,
};

const index = fixture.indexPath === undefined ? undefined : openIndexReader(fixture.indexPath);
const metrics = createMetrics();
/** A listener without metrics, traces and lines of the log, as the program never has. */
const unobserved = { responded: () => undefined, respondedFromCache: () => undefined };
const gateway = createGateway({
  reader: {
    tip: index?.tip ?? (() => ({ height: 1_000, hash: "" as BlockHash, timestamp: 0 })),
    block: () => undefined,
    blockText: (block) => index?.blockText(block),
    finalBlock: (block) => index?.finalBlock(block),
    finalTransaction: (id) => index?.finalTransaction(id),
    invalidItems: () => undefined,
    itemsWithin: () => [],
    locate: (id) => harness.index.get(id),
    transactionAt: (at) => (at >= span.start && at < span.end ? span : undefined),
    transactionRecord: (id) => index?.transactionRecord(id),
    transactionStatus: (id) => index?.transactionStatus(id),
    transactionText: (id) => index?.transactionText(id),
    transactionsOfBlock: () => [],
    weaveSpan: () => undefined,
  },
  content: harness.content,
  blockList: {
    isBlockedId: () => false,
    isBlockedDigest: () => false,
    hasBlockedDigests: () => false,
    isBlockedWithin: () => false,
    isBlockedUnder: () => false,
  },
  nodes: harness.nodes,
  chunkNodes: harness.nodes,
  checkChunk: checks.chunk,
  names: { resolve: async () => ({ kind: "absent" }) },
  peers: { gateways: () => [], nodes: () => [] },
  checkRelayed: async () => undefined,
  largeManifests: { resolve: () => Promise.reject(new Error("the bench has no manifests")) },
  listeners: { onTransaction: async () => undefined, onChunk: () => undefined },
  graphql: index === undefined ? undefined : openGraphql(index),
  administration: undefined,
  info: {
    wallet: undefined,
    processId: undefined,
    unbundleFilter: {},
    indexFilter: {},
    release: "bench",
    services: {},
    features: [],
    limits: undefined,
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
    sendsArweaveHeaders: false,
    coldBufferBytes: 8 * 2 ** 20,
    responseCacheBytesMax: 2 ** 30,
  },
});
const server = openServer({
  hostname: "127.0.0.1",
  port: 0,
  app: gateway.app,
  cachedResponse: gateway.hit,
  withoutRouter: gateway.finalRecord,
  bodyBytesMax: 2 ** 20,
  limiter: fixture.isLimited ? openLimiter() : undefined,
  memory: createBodyMemory({ responseBytesMax: 2 ** 28, requestBytesMax: 2 ** 27, metrics }),
  log,
  stats: fixture.observes === "nothing" ? unobserved : createRequestMetrics(metrics, log),
  spans: openSpans(fixture),
});
const loop = monitorEventLoopDelay({ resolution: 1 });
loop.enable();
process.on("message", () => {
  const delay: LoopDelay = { p99: loop.percentile(99) / 1e6, longest: loop.max / 1e6 };
  loop.reset();
  process.send?.(delay);
});
const line: ServedLine = {
  port: server.port,
  manifest,
  chunkEnds: chunked.spans.map(({ end }) => String(weaveStart + BigInt(end))),
};
process.stdout.write(`${JSON.stringify(line)}\n`);

/** Traces as the program opens them by default, or of a part of all requests. */
function openSpans({ observes, collector }: ServedFixture) {
  if (observes !== "all traces" && observes !== "some traces") return undefined;
  const exporter = openSpanExporter({
    url: `${collector}/v1/traces`,
    headers: {},
    writer: createSpanWriter({ "service.name": "bench" }, { name: "cairn", version: "bench" }),
    metrics,
    log,
    random: Math.random,
  });
  const { add: record, drop } = exporter;
  const share = 0.05;
  const sampler = createSampler(observes === "all traces" ? "parentbased_always_on" : "traceidratio", share);
  return createRequestSpans(createTracer({ sampler, record, drop, isOwn: () => false }), record);
}

/** Puts data into the index and the disk cache. */
async function keep(root: Omit<RootSpec, "size">, body: Uint8Array, contentType: string): Promise<void> {
  const whole = { ...root, size: body.byteLength };
  harness.index.set(root.id, { ...locatedOf(root.id, whole), contentType });
  assert(await harness.content.keep(whole, body), "every body fits into memory");
}

/** Creates a manifest with each id as a path. */
async function keepManifest(): Promise<string> {
  const paths = Object.fromEntries(fixture.ids.map((id) => [id, { id }]));
  const text = JSON.stringify({ manifest: "arweave/paths", version: "0.2.0", paths });
  const id = madeId(2);
  await keep({ id, dataRoot: "" }, new TextEncoder().encode(text), manifestContentType);
  return id;
}

/** Limits that no client reaches. */
function openLimiter() {
  const size = { capacity: 2 ** 50, refillPerSecond: 2 ** 30 };
  return createRateLimiter({
    client: size,
    resource: size,
    isExempt: () => false,
    seed: 1,
    clock: systemClock,
    metrics,
  });
}

/** Opens GraphQL as the program does, with the default number of threads. */
function openGraphql(index: IndexReader) {
  const idleMs = Number.POSITIVE_INFINITY;
  const pool = openPool({ entry: "graphql", threads: 2, queueMax: 64, timeoutMs: 60_000, idleMs });
  return graphql({
    pool,
    index,
    contentFolder: fixture.cache,
    timeoutMs: 10_000,
    clock: systemClock,
    log: silentLog,
  });
}
