/**
 * A process that is given a bomb: unbundles it beside a bundle that is invalid, and one of a later block, and says what
 * became of all of them and how much memory it took.
 *
 * Its arguments: `fan`, the width, and the budget; or `chain`, the depth, and how many levels are signed.
 * @module
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { bundleRetryDefault, openBundles } from "../../src/indexing/bundle-queue.ts";
import { bundleLimitsDefault } from "../../src/indexing/unbundle.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openPool } from "../../src/threads/pool.ts";
import { growingChain } from "../store/index/growing-chain.ts";
import { bundleOf, ownerOf } from "../store/index/rows-of.ts";
import { createRandom } from "../support/random.ts";
import { until } from "../support/until.ts";
import { chainOf, writeFan } from "./bombs.ts";
import { openDirectIndex } from "./direct-index.ts";
import { makeItems } from "./samples.ts";

/** What became of it. */
export type BombReport = Readonly<{
  bytes: number;
  items: number;
  bundles: number;
  rejected: number;
  warned: readonly string[];
  /** Of the bundle beside it, and of the one in a later block. */
  others: readonly (number | null | undefined)[];
  /** Resident, before it was opened, and the most meanwhile. */
  baseBytes: number;
  peakBytes: number;
  seconds: number;
  faults: readonly string[];
}>;

/** More than anything here takes; the test that waits for the process has a limit of its own. */
const hours = 3_600_000;

async function run(kind: string, size: number, given: number): Promise<BombReport> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-bomb-"));
  try {
    const bytes = makeBomb(join(folder, "bomb"), kind, size, given);
    writeFileSync(join(folder, "other"), writeBundle(makeItems(5)));
    writeFileSync(join(folder, "later"), writeBundle(makeItems(7, "later")));
    const limits = kind === "fan" ? { ...bundleLimitsDefault, entriesPerRootMax: given } : bundleLimitsDefault;
    return { bytes, ...(await unbundle(folder, limits)) };
  } finally {
    removeFolder(folder);
  }
}

function makeBomb(path: string, kind: string, size: number, given: number): number {
  if (kind === "fan") return writeFan(path, size);
  const chain = chainOf(size, given);
  writeFileSync(path, chain);
  return chain.length;
}

async function unbundle(folder: string, limits: typeof bundleLimitsDefault): Promise<Omit<BombReport, "bytes">> {
  const index = openDirectIndex(join(folder, "index.sqlite"), systemClock);
  const random = createRandom(1);
  const chain = growingChain(index.writer, random, ownerOf(random));
  const paths = new Map<string, string>();
  const addBlock = (...names: string[]) => {
    const files = names.map((name) => join(folder, name));
    const { transactions } = chain.add({
      transactions: files.map((file) => ({ dataSize: Bun.file(file).size })),
      bundles: (height, rows) =>
        rows.map(({ id, txIndex, dataSize }) => bundleOf({ height, txIndex, offset: -1 }, id, dataSize)),
    });
    for (const [at, { id }] of transactions.entries()) paths.set(id, files[at] ?? "");
    return transactions.map(({ id }) => id);
  };
  const pool = openPool({ entry: "unbundle", threads: 2, queueMax: 64, timeoutMs: hours, idleMs: hours });
  await Promise.all([pool.ping(), pool.ping()]);
  Bun.gc(true);

  const baseBytes = process.memoryUsage.rss();
  let peakBytes = baseBytes;
  const watch = setInterval(() => {
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
  }, 50);
  const warned: string[] = [];
  const begun = performance.now();
  const named = addBlock("bomb", "other");
  const bundles = openBundles({
    index: index.calls,
    reader: index.reader,
    content: {
      ensure: async ({ id }) => ({ path: paths.get(id) ?? "", release: () => undefined }),
    },
    pool,
    unbundleFilter: { kind: "always" },
    indexFilter: { kind: "always" },
    limits,
    onItems: () => undefined,
    slots: 8,
    intervalMs: 20,
    bundleMs: 3_600_000,
    retry: bundleRetryDefault,
    clock: systemClock,
    random: () => 0.5,
    log: {
      ...silentLog,
      warn: (message, details) => {
        warned.push(`${message}: ${details?.["reason"] ?? JSON.stringify(details?.["first"])}`);
      },
    },
  });
  const settled = () => until(() => index.reader.counts().bundlesQueued === 0);
  await settled();
  const later = addBlock("later");
  bundles.wake();
  await settled();
  clearInterval(watch);
  const seconds = (performance.now() - begun) / 1_000;
  await bundles.close();
  await pool.close();
  const { items, bundles: bundleCount, bundlesFailed } = index.reader.counts();
  const others = [...named.slice(1), ...later].map((id) => index.reader.bundleStatus(id)?.matchedDataItemCount);
  const report = { items, bundles: bundleCount, rejected: bundlesFailed, warned, others };
  const faults = index.reader.integrity();
  index.close();
  return { ...report, baseBytes, peakBytes, seconds, faults };
}

if (import.meta.main) {
  const [kind = "", size, given] = process.argv.slice(2);
  process.stdout.write(JSON.stringify(await run(kind, Number(size), Number(given))));
}
