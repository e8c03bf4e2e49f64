/**
 * A large bundle from disk to index through the real threads: throughput, and delay of the event loop.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { bundleEntrySize, writeBundleHeader } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { addressOf, blockHashFromBytes, idFromBytes, idOfSignature } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { bundleRetryDefault, openBundles } from "../../src/indexing/bundle-queue.ts";
import { bundleLimitsDefault } from "../../src/indexing/unbundle.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import type { BlockRows, BundleRow } from "../../src/store/index/index-types.ts";
import { createIndexWriterCalls, type WriteJob } from "../../src/store/index/index-writer-calls.ts";
import { openPool } from "../../src/threads/pool.ts";
import type { Bench, BenchSize } from "../harness.ts";
import { blockRow, transactionRow } from "../support/sample-rows.ts";

const sizes: Readonly<Record<BenchSize, { items: number; payload: number }>> = {
  small: { items: 40, payload: 2_000 },
  large: { items: 16_384, payload: 65_536 - 1_024 },
};

const always = { kind: "always" } as const;
const rootId = idFromBytes(new Uint8Array(32).fill(7));

/** One bundle of 1 GiB, verified item by item and indexed. */
export const unbundleBench: Bench = {
  name: "unbundling",
  measure: async (size) => {
    const { items, payload } = sizes[size];
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-"));
    const closers = createClosers((name, error) => console.error(name, error));
    try {
      const path = join(folder, "bundle");
      const bytes = await writeBundleFile(path, items, payload);
      const { seconds, delay } = await unbundle(folder, path, bytes, items, closers);
      const rate = `${(bytes / seconds / 1e6).toFixed(0)} MB/s, ${(items / seconds / 1e3).toFixed(1)} k items/s`;
      const milliseconds = (nanoseconds: number) => `${(nanoseconds / 1e6).toFixed(1)} ms`;
      const name = `${(bytes / 2 ** 20).toFixed(0)} MiB bundle`;
      return [
        { name: `${name} verified and indexed`, metric: rate },
        {
          name: `event loop's delay meanwhile (timer of 1 ms included)`,
          metric: `p99 ${milliseconds(delay.percentile(99))}, longest ${milliseconds(delay.max)}`,
          target: "p99 < 50 ms",
        },
      ];
    } finally {
      await closers.closeAll();
      removeFolder(folder);
    }
  },
};

async function unbundle(
  folder: string,
  path: string,
  bytes: number,
  items: number,
  closers: ReturnType<typeof createClosers>,
) {
  const common = { queueMax: 64, timeoutMs: 600_000, idleMs: 60_000 };
  const writer = openPool({ ...common, entry: "index", threads: 1 });
  const threads = openPool({ ...common, entry: "unbundle", threads: 2 });
  closers.add("writer", writer.close);
  closers.add("threads", threads.close);
  const indexPath = join(folder, "index.sqlite");
  await writer.run("open", { path: indexPath });
  const index = createIndexWriterCalls(indexPath, (job: WriteJob) => writer.run("write", job));
  await index.addBlock(blockWithBundle(bytes));
  const reader = openIndexReader(indexPath);
  closers.add("reader", reader.close);

  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedAt = performance.now();
  const done = Promise.withResolvers<void>();
  let indexed = 0;
  const bundles = openBundles({
    index: {
      ...index,
      finishBundle: async (...parts) => {
        await index.finishBundle(...parts);
        done.resolve();
      },
    },
    reader,
    content: { ensure: async () => ({ path, release: () => undefined }) },
    pool: threads,
    unbundleFilter: always,
    indexFilter: always,
    limits: bundleLimitsDefault,
    onItems: (ids) => {
      indexed += ids.length;
    },
    slots: 2,
    intervalMs: 20,
    bundleMs: 3_600_000,
    retry: bundleRetryDefault,
    clock: systemClock,
    random: () => 0.5,
    log: silentLog,
  });
  await done.promise;
  const seconds = (performance.now() - startedAt) / 1_000;
  delay.disable();
  await bundles.close();
  if (indexed !== items) throw new Error(`${indexed} of ${items} items were indexed`);
  return { seconds, delay };
}

/** Writes items of one size in pieces, so that the bench itself needs little memory. */
async function writeBundleFile(path: string, count: number, payload: number): Promise<number> {
  const signer = createEd25519Signer(new Uint8Array(32).fill(3));
  const file = await open(path, "w");
  const entries: { id: ReturnType<typeof idOfSignature>; size: number }[] = [];
  let at = 32 + count * bundleEntrySize;
  for (let index = 0; index < count; index += 1) {
    const data = new Uint8Array(payload).fill(index);
    new DataView(data.buffer).setUint32(0, index);
    const item = createDataItem({ data, tags: [{ name: "Number", value: String(index) }] }, signer);
    entries.push({ id: idOfSignature(item.subarray(2, 66)), size: item.length });
    await file.write(item, 0, item.length, at);
    at += item.length;
  }
  const header = writeBundleHeader(entries);
  await file.write(header, 0, header.length, 0);
  await file.close();
  return at;
}

function blockWithBundle(size: number): BlockRows {
  const owner = new Uint8Array(512).fill(1);
  const bundle: BundleRow = {
    id: rootId,
    place: { height: 1, txIndex: 0, offset: -1 },
    parentOffset: null,
    headerSize: 0,
    size,
    depth: 0,
    bypassFilter: false,
  };
  return {
    block: blockRow({
      height: 1,
      hash: blockHashFromBytes(new Uint8Array(48).fill(1)),
      timestamp: 1,
      weaveSize: BigInt(size),
      blockSize: BigInt(size),
    }),
    transactions: [
      transactionRow({
        weaveStart: 0n,
        weaveEnd: BigInt(size),
        id: rootId,
        owner: Buffer.from(owner).toString("base64url"),
        ownerAddress: addressOf(owner),
        dataSize: size,
        dataRoot: rootId,
        dataAt: null,
      }),
    ],
    missing: [],
    bundles: [bundle],
  };
}
