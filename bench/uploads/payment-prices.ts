/**
 * Prices over HTTP against a route of the same server that returns a fixed text: CPU time per request, alternately. The
 * difference is the price: rules, arithmetic without floating point, JSON.
 * @module
 */
import { resolve } from "node:path";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { runLoad } from "../support/http-client.ts";
import { cpuSeconds, pinned } from "../support/processor-time.ts";

const paths = [
  "/price/bytes/1048576",
  "/price/usd/1000",
  "/price/ethereum/1e+18",
  "/rates",
  "/rates/usd",
  "/currencies",
];

const sizes: Readonly<Record<BenchSize, { requests: number; rounds: number }>> = {
  small: { requests: 50, rounds: 1 },
  large: { requests: 20_000, rounds: 5 },
};

const connections = 16;

/** The server that is measured. */
type Served = Readonly<{ port: number; pid: number }>;

/** CPU time per request of each kind of price. */
export const paymentPricesBench: Bench = {
  name: "payment-prices",
  measure: async (size) => {
    const program = resolve(import.meta.dir, "payment-prices-served.ts");
    const child = Bun.spawn([...pinned(0), process.execPath, program], { stdout: "pipe" });
    try {
      const { value } = await child.stdout.getReader().read();
      const served = { port: Number(Buffer.from(value ?? []).toString()), pid: child.pid };
      const rows: BenchRow[] = [];
      for (const path of paths) rows.push(await measurePath(served, path, size));
      return rows;
    } finally {
      child.kill();
      await child.exited;
    }
  },
};

async function measurePath(served: Served, path: string, size: BenchSize): Promise<BenchRow> {
  const { requests, rounds } = sizes[size];
  const [price, trivial] = [await openLoad(served, path, requests), await openLoad(served, "/trivial", requests)];
  await price();
  await trivial();
  const pairs: { price: number; trivial: number }[] = [];
  for (let round = 0; round < rounds; round += 1) pairs.push({ price: await price(), trivial: await trivial() });
  const show = (values: readonly number[]) => `${median(values).toFixed(1)} µs CPU`;
  return {
    name: `GET ${path}`,
    metric: show(pairs.map((pair) => pair.price)),
    reference: `fixed text ${show(pairs.map((pair) => pair.trivial))}`,
    ratio: median(pairs.map((pair) => pair.price / pair.trivial)),
    target: "≤ 3",
  };
}

/** CPU time per request of one path, microseconds, for each run. */
async function openLoad({ port, pid }: Served, path: string, requests: number): Promise<() => Promise<number>> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  const bodyBytes = (await response.arrayBuffer()).byteLength;
  if (response.status !== 200) throw new Error(`${path} responded ${response.status}`);
  return async () => {
    const before = cpuSeconds(pid);
    await runLoad({ port, paths: [path], bodyBytes, connections, requests });
    return ((cpuSeconds(pid) - before) * 1e6) / requests;
  };
}
