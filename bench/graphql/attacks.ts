/**
 * Latency of small cached bodies at a steady request rate, with and without expensive GraphQL queries by attackers,
 * alternately in one process.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type Bench, type BenchSize, median, percentile } from "../harness.ts";
import { startServed } from "../support/gateway-process.ts";
import { fillIndex } from "./graphql.ts";

const sizes: Readonly<Record<BenchSize, { items: number; asked: number; rounds: number }>> = {
  small: { items: 2_000, asked: 20, rounds: 1 },
  large: { items: 100_000, asked: 1_000, rounds: 9 },
};

/** Sizes of the requested bodies: from memory, and from disk through the routes. Bytes. */
const bodySizes = [2 ** 10, 2 ** 16, 300 * 2 ** 10];

/** Interval between requests of the reader. Milliseconds. */
const paceMs = 4;

/** The 99th percentile of the latency under attack, divided by that without attackers. */
export const attacksBench: Bench = {
  name: "attacks",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-attacks-"));
    const { items, asked, rounds } = sizes[size];
    const indexPath = join(folder, "index.sqlite");
    fillIndex(indexPath, items);
    const ids = writeBodies(join(folder, "bodies"));
    const served = await startServed(folder, { ids, indexPath }, []);
    try {
      const url = `http://127.0.0.1:${served.port}`;
      await latencies(url, ids, Math.ceil(asked / 4));
      let sent = (await underAttack(url, 0, () => latencies(url, ids, Math.ceil(asked / 4)))).queries;
      const pairs: { idle: number; attacked: number; ratio: number; queries: number }[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const idle = percentile(await latencies(url, ids, asked), 0.99);
        const { response, queries } = await underAttack(url, sent, () => latencies(url, ids, asked));
        sent += queries;
        const attacked = percentile(response, 0.99);
        pairs.push({ idle, attacked, ratio: attacked / idle, queries });
      }
      const middle = (name: keyof (typeof pairs)[number]) => median(pairs.map((pair) => pair[name]));
      return [
        {
          name: `content while four send the GraphQL attack set, p99`,
          metric: `${middle("attacked").toFixed(2)} ms (${middle("queries")} attacks a round)`,
          reference: `idle ${middle("idle").toFixed(2)} ms`,
          ratio: middle("ratio"),
          target: "≤ 2",
        },
      ];
    } finally {
      await served.stop();
      removeFolder(folder);
    }
  },
};

function writeBodies(folder: string): string[] {
  mkdirSync(folder);
  return bodySizes.map((bytes) => {
    const id = idFromBytes(new Bun.CryptoHasher("sha256").update(`${bytes}`).digest());
    writeFileSync(join(folder, id), Buffer.alloc(bytes, 7));
    return id;
  });
}

/** Sends requests at a steady rate. @returns The time to the end of each body. */
async function latencies(url: string, ids: readonly string[], count: number): Promise<number[]> {
  const asked: Promise<number>[] = [];
  const start = performance.now();
  for (let index = 0; index < count; index += 1) {
    const due = start + index * paceMs;
    if (performance.now() < due) await Bun.sleep(due - performance.now());
    asked.push(timeOf(`${url}/${ids[index % ids.length]}`));
  }
  return await Promise.all(asked);
}

async function timeOf(url: string): Promise<number> {
  const start = performance.now();
  const response = await fetch(url);
  if (response.status !== 200) throw new Error(`content responded ${response.status}`);
  await response.bytes();
  return performance.now() - start;
}

/** Does work while attackers run in another process. They continue in the set after `sent` queries. */
async function underAttack<Result>(url: string, sent: number, work: () => Promise<Result>) {
  const program = resolve(import.meta.dir, "attacks-sent.ts");
  const child = Bun.spawn([process.execPath, program, url, String(sent)], { stdout: "pipe" });
  const output = child.stdout.getReader();
  await output.read(); // they have begun
  const response = await work();
  child.kill("SIGTERM");
  const { value } = await output.read();
  await child.exited; // after the last response: running requests would count as idle
  return { response, queries: Number(Buffer.from(value ?? []).toString()) };
}
