/**
 * The bundle pipeline under measurement: one bundle, from its items on disk until nodes have accepted every chunk.
 *
 * Run as `bun bench/uploads/bundles-served.ts <folder> <node URL>`, on a folder of bundles.ts. It prints the CPU time
 * of each step, and ends.
 * @module
 */
import { writeSync } from "node:fs";
import { join } from "node:path";
import { openBundleChain } from "../../src/app/bundle-chain.ts";
import { readUploadWallet } from "../../src/app/keys.ts";
import type { BlockHash, Id } from "../../src/arweave/id.ts";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { createLog } from "../../src/lib/log.ts";
import { openLedger } from "../../src/store/ledger/open-ledger.ts";
import { createTransferIds } from "../../src/store/ledger/transfers.ts";
import { openPool } from "../../src/threads/pool.ts";
import { openPipeline } from "../../src/upload/pipeline/bundle-pipeline.ts";
import type { BundleChain } from "../../src/upload/pipeline/pipeline-context.ts";
import { bundleBytesMax, bundleItemsMax } from "../../src/upload/pipeline/plan-bundles.ts";
import { type BundleSteps, files, storeName } from "./bundles.ts";

const [folder = "", nodeUrl = ""] = process.argv.slice(2);
const log = createLog({
  level: "warn",
  format: "json",
  clock: Date.now,
  write: (line) => process.stderr.write(`${line}\n`),
});

function random(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32;
}

/** CPU time of this process and its threads so far. Milliseconds. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

const walletFile = join(folder, files.wallet);
const ledger = await openLedger({ url: undefined, path: join(folder, files.ledger) });
const threads = openPool({ entry: "bundles", threads: 1, queueMax: 64, timeoutMs: 600_000, idleMs: 600_000 });
const nodes = createNodes([openNode(nodeUrl)], { clock: Date.now, random, log });
const tip: { height: number; indep_hash: string; timestamp: number } = await (
  await fetch(`${nodeUrl}/block/current`)
).json();
const head = { height: tip.height, hash: tip.indep_hash as BlockHash, timestamp: tip.timestamp };

const ended = Promise.withResolvers<void>();
const marks: number[] = [];
const mark = (index: number) => {
  marks[index] ??= cpuMs();
};

const chain = openBundleChain({
  nodes,
  reader: {
    tip: () => head,
    block: () => undefined,
    transactionStatus: () => undefined,
    bundleStatus: () => undefined,
    dueMissing: () => [],
  },
  index: { removePending: async () => 0 },
  address: readUploadWallet("WALLET_FILE", walletFile).wallet.address,
  wantBundle: async (_: Id) => {
    mark(4);
    ended.resolve();
  },
});
const marking: BundleChain = {
  ...chain,
  post: async (path, body, signal) => {
    if (path === "/chunk") mark(3);
    return await chain.post(path, body, signal);
  },
};
const markingThreads: typeof threads = {
  ...threads,
  run: (name, job, options) => {
    if (name === "layoutBundle") mark(1);
    if (name === "signBundle") mark(2);
    return threads.run(name, job, options);
  },
};

// The start of the threads is not counted.
await threads.ping();
mark(0);
const startedAt = performance.now();
const pipeline = openPipeline({
  ledger,
  threads: markingThreads,
  chain: marking,
  storeName,
  clock: Date.now,
  log,
  makeId: createTransferIds(Date.now, random),
  folder,
  walletFile,
  refund: async () => undefined,
  blockList: { has: () => false, isBlockedId: () => false, isBlockedDigest: () => false },
  onLeft: () => undefined,
  onEnded: () => undefined,
  onLeftBlock: () => undefined,
  rules: {
    plan: { itemsMax: bundleItemsMax, bytesMax: bundleBytesMax, waitMs: 1 },
    confirmations: 1,
    lookMs: 60_000,
    againMs: 600_000,
  },
});
await ended.promise;
const seconds = (performance.now() - startedAt) / 1_000;
const took = (index: number) => (marks[index] ?? Number.NaN) - (marks[index - 1] ?? Number.NaN);
const steps: BundleSteps = { planMs: took(1), prepareMs: took(2), postMs: took(3), seedMs: took(4), seconds };
writeSync(1, `${JSON.stringify(steps)}\n`);
await pipeline.close();
process.exit(0);
