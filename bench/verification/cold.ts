/**
 * Content that is not on this disk, read through the gateway from a local node and verified, against a bare client that
 * fetches the same chunks from the same node. Node and gateway are processes of their own.
 *
 * Each round reads another transaction. The bare client uses the binary format, as many requests at once as the
 * gateway, and drops the bytes. A least gateway and a relay, which are read in the same round, show how much of the
 * difference this machine allows (cold-floor-served.ts).
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chunkSize } from "../../src/arweave/merkle.ts";
import { chunksAhead } from "../../src/content/root-reads.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { type NodeRoot, startServed } from "../support/gateway-process.ts";
import { takePeak } from "../support/memory.ts";
import { cpuSeconds, startCpuNanos } from "../support/processor-time.ts";
import type { ColdFloor } from "./cold-floor-served.ts";
import type { ColdNodeLine } from "./cold-node.ts";

const sizes: Readonly<Record<BenchSize, { bytes: number; rounds: number }>> = {
  small: { bytes: 12 * 2 ** 20, rounds: 1 },
  large: { bytes: 100 * 2 ** 20, rounds: 7 },
};

/** Transactions of 100 MiB, whose chunks come from a local node. */
export const coldBench: Bench = {
  name: "cold content",
  measure: async (size) => {
    const { bytes, rounds } = sizes[size];
    const folder = mkdtempSync(join(tmpdir(), "cairn-cold-"));
    const node = await startNode(rounds + 2, bytes);
    const url = `http://127.0.0.1:${node.port}`;
    const served = await startServed(folder, { node: { url, roots: node.roots } }, []);
    const least = await startFloor({ kind: "least gateway", url, folder, roots: node.roots });
    const relay = await startFloor({ kind: "relay", url, folder, roots: node.roots });
    try {
      return await measureRounds(url, node, { served, least, relay });
    } finally {
      await Promise.all([served, least, relay, node].map(({ stop }) => stop()));
      removeFolder(folder);
    }
  },
};

type Served = Awaited<ReturnType<typeof startServed>>;
type Floor = Awaited<ReturnType<typeof startFloor>>;
type Servers = Readonly<{ served: Served; least: Floor; relay: Floor }>;

/** Bytes a second, and CPU seconds of the gateway. */
type Round = Readonly<{ ours: number; least: number; relay: number; bare: number; cpu: number }>;

async function measureRounds(url: string, node: ColdNodeLine, servers: Servers): Promise<readonly BenchRow[]> {
  const { served } = servers;
  const [checked, warm, ...roots] = node.roots;
  if (checked === undefined || warm === undefined) throw new Error("the node has no data");
  await checkBytes(served.port, checked);
  const rounds: Round[] = [];
  await measureRound(url, warm, servers);
  await served.loopDelay();
  takePeak(served.pid);
  const before = takePeak(served.pid);
  const delays: { p99: number; longest: number }[] = [];
  for (const root of roots) {
    rounds.push(await measureRound(url, root, servers));
    delays.push(await served.loopDelay());
  }
  const added = takePeak(served.pid) - before;
  const p99 = median(delays.map((delay) => delay.p99));
  const longest = Math.max(...delays.map((delay) => delay.longest));
  const size = `${(warm.size / 2 ** 20).toFixed(0)} MiB`;
  const cpu = `CPU ${(median(rounds.map((round) => round.cpu)) * 1e3).toFixed(0)} ms`;
  return [
    rateRow(`cold ${size} from a local node, verified`, rounds, "ours", { note: ` (${cpu})`, target: "≥ 0.6" }),
    rateRow(`cold ${size} through a least gateway: fetch, one SHA-256, write, send`, rounds, "least"),
    rateRow(`cold ${size} through a relay: fetch, send`, rounds, "relay"),
    { name: "memory added meanwhile, at most", metric: `${added.toFixed(0)} MiB`, target: "≤ 100 MiB" },
    {
      name: "event loop's delay meanwhile (timer of 1 ms included)",
      metric: `p99 ${p99.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`,
      target: "p99 ≤ 10 ms",
    },
  ];
}

/** One server beside the bare client. */
function rateRow(
  name: string,
  rounds: readonly Round[],
  server: "ours" | "least" | "relay",
  { note = "", target }: Readonly<{ note?: string; target?: string }> = {},
): BenchRow {
  const rate = (pick: keyof Round) => `${(median(rounds.map((round) => round[pick])) / 1e6).toFixed(0)} MB/s`;
  return {
    name,
    metric: `${rate(server)}${note}`,
    reference: `bare client of the same chunks ${rate("bare")}`,
    ratio: median(rounds.map((round) => round[server] / round.bare)),
    ...(target !== undefined && { target }),
  };
}

/**
 * Reads one transaction through each server in turn, and as the bare client. The CPU time of the gateway includes the
 * hash of the whole that it makes afterwards.
 */
async function measureRound(url: string, root: NodeRoot, { served, least, relay }: Servers): Promise<Round> {
  const cpuBefore = cpuSeconds(served.pid);
  const ours = await rateOf(root.size, () => readThrough(served.port, root));
  await restOf(served.pid);
  const cpu = cpuSeconds(served.pid) - cpuBefore;
  const floors = { least: 0, relay: 0 };
  for (const [name, floor] of [["least", least] as const, ["relay", relay] as const]) {
    floors[name] = await rateOf(root.size, () => readThrough(floor.port, root));
    await restOf(floor.pid);
  }
  const bare = await rateOf(root.size, () => fetchBare(url, root));
  return { ours, ...floors, bare, cpu };
}

/** Waits until a process uses little of a core: the bare client must not be measured beside its work. */
async function restOf(pid: number): Promise<void> {
  const busyShareMax = 0.2;
  for (let tries = 0; tries < 100; tries++) {
    const passed = startCpuNanos(pid);
    await Bun.sleep(50);
    if (passed() < busyShareMax * 50e6) return;
  }
}

async function rateOf(bytes: number, work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return bytes / ((performance.now() - startedAt) / 1_000);
}

/** Reads a body through the gateway. Its bytes are counted only: a client that hashes would be measured too. */
async function readThrough(port: number, { id, size }: NodeRoot): Promise<void> {
  const done = Promise.withResolvers<void>();
  let tail = Buffer.alloc(0);
  let got = 0;
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(`GET /raw/${id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n`),
      data: (socket, bytes) => {
        got += bytes.length;
        if (got < size) return;
        tail = Buffer.concat([tail, bytes]).subarray(-lastChunk.length);
        if (!tail.equals(lastChunk)) return;
        done.resolve();
        socket.end();
      },
      error: (_socket, error) => done.reject(error),
      close: () => done.reject(new Error("the connection was closed before the body was complete")),
    },
  });
  await done.promise;
}

/** The end of a body of unknown length (RFC 9112 §7.1). */
const lastChunk = Buffer.from("\r\n0\r\n\r\n");

/** The gateway gives the bytes that the node has, as verified. */
async function checkBytes(port: number, { id, digest }: NodeRoot): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/raw/${id}`);
  const got = Bun.SHA256.hash(await response.arrayBuffer(), "hex");
  if (got !== digest || response.headers.get("x-ar-io-verified") !== "true") throw new Error("other bytes came");
}

async function fetchBare(url: string, { size, weaveStart }: NodeRoot): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < size) {
      const offset = BigInt(weaveStart) + BigInt(next) + 1n;
      next += chunkSize;
      const response = await fetch(`${url}/chunk2/${offset}`);
      const { byteLength } = await response.arrayBuffer();
      if (!response.ok || byteLength < chunkSize) throw new Error(`the node responded ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: chunksAhead + 1 }, work));
}

async function startFloor(floor: ColdFloor) {
  const command = [process.execPath, resolve(import.meta.dir, "cold-floor-served.ts"), JSON.stringify(floor)];
  const { pid, line, stop } = await startProcess(command);
  return { pid, port: Number(line), stop };
}

async function startNode(count: number, bytes: number) {
  const command = [process.execPath, resolve(import.meta.dir, "cold-node.ts"), String(count), String(bytes)];
  const { line, stop } = await startProcess(command);
  const node: ColdNodeLine = JSON.parse(line);
  return { ...node, stop };
}

/** Starts a process, and waits for the line that it prints when it listens. */
async function startProcess(command: string[]) {
  const child = Bun.spawn(command, { stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  const stop = async () => {
    child.kill();
    await child.exited;
  };
  return { pid: child.pid, line: Buffer.from(value ?? []).toString(), stop };
}
