/**
 * A small chain from the start of the program to its last item: 60 blocks, 33 transactions and 1,300 data items, which
 * another process of `cairn dev` serves as a node.
 * @module
 */
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { openNode } from "../../src/chain/node.ts";
import { postData } from "../../src/dev/sample/sample-site.ts";
import { assert } from "../../src/lib/assert.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type DevLine, firstLine, repositoryRoot, startDev } from "../../test/support/program.ts";
import { type Bench, type BenchRow, type BenchSize, median } from "../harness.ts";
import { memoryOf } from "../support/memory.ts";

/** What the chain has, the sample site of `cairn dev` included. */
const wanted = { blocks: 60, transactions: 33, items: 1_300 } as const;

const fromSource = [process.execPath, resolve(repositoryRoot, "src/main.ts")];
const binary = resolve(repositoryRoot, "dist/cairn");

const rounds: Readonly<Record<BenchSize, number>> = { small: 1, large: 7 };

const pollMs = 5;
const timeoutMs = 60_000;

type Counts = Readonly<{ newTxs: number; stableTxs: number; dataItems: number; queuedBundles: number }>;

/** From source, and from the binary if `bun run build` has created one. */
export const smallChainBench: Bench = {
  name: "small chain",
  measure: async (size) => {
    const chain = await startDev({ environment: { DEVNET_MINING: "manual" } });
    try {
      await extendChain(chain.line);
      const rows = await measureIndexing("from source", fromSource, chain.line.node, rounds[size]);
      if (!existsSync(binary)) return rows;
      return [...rows, ...(await measureIndexing("binary", [binary], chain.line.node, rounds[size]))];
    } finally {
      await chain.remove();
    }
  },
};

async function measureIndexing(what: string, command: readonly string[], node: string, count: number) {
  const { blocks, transactions, items } = wanted;
  const runs: Readonly<{ seconds: number; highestMiB: number }>[] = [];
  for (let round = 0; round < count; round += 1) runs.push(await indexChain(command, node));
  const rows: BenchRow[] = [
    {
      name: `start to last item: ${blocks} blocks, ${transactions} transactions, ${items} items, ${what}`,
      metric: `${median(runs.map(({ seconds }) => seconds)).toFixed(2)} s`,
      target: "≤ 1.2 s",
    },
    {
      name: `memory meanwhile, at most, median of the starts, ${what}`,
      metric: `${median(runs.map(({ highestMiB }) => highestMiB)).toFixed(0)} MiB`,
      target: "≤ 220 MB",
    },
  ];
  return rows;
}

/** Adds bundles, other transactions and empty blocks to the chain until it has what is wanted. */
async function extendChain({ node: url, gateway, adminKey, wallets }: DevLine): Promise<void> {
  const node = openNode(url);
  const wallet = readWallet(JSON.parse(readFileSync(wallets.find(({ name }) => name === "rsa")?.file ?? "", "utf8")));
  const signer = createEd25519Signer(new Uint8Array(32).fill(7));
  const { signal } = new AbortController();
  const before = await countsOf(gateway, adminKey);
  const transactions = wanted.transactions - before.newTxs - before.stableTxs;
  const items = wanted.items - before.dataItems;
  assert(transactions > 1 && items > transactions, "the sample site has less than is wanted");
  let made = 0;
  for (let number = 1; number <= transactions; number += 1) {
    const until = Math.round((items * number) / transactions);
    const parts: Uint8Array[] = [];
    for (; made < until; made += 1) {
      const tags = [
        { name: "App-Name", value: "Bench" },
        { name: "Content-Type", value: "text/plain" },
        { name: "Number", value: String(made) },
      ];
      parts.push(createDataItem({ data: Buffer.from(`item ${made}`), tags }, signer));
    }
    const tags = [
      { name: "Bundle-Format", value: "binary" },
      { name: "Bundle-Version", value: "2.0.0" },
    ];
    await postData(node, wallet, { data: writeBundle(parts), tags }, signal);
    await mine(url, 1);
  }
  const { height } = await infoOf(url);
  assert(height < wanted.blocks, "the chain is shorter than is wanted");
  await mine(url, wanted.blocks - 1 - height);
  node.close();
}

async function mine(node: string, blocks: number): Promise<void> {
  const mined = await fetch(`${node}/mine/${blocks}`, { method: "POST" });
  assert(mined.ok, "the development chain mines");
}

async function infoOf(node: string): Promise<Readonly<{ height: number }>> {
  return await (await fetch(`${node}/info`)).json();
}

async function countsOf(gateway: string, adminKey: string): Promise<Counts> {
  const headers = { Authorization: `Bearer ${adminKey}` };
  const response = await fetch(`${gateway}/svc/admin/debug`, { headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`the counts cannot be read: ${response.status} ${text}`);
  return JSON.parse(text).db.counts;
}

/** Starts a gateway on an empty folder, and waits until it has indexed the chain. */
async function indexChain(
  command: readonly string[],
  node: string,
): Promise<Readonly<{ seconds: number; highestMiB: number }>> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-small-chain-"));
  const adminKey = "key-of-this-bench";
  const startedAt = performance.now();
  const child = Bun.spawn([...command, "serve", "--port", "0", "--json"], {
    env: {
      ...process.env,
      ...{ DATA_DIR: folder, TRUSTED_NODE_URL: node, START_HEIGHT: "0", ADMIN_API_KEY: adminKey, LOG_LEVEL: "error" },
      ANS104_UNBUNDLE_FILTER: '{"always":true}',
      ANS104_INDEX_FILTER: '{"always":true}',
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    const { gateway } = JSON.parse(await firstLine(child.stdout));
    const isWhole = ({ dataItems, queuedBundles }: Counts) => dataItems >= wanted.items && queuedBundles === 0;
    while (!isWhole(await countsOf(gateway, adminKey))) {
      if (performance.now() - startedAt > timeoutMs) throw new Error("the chain was not indexed in time");
      await Bun.sleep(pollMs);
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    return { seconds, highestMiB: memoryOf(child.pid).peak };
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    removeFolder(folder);
  }
}
