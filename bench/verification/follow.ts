/**
 * Catching up with a chain from a local node: blocks a second and memory, against a bare client that fetches the same
 * bodies from the same node.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { bytesUnderWay } from "../../src/indexing/fetch-block.ts";
import { openFollower } from "../../src/indexing/follow.ts";
import { createChainChoice } from "../../src/indexing/heaviest-chain.ts";
import { createByteBudget } from "../../src/lib/byte-budget.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { createIndexWriterCalls, type WriteJob } from "../../src/store/index/index-writer-calls.ts";
import { openPool } from "../../src/threads/pool.ts";
import { type Bench, type BenchSize, perSecond } from "../harness.ts";

const counts: Readonly<Record<BenchSize, number>> = { small: 40, large: 2_000 };

/** Requests of the bare client at once: as many as the follower fetches blocks. */
const atOnce = 16;

/** Blocks between two readings of the memory. */
const memoryInterval = 10;
const quarters = 4;

/** Blocks of one transaction each, verified and indexed; `--items` is the number of blocks. */
export const followBench: Bench = {
  name: "follow",
  measure: async (size, given) => {
    const count = given?.items ?? counts[size];
    const closers = createClosers((name, error) => console.error(name, error));
    const folder = mkdtempSync(join(tmpdir(), "cairn-follow-"));
    try {
      const node = await startNode(count, closers);
      const bare = await fetchBare(node, count);
      const { rate, addedMiB } = await followAll(node, count, folder, closers);
      return [
        {
          name: `${count} blocks of one RSA transaction followed from a local node, verified and indexed`,
          metric: perSecond(rate, "blocks"),
          reference: `bare client of the same bodies ${perSecond(bare, "blocks")}`,
          ratio: rate / bare,
          target: "≥ 500 blocks/s",
        },
        {
          name: "memory added, at most in each quarter of the blocks",
          metric: `${addedMiB.map((added) => added.toFixed(0)).join(", ")} MiB`,
          target: "bounded",
        },
      ];
    } finally {
      await closers.closeAll();
      removeFolder(folder);
    }
  },
};

async function startNode(count: number, closers: ReturnType<typeof createClosers>): Promise<string> {
  const program = resolve(import.meta.dir, "follow-served.ts");
  const child = Bun.spawn([process.execPath, program, String(count)], { stdout: "pipe" });
  closers.add("node", async () => {
    child.kill();
    await child.exited;
  });
  const { value } = await child.stdout.getReader().read();
  const port = Number(Buffer.from(value ?? []).toString());
  if (!(port > 0)) throw new Error("the node ended before it listened");
  return `http://127.0.0.1:${port}`;
}

/** Fetches each block and its transaction. @returns Blocks a second. */
async function fetchBare(node: string, count: number): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  const work = async () => {
    while (next < count) {
      const height = next;
      next += 1;
      const { txs }: { txs: string[] } = JSON.parse(await textOf(`${node}/block/height/${height}`));
      for (const id of txs) await textOf(`${node}/tx/${id}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return count / ((performance.now() - startedAt) / 1_000);
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} responded ${response.status}`);
  return await response.text();
}

/** Follows the chain to its tip. @returns Blocks a second, and the most memory added in each quarter of the blocks. */
async function followAll(url: string, count: number, folder: string, closers: ReturnType<typeof createClosers>) {
  const threads = { queueMax: 256, timeoutMs: 60_000, idleMs: Number.POSITIVE_INFINITY };
  const writer = openPool({ ...threads, entry: "index", threads: 1 });
  const pool = openPool({ ...threads, entry: "verify", threads: 2 });
  closers.add("writer", writer.close);
  closers.add("verify", pool.close);
  const indexPath = join(folder, "index.sqlite");
  await writer.run("open", { path: indexPath });
  const reader = openIndexReader(indexPath);
  closers.add("reader", reader.close);
  const node = openNode(url);
  closers.add("client", node.close);
  const random = () => 0.5;
  const nodes = createNodes([node], { clock: systemClock, random, log: silentLog });
  const parts = { nodes, reader, pool, clock: systemClock, random, log: silentLog };

  const before = process.memoryUsage.rss();
  const most = Array.from({ length: quarters }, () => before);
  const done = Promise.withResolvers<void>();
  const startedAt = performance.now();
  const follower = openFollower({
    ...parts,
    choice: createChainChoice(parts),
    fetch: { ...parts, bytes: createByteBudget(bytesUnderWay), semaphore: createSemaphore(32, 100_000) },
    index: createIndexWriterCalls(indexPath, (job: WriteJob) => writer.run("write", job)),
    content: { keep: async () => true },
    start: 0,
    stop: undefined,
    intervalMs: 100,
    retryMs: 100,
    shrinkGraceMs: 60_000,
    onBlock: ({ height, missing }) => {
      if (missing.length > 0) done.reject(new Error(`transactions of block ${height} are missing`));
      const quarter = Math.floor((height / count) * quarters);
      if (height % memoryInterval === 0) most[quarter] = Math.max(most[quarter] ?? 0, process.memoryUsage.rss());
      if (height === count - 1) done.resolve();
    },
    beforeRollback: async () => undefined,
    onRollback: () => undefined,
  });
  closers.add("follower", follower.close);
  await done.promise;
  const seconds = (performance.now() - startedAt) / 1_000;
  return { rate: count / seconds, addedMiB: most.map((rss) => (rss - before) / 2 ** 20) };
}
