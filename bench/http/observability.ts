/**
 * The cost of metrics and traces: CPU time per request of a listener with metrics, and with traces too, against one
 * that notes nothing. The servers run alternately in one run, in short rounds of about one batch of spans. CPU time is
 * that of all threads of the server.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { type Observed, startServed } from "../support/gateway-process.ts";
import { runLoad } from "../support/http-client.ts";
import { startCpuNanos } from "../support/processor-time.ts";

const rounds: Readonly<Record<BenchSize, number>> = { small: 1, large: 21 };

/** Rounds before the measured ones: the runtime compiles late what only each twentieth request runs. */
const warmingRounds: Readonly<Record<BenchSize, number>> = { small: 1, large: 20 };

/** A small run has the large number of requests divided by this. */
const smaller = 200;

const connections = 8;
const bodyBytes = 2 ** 10;
const bodies = 64;

type Served = Awaited<ReturnType<typeof startServed>>;

/** Requests of a kind. */
type Kind = Readonly<{ name: string; pathsOf: (served: Served, ids: readonly string[]) => string[]; requests: number }>;

const kinds: readonly Kind[] = [
  { name: "body of 1 KiB from memory", pathsOf: (_served, ids) => ids.map((id) => `/${id}`), requests: 8_000 },
  {
    name: "body of 1 KiB by a path in a manifest",
    pathsOf: ({ manifest }, ids) => ids.map((id) => `/${manifest}/${id}`),
    requests: 8_000,
  },
];

export const observabilityBench: Bench = {
  name: "observability",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-observability-"));
    mkdirSync(join(folder, "bodies"));
    const ids = writeBodies(folder);
    const collector = openCollector();
    const start = (observes: Observed) =>
      startServed(folder, { ids, observes, collector: collector.url, cache: join(folder, `cache of ${observes}`) });
    const servers = {
      nothing: await start("nothing"),
      metrics: await start("metrics"),
      "some traces": await start("some traces"),
      "all traces": await start("all traces"),
    };
    try {
      const rows: BenchRow[] = [];
      for (const kind of kinds) rows.push(...(await measureKind(servers, kind, ids, size)));
      return rows;
    } finally {
      await Promise.all(Object.values(servers).map(({ stop }) => stop()));
      collector.close();
      removeFolder(folder);
    }
  },
};

async function measureKind(
  servers: Readonly<Record<Observed, Served>>,
  { name, pathsOf, requests }: Kind,
  ids: readonly string[],
  size: BenchSize,
): Promise<BenchRow[]> {
  const count = size === "large" ? requests : Math.ceil(requests / smaller);
  const cpuMicros = async (observed: Observed) => {
    const server = servers[observed];
    const passed = startCpuNanos(server.pid);
    await runLoad({ port: server.port, paths: pathsOf(server, ids), bodyBytes, connections, requests: count });
    return passed() / 1e3 / count;
  };
  const round = async () => ({
    nothing: await cpuMicros("nothing"),
    metrics: await cpuMicros("metrics"),
    "some traces": await cpuMicros("some traces"),
    "all traces": await cpuMicros("all traces"),
  });
  for (let warming = 0; warming < warmingRounds[size]; warming += 1) await round();
  const results: Awaited<ReturnType<typeof round>>[] = [];
  for (let each = 0; each < rounds[size]; each += 1) results.push(await round());
  const show = (observed: Observed) => `${median(results.map((result) => result[observed])).toFixed(1)} µs CPU`;
  return (["metrics", "some traces", "all traces"] as const).map((observed) => ({
    name: `${name}, ${names[observed]}`,
    metric: show(observed),
    reference: `without ${show("nothing")}`,
    ratio: median(results.map((result) => result[observed] / result.nothing)),
    target: "≤ 1.03",
  }));
}

const names = {
  metrics: "with metrics",
  "some traces": "with metrics and a span of each twentieth",
  "all traces": "with metrics and a span of each",
} as const;

/** A collector that accepts everything. */
function openCollector() {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      await request.arrayBuffer();
      return Response.json({});
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, close: () => void server.stop(true) };
}

function writeBodies(folder: string): string[] {
  return Array.from({ length: bodies }, (_, index) => {
    const id = idFromBytes(new Bun.CryptoHasher("sha256").update(`observed ${index}`).digest());
    writeFileSync(join(folder, "bodies", id), Buffer.alloc(bodyBytes, index + 1));
    return id;
  });
}
