/**
 * What other routes to cached bytes cost beside the shortest one: a manifest's path, a chunk, a client with a limit;
 * each in turn with a body of the same size asked for by its id.
 *
 * CPU is user and system time of the server over a fixed number of requests, as in bench/http.ts.
 * @module
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFromBytes } from "../src/arweave/id.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "./harness.ts";
import { runLoad } from "./http-client.ts";
import { cpuSeconds, startServed } from "./served.ts";

const sizes: Readonly<Record<BenchSize, { bodies: number; requests: number; rounds: number }>> = {
  small: { bodies: 2, requests: 40, rounds: 1 },
  large: { bodies: 64, requests: 3_000, rounds: 3 },
};

const connections = 8;
const kibibyte = 2 ** 10;

/** A way to bytes, and the plain way to as many. */
type Route = Readonly<{ name: string; paths: readonly string[]; plain: readonly string[]; target: string }>;

type Served = Awaited<ReturnType<typeof startServed>>;

/** CPU a request, over that of a raw body of the same size. */
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
      const paths = (of: readonly string[]) => of.map((id) => `/${id}`);
      const data = served.chunkEnds.map((end) => `/chunk/${end}/data`);
      const routes: Route[] = [
        {
          name: "path in a manifest, 64 KiB",
          paths: middle.map((id) => `/${served.manifest}/${id}`),
          plain: paths(middle),
          target: "≤ 2",
        },
        { name: "chunk's data, 256 KiB", paths: data, plain: paths(chunkSized), target: "≤ 2" },
      ];
      for (const route of routes) rows.push(await measureRoute(served, served, route, size));
      rows.push(await measureJson(folder, served, size));
    } finally {
      await served.stop();
      rmSync(folder, { recursive: true, force: true });
    }
    return rows;
  },
};

/** The JSON of chunks, against bodies as large as it. */
async function measureJson(folder: string, served: Served, size: BenchSize): Promise<BenchRow> {
  const paths = served.chunkEnds.map((end) => `/chunk/${end}`);
  const bytes = (await (await fetch(`http://127.0.0.1:${served.port}${paths[0]}`)).bytes()).length;
  const ids = writeBodies(folder, bytes, paths.length);
  const other = await startServed(folder, { ids, cache: join(folder, "cache of JSON") });
  try {
    const route = { name: "chunk as JSON, 256 KiB", paths, plain: ids.map((id) => `/${id}`), target: "≤ 2" };
    return await measureRoute(served, other, route, size);
  } finally {
    await other.stop();
  }
}

async function measureRoute(
  served: Served,
  plainServed: Served,
  { name, paths, plain, target }: Route,
  size: BenchSize,
): Promise<BenchRow> {
  const { requests, rounds } = sizes[size];
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
    figure: `${median(pairs.map(({ ours }) => ours)).toFixed(1)} µs CPU`,
    reference: `by its id ${median(pairs.map(({ theirs }) => theirs)).toFixed(1)} µs CPU`,
    ratio: median(pairs.map(({ ours, theirs }) => ours / theirs)),
    target,
  };
}

function writeBodies(folder: string, bytes: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const id = idFromBytes(new Bun.CryptoHasher("sha256").update(`${bytes} ${index}`).digest());
    writeFileSync(join(folder, "bodies", id), Buffer.alloc(bytes, index + 1));
    return id;
  });
}
