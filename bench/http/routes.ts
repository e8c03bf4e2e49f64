/**
 * CPU time of routes to cached bytes: a path of a manifest, a chunk, a client with a limit, a request with an id. Each
 * runs alternately with requests for a body of the same size by its id. CPU time is measured as in http.ts.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { addressOf, blockHashFromBytes, idFromBytes } from "../../src/arweave/id.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { stableDepth } from "../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { startFloor } from "../support/floor-process.ts";
import { startServed } from "../support/gateway-process.ts";
import { runLoad } from "../support/http-client.ts";
import { cpuSeconds } from "../support/processor-time.ts";
import { blockRow, transactionRow } from "../support/sample-rows.ts";

const sizes: Readonly<Record<BenchSize, { bodies: number; rounds: number; blocks: number }>> = {
  small: { bodies: 2, rounds: 1, blocks: 150 },
  // As many blocks as are requested in a round, because the program caches those that are requested again soon. In a
  // small run it does.
  large: { bodies: 64, rounds: 5, blocks: 20_100 },
};

/** Records that are requested from memory. */
const hotRecords = 64;

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
  /** Headers of its requests; the reference has none of them. */
  headers?: Readonly<Record<string, string>>;
  target?: string;
}>;

type Served = Awaited<ReturnType<typeof startServed>>;
type Measured = Pick<Served, "port" | "pid">;

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
      rows.push(...(await measureRecords(folder, size)));
      rows.push(...(await measureSmallBodies(folder, size)));
    } finally {
      await served.stop();
      removeFolder(folder);
    }
    return rows;
  },
};

/** Small bodies for clients with a limit, and for requests with an id, against others. */
async function measureSmallBodies(folder: string, size: BenchSize): Promise<BenchRow[]> {
  const ids = writeBodies(folder, kibibyte, sizes[size].bodies);
  const paths = ids.map((id) => `/${id}`);
  const cache = (name: string) => join(folder, `cache of ${name}`);
  const limited = await startServed(folder, { ids, isLimited: true, cache: cache("limited") });
  const free = await startServed(folder, { ids, cache: cache("free") });
  try {
    const others = { paths, beside: "without", plain: paths, requests: 20_000 };
    const withId = { ...others, headers: { "X-Request-Id": "bench" } };
    return [
      await measureRoute(limited, free, { name: "body of 1 KiB for a client with a limit", ...others }, size),
      await measureRoute(free, free, { name: "body of 1 KiB for a request with an id", ...withId }, size),
    ];
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

/**
 * Blocks and transactions of an index: from memory, against bodies of the same size; and read each time, against a bare
 * server that makes the same reads, and no more than each response needs.
 */
async function measureRecords(folder: string, size: BenchSize): Promise<BenchRow[]> {
  const indexPath = join(folder, "index.sqlite");
  const ids = fillChain(indexPath, sizes[size].blocks);
  const served = await startServed(folder, { indexPath, cache: join(folder, "cache of records") });
  const blocks = ids.slice(0, -2 * stableDepth).map((_, height) => `/block/height/${height}`);
  const headers = ids.slice(0, -2 * stableDepth).map((id) => `/tx/${id}`);
  const record = { requests: 20_000, target: "≤ 40 µs" };
  const inMemory = [
    { name: "block by height from memory", paths: blocks.slice(0, hotRecords), ...record },
    { name: "transaction header from memory", paths: headers.slice(0, hotRecords), ...record },
  ];
  const floorProgram = resolve(import.meta.dir, "records-floor-served.ts");
  const beside = "from a bare server with the same reads, an id and a count";
  const read = [
    { name: "block by height from the index", paths: blocks.slice(hotRecords), beside, plain: blocks, ...record },
    { name: "transaction header from the index", paths: headers.slice(hotRecords), beside, plain: headers, ...record },
  ];
  const rows: BenchRow[] = [];
  try {
    for (const each of inMemory) rows.push(await measureFromMemory(folder, served, each, size));
    const floor = await startFloor(floorProgram, indexPath, { port: served.port, path: blocks[0] ?? "" });
    try {
      for (const each of read) rows.push(await measureRoute(served, floor, each, size));
    } finally {
      await floor.stop();
    }
  } finally {
    await served.stop();
  }
  return rows;
}

async function measureFromMemory(
  folder: string,
  served: Served,
  record: Omit<Route, "beside" | "plain">,
  size: BenchSize,
): Promise<BenchRow> {
  const bytes = (await (await fetch(`http://127.0.0.1:${served.port}${record.paths[0]}`)).bytes()).length;
  const plain = writeBodies(folder, bytes, 1);
  const other = await startServed(folder, { ids: plain, cache: join(folder, `cache of ${record.name}`) });
  try {
    const route = { ...record, beside: "a body of its size by its id", plain: plain.map((id) => `/${id}`) };
    return await measureRoute(served, other, route, size);
  } finally {
    await other.stop();
  }
}

/** Characters of the texts: of a block of ten transactions, and of a transaction with an RSA signature. */
const textCharacters = { block: 16_000, transaction: 2_500 } as const;

/**
 * Fills an index with blocks of one transaction. A third of a block's text is random and the rest repeats, as in
 * recorded blocks; a transaction's text is random.
 *
 * @returns The ids of the transactions, by height.
 */
function fillChain(path: string, blocks: number): string[] {
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000 });
  const noise = (height: number, characters: number) =>
    crypto.getRandomValues(new Uint8Array((characters * 3) / 4)).toBase64({ alphabet: "base64url" }) +
    String(height).padStart(6, "0");
  const hashAt = (height: number) =>
    blockHashFromBytes(new Bun.CryptoHasher("sha384").update(`block ${height}`).digest());
  const owner = new Uint8Array(512).fill(1);
  const ids = Array.from({ length: blocks }, (_, height) =>
    idFromBytes(new Bun.CryptoHasher("sha256").update(`transaction ${height}`).digest()),
  );
  for (const [height, id] of ids.entries()) {
    const poa = noise(height, textCharacters.block / 4) + "A".repeat((textCharacters.block * 3) / 4);
    writer.addBlock({
      block: blockRow({
        height,
        hash: hashAt(height),
        previous: height === 0 ? "" : hashAt(height - 1),
        timestamp: 1_600_000_000 + height,
        text: `{"poa":"${poa}"}`,
      }),
      transactions: [
        transactionRow({
          id,
          owner: encodeBase64url(owner),
          ownerAddress: addressOf(owner),
          dataSize: 0,
          text: `{"signature":"${noise(height, textCharacters.transaction)}"}`,
        }),
      ],
      missing: [],
      bundles: [],
    });
  }
  writer.close();
  return ids;
}

async function measureRoute(
  served: Measured,
  plainServed: Measured,
  { name, paths, beside, plain, target, headers = {}, ...route }: Route,
  size: BenchSize,
): Promise<BenchRow> {
  const { rounds } = sizes[size];
  const requests = size === "large" ? route.requests : Math.ceil(route.requests / smaller);
  const bytesOf = async ({ port }: Measured, path = "/") =>
    (await (await fetch(`http://127.0.0.1:${port}${path}`)).bytes()).length;
  const cpuMicros = async (server: Measured, all: readonly string[], bodyBytes: number, own = {}) => {
    const before = cpuSeconds(server.pid);
    await runLoad({ port: server.port, paths: all, bodyBytes, headers: own, connections, requests });
    return ((cpuSeconds(server.pid) - before) * 1e6) / requests;
  };
  const one = { bytes: await bytesOf(served, paths[0]), plainBytes: await bytesOf(plainServed, plain[0]) };
  await cpuMicros(served, paths, one.bytes, headers);
  await cpuMicros(plainServed, plain, one.plainBytes);
  const pairs: { ours: number; theirs: number }[] = [];
  for (let round = 0; round < rounds; round += 1)
    pairs.push({
      ours: await cpuMicros(served, paths, one.bytes, headers),
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
