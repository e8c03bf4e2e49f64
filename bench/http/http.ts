/**
 * Cached bodies over HTTP against nginx, alternately on the same machine: CPU time per request of the server, and
 * throughput of large bodies. The same bodies and ranges from a bare server of the runtime show how much of that is
 * Bun's own.
 *
 * CPU time is user and system time of all threads of the server (of nginx: its worker), over a fixed number of requests
 * after a warm-up. Other load on the machine changes it by a tenth, where it halves requests per second.
 * Source: docs/roadmap.md.
 * @module
 */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { startFloor } from "../support/floor-process.ts";
import { startServed } from "../support/gateway-process.ts";
import { runLoad } from "../support/http-client.ts";
import { cpuSeconds, pinned } from "../support/processor-time.ts";

/** A size of body: the number of bodies, the number of requests, and the target. */
type Case = Readonly<{
  name: string;
  bytes: number;
  bodies: number;
  connections: number;
  requests: Readonly<Record<BenchSize, number>>;
  measure: "CPU a request" | "throughput";
  target: string;
  /** Size of the bodies of which ranges of `bytes` are requested. */
  rangesOf?: number;
}>;

const cases: readonly Case[] = [
  body("1 KiB", 2 ** 10, 1_000, 16, 60_000, "CPU a request", "≤ 1.0"),
  body("64 KiB", 2 ** 16, 500, 16, 20_000, "CPU a request", "≤ 1.1"),
  body("256 KiB", 2 ** 18, 200, 8, 8_000, "CPU a request", "≤ 0.8"),
  body("512 KiB", 2 ** 19, 200, 8, 4_000, "CPU a request", "≤ 1"),
  body("1 MiB", 2 ** 20, 100, 8, 3_000, "throughput", "≥ 1.1"),
  body("100 MiB", 100 * 2 ** 20, 2, 4, 40, "throughput", "≥ 1.1"),
  range("1 KiB of 100 MiB", 2 ** 10, 16, 40_000, "≤ 2"),
  range("64 KiB of 100 MiB", 2 ** 16, 16, 20_000, "≤ 2"),
  range("1 MiB of 100 MiB", 2 ** 20, 8, 3_000, "≤ 1"),
];

const casesOf = (size: BenchSize) =>
  cases.filter(({ bytes, rangesOf = bytes }) => size === "large" || rangesOf <= 2 ** 20);

/**
 * Requests of a large bench before the first round that counts: the runtime compiles a path only after thousands, and
 * more of them for a larger program (measured: bodies of 1 MiB took 1.3 of a bare server's CPU before, 1.1 after).
 */
const warmUpMin = 20_000;

const roundCounts: Readonly<Record<BenchSize, number>> = { small: 1, large: 5 };

/** A server under measurement. */
type Served = Readonly<{ port: number; pid: number; pathOf: (id: string) => string }>;

/** Measures bodies of each size from Cairn and from nginx. */
export const httpBench: Bench = {
  name: "http",
  measure: async (size) => {
    if (Bun.which("nginx") === null) return [{ name: "cached bodies", metric: "no nginx on this machine" }];
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-"));
    const bodies = writeBodies(folder, size);
    const [cairn, nginx] = [await startCairn(folder, bodies), await startNginx(folder)];
    const [[first = ""] = []] = bodies.values();
    const floorProgram = resolve(import.meta.dir, "http-floor-served.ts");
    const floorProcess = await startFloor(floorProgram, join(folder, "bodies"), {
      port: cairn.port,
      path: cairn.pathOf(first),
    });
    const floor = { ...floorProcess, pathOf: (id: string) => `/${id}` };
    try {
      const rows: BenchRow[] = [];
      for (const one of casesOf(size))
        rows.push(...(await measureCase(one, size, bodies.get(one.name) ?? [], { cairn, nginx, floor })));
      return rows;
    } finally {
      await cairn.stop();
      nginx.stop();
      await floor.stop();
      removeFolder(folder);
    }
  },
};

function body(
  name: string,
  bytes: number,
  bodies: number,
  connections: number,
  large: number,
  measure: Case["measure"],
  target: string,
): Case {
  const small = Math.max(4, Math.round(large / 500));
  return { name, bytes, bodies, connections, requests: { small, large }, measure, target };
}

function range(name: string, bytes: number, connections: number, large: number, target: string): Case {
  const requests = { small: 4, large };
  const rangesOf = 100 * 2 ** 20;
  return { name: `range ${name}`, bytes, bodies: 1, connections, requests, measure: "CPU a request", target, rangesOf };
}

async function measureCase(
  { name, bytes, connections, requests, measure, target, rangesOf }: Case,
  size: BenchSize,
  ids: readonly string[],
  { cairn, nginx, floor }: Readonly<{ cairn: Served; nginx: Served; floor: Served }>,
): Promise<BenchRow[]> {
  const run = async ({ port, pid, pathOf }: Served, count = requests[size]) => {
    const common = { port, paths: ids.map(pathOf), bodyBytes: bytes, connections, requests: count };
    const load = rangesOf === undefined ? common : { ...common, rangesOf };
    const [cpuBefore, startedAt] = [cpuSeconds(pid), performance.now()];
    await runLoad(load);
    const seconds = (performance.now() - startedAt) / 1_000;
    const cpu = cpuSeconds(pid) - cpuBefore;
    return { cpuMicros: (cpu * 1e6) / count, rate: (bytes * count) / seconds };
  };
  const servers = { cairn, floor, nginx };
  const isWarmed = size === "large" && bytes <= 2 ** 20;
  for (const server of Object.values(servers)) await run(server, isWarmed ? warmUpMin : requests[size]);
  const rounds = await inRounds(servers, run, roundCounts[size]);
  return ["cairn", "floor"].map((server) => {
    const of = (which: string) => rounds.map((round) => round[which] ?? nothing);
    const pairs = of(server).map((ours, index) => ({ ours, theirs: of("nginx")[index] ?? nothing }));
    const pick = measure === "throughput" ? "rate" : "cpuMicros";
    const show = (value: number) =>
      measure === "throughput" ? `${(value / 1e9).toFixed(2)} GB/s` : `${value.toFixed(1)} µs CPU`;
    const ours = show(median(pairs.map((pair) => pair.ours[pick])));
    const cpuRatios = pairs.map((pair) => pair.ours.cpuMicros / pair.theirs.cpuMicros);
    // In small, a server may take less than a tick of the processor's clock.
    const cpuText = cpuRatios.every(Number.isFinite) ? `CPU ${median(cpuRatios).toFixed(2)} ×` : "CPU below a tick";
    const row = {
      metric: measure === "throughput" ? `${ours} (${cpuText})` : ours,
      reference: `nginx ${show(median(pairs.map((pair) => pair.theirs[pick])))}`,
      ratio: median(pairs.map((pair) => pair.ours[pick] / pair.theirs[pick])),
    };
    if (server === "floor") return { name: `body ${name} from a bare Bun.serve, ${measure}`, ...row };
    return { name: `cached body ${name}, ${measure}`, ...row, target };
  });
}

/** Cost of a load. */
type Cost = Readonly<{ cpuMicros: number; rate: number }>;

const nothing: Cost = { cpuMicros: 0, rate: 0 };

/** Runs a load on each server in turn. */
async function inRounds(
  servers: Readonly<Record<string, Served>>,
  run: (served: Served) => Promise<Cost>,
  count: number,
): Promise<readonly Readonly<Record<string, Cost>>[]> {
  const rounds: Readonly<Record<string, Cost>>[] = [];
  for (let each = 0; each < count; each += 1) {
    const round: Record<string, Cost> = {};
    for (const [name, served] of Object.entries(servers)) round[name] = await run(served);
    rounds.push(round);
  }
  return rounds;
}

/** Files named by ids, in one folder. */
function writeBodies(folder: string, size: BenchSize): ReadonlyMap<string, readonly string[]> {
  mkdirSync(join(folder, "bodies"));
  return new Map(
    casesOf(size).map(({ name, bytes, bodies, rangesOf = bytes }) => {
      const count = size === "small" ? Math.min(2, bodies) : bodies;
      const ids = Array.from({ length: count }, (_, index) => {
        const id = idFromBytes(new Bun.CryptoHasher("sha256").update(`${name} ${index}`).digest());
        writeFileSync(join(folder, "bodies", id), Buffer.alloc(rangesOf, index + 1));
        return id;
      });
      return [name, ids] as const;
    }),
  );
}

async function startCairn(folder: string, bodies: ReadonlyMap<string, readonly string[]>) {
  const { port, pid, stop } = await startServed(folder, { ids: [...bodies.values()].flat() });
  return { port, pid, pathOf: (id: string) => `/${id}`, stop };
}

/** One worker, sendfile, cached open files, and as many headers as Cairn sends. */
async function startNginx(folder: string) {
  const [port = 0] = freePorts(1);
  const headers = Array.from({ length: 13 }, (_, index) => `add_header X-Header-${index} "value of header ${index}";`);
  const config = `
${process.getuid?.() === 0 ? "user root;" : ""}
daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; default_type image/png;
  open_file_cache max=10000; open_file_cache_valid 3600s;
  client_body_temp_path ${folder}/t1; proxy_temp_path ${folder}/t2; fastcgi_temp_path ${folder}/t3;
  uwsgi_temp_path ${folder}/t4; scgi_temp_path ${folder}/t5;
  server { listen 127.0.0.1:${port}; root ${folder}/bodies; ${headers.join(" ")} } }`;
  writeFileSync(join(folder, "nginx.conf"), config);
  const child = Bun.spawn([...pinned(0), "nginx", "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")]);
  const worker = await workerOf(child.pid);
  return { port, pid: worker, pathOf: (id: string) => `/${id}`, stop: () => child.kill() };
}

/** The worker: the only child process of nginx. */
async function workerOf(pid: number): Promise<number> {
  for (let round = 0; round < 100; round += 1) {
    await Bun.sleep(20);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    if (children !== "") return Number(children.split(" ")[0]);
  }
  throw new Error("nginx has no worker");
}
