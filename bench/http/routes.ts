/**
 * CPU time of routes to cached bytes: a path of a manifest, a chunk, a client with a limit. Each runs alternately with
 * requests for a body of the same size by its id. CPU time is measured as in http.ts.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { startServed } from "../support/gateway-process.ts";
import { runLoad } from "../support/http-client.ts";
import { cpuSeconds } from "../support/processor-time.ts";

const sizes: Readonly<Record<BenchSize, { bodies: number; rounds: number }>> = {
  small: { bodies: 2, rounds: 1 },
  large: { bodies: 64, rounds: 5 },
};

/** A small run has the large number of requests divided by this. */
const smaller = 200;

const connections = 8;
const kibibyte = 2 ** 10;

/** A route to bytes, and the reference route to as many bytes. */
type Route = Readonly<{
  name: string;
  paths: readonly string[];
  /** Name of the reference. */
  beside: string;
  plain: readonly string[];
  /** Requests of a large run: CPU time is reported in hundredths of a second. */
  requests: number;
  target?: string;
}>;

type Served = Awaited<ReturnType<typeof startServed>>;

/** CPU time per request, divided by that of a raw body of the same size. */
export const routesBench: Bench = {
  name: "routes",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-routes-"));
    mkdirSync(join(folder, "bodies"));
    const { bodies } = sizes[size];
    const middle = writeBodies(folder, 64 * kibibyte, bodies);
    const chunkSized = writeBodies(folder, 256 * kibibyte, bodies);
    const asServed = { ids: [...middle, ...chunkSized], chunks: bodies };
    const served = await startServed(folder, asServed);
    const rows: BenchRow[] = [];
    try {
      // The JSON of a chunk is larger than the chunk: bodies of just that size are made when one was seen.
      const data = served.chunkEnds.map((end) => `/chunk/${end}/data`);
      const routes: Route[] = [
        {
          name: "path in a manifest, 64 KiB",
          paths: middle.map((id) => `/${served.manifest}/${id}`),
          ...byId(middle, 8_000),
        },
        { name: "chunk's data, 256 KiB", paths: data, ...byId(chunkSized, 4_000) },
      ];
      for (const route of routes) rows.push(await measureRoute(served, served, route, size));
      rows.push(await measureJson(folder, served, size));
      rows.push(...(await measureRecords(folder, served, middle, size)));
      rows.push(await measureLimited(folder, size));
    } finally {
      await served.stop();
      removeFolder(folder);
    }
    return rows;
  },
};

/** Small bodies for clients with a limit, against clients without one. */
async function measureLimited(folder: string, size: BenchSize): Promise<BenchRow> {
  const ids = writeBodies(folder, kibibyte, sizes[size].bodies);
  const paths = ids.map((id) => `/${id}`);
  const cache = (name: string) => join(folder, `cache of ${name}`);
  const limited = await startServed(folder, { ids, isLimited: true, cache: cache("limited") });
  const free = await startServed(folder, { ids, cache: cache("free") });
  try {
    const name = "body of 1 KiB for a client with a limit";
    const route = { name, paths, beside: "without", plain: paths, requests: 20_000 };
    return await measureRoute(limited, free, route, size);
  } finally {
    await Promise.all([limited.stop(), free.stop()]);
  }
}

/** The JSON of chunks, against bodies of the same size. */
async function measureJson(folder: string, served: Served, size: BenchSize): Promise<BenchRow> {
  const paths = served.chunkEnds.map((end) => `/chunk/${end}`);
  const bytes = (await (await fetch(`http://127.0.0.1:${served.port}${paths[0]}`)).bytes()).length;
  const ids = writeBodies(folder, bytes, paths.length);
  const other = await startServed(folder, { ids, cache: join(folder, "cache of JSON") });
  try {
    const route = { name: "chunk as JSON, 256 KiB", paths, ...byId(ids, 2_000) };
    return await measureRoute(served, other, route, size);
  } finally {
    await other.stop();
  }
}

/** Heights of the served chain at which blocks never change, and at which a fork may replace them. */
const heights = { final: 900, changing: 990 } as const;

/** Blocks and transactions that never change, and a block that is read each time, against bodies of the same size. */
async function measureRecords(
  folder: string,
  served: Served,
  ids: readonly string[],
  size: BenchSize,
): Promise<BenchRow[]> {
  const record = { requests: 20_000, target: "≤ 40 µs" };
  const records = [
    { name: "block by height", paths: [`/block/height/${heights.final}`], ...record },
    { name: "transaction header", paths: ids.map((id) => `/tx/${id}`), ...record },
    { name: "block near the tip", paths: [`/block/height/${heights.changing}`], requests: 10_000 },
  ];
  const rows: BenchRow[] = [];
  for (const each of records) {
    const bytes = (await (await fetch(`http://127.0.0.1:${served.port}${each.paths[0]}`)).bytes()).length;
    const plain = writeBodies(folder, bytes, 1);
    const other = await startServed(folder, { ids: plain, cache: join(folder, `cache of ${each.name}`) });
    try {
      const route = { ...each, beside: "a body of its size by its id", plain: plain.map((id) => `/${id}`) };
      rows.push(await measureRoute(served, other, route, size));
    } finally {
      await other.stop();
    }
  }
  return rows;
}

async function measureRoute(
  served: Served,
  plainServed: Served,
  { name, paths, beside, plain, target, ...route }: Route,
  size: BenchSize,
): Promise<BenchRow> {
  const { rounds } = sizes[size];
  const requests = size === "large" ? route.requests : Math.ceil(route.requests / smaller);
  const bytesOf = async ({ port }: Served, path = "/") =>
    (await (await fetch(`http://127.0.0.1:${port}${path}`)).bytes()).length;
  const cpuMicros = async (server: Served, all: readonly string[], bodyBytes: number) => {
    const before = cpuSeconds(server.pid);
    await runLoad({ port: server.port, paths: all, bodyBytes, connections, requests });
    return ((cpuSeconds(server.pid) - before) * 1e6) / requests;
  };
  const one = { bytes: await bytesOf(served, paths[0]), plainBytes: await bytesOf(plainServed, plain[0]) };
  await cpuMicros(served, paths, one.bytes);
  await cpuMicros(plainServed, plain, one.plainBytes);
  const pairs: { ours: number; theirs: number }[] = [];
  for (let round = 0; round < rounds; round += 1)
    pairs.push({
      ours: await cpuMicros(served, paths, one.bytes),
      theirs: await cpuMicros(plainServed, plain, one.plainBytes),
    });
  return {
    name: `${name}, CPU a request`,
    metric: `${median(pairs.map(({ ours }) => ours)).toFixed(1)} µs CPU`,
    reference: `${beside} ${median(pairs.map(({ theirs }) => theirs)).toFixed(1)} µs CPU`,
    ratio: median(pairs.map(({ ours, theirs }) => ours / theirs)),
    ...(target === undefined ? {} : { target }),
  };
}

function byId(ids: readonly string[], requests: number) {
  return { beside: "by its id", plain: ids.map((id) => `/${id}`), requests, target: "≤ 2" };
}

function writeBodies(folder: string, bytes: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const id = idFromBytes(new Bun.CryptoHasher("sha256").update(`${bytes} ${index}`).digest());
    writeFileSync(join(folder, "bodies", id), Buffer.alloc(bytes, index + 1));
    return id;
  });
}
