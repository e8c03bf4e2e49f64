/**
 * Indexing as it runs, against scripted nodes: real sockets, real threads, the real index; data comes from
 * the script.
 * @module
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readFilter } from "../../src/arweave/filter.ts";
import type { Id } from "../../src/arweave/id.ts";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import type { Content } from "../../src/content/content.ts";
import { Failure } from "../../src/failures.ts";
import { type IndexingOptions, openIndexing } from "../../src/indexing/indexing.ts";
import { silentLog } from "../../src/lib/log.ts";
import type { IndexWriterCalls } from "../../src/store/index/index-writer-calls.ts";
import type { RootSpec } from "../../src/store/root-spec.ts";
import { openPool, type Pool, type Workers } from "../../src/threads/pool.ts";
import { openDirectIndex } from "../indexing/direct-index.ts";
import { openFolder } from "../indexing/samples.ts";
import { createRandom } from "../support/random.ts";
import { until as untilTrue } from "../support/until.ts";
import { chainTo, type ScriptedBlock } from "./scripted-chain.ts";
import type { ScriptedNode } from "./scripted-node.ts";

/** Threads that all simulations of one file share. */
export function openThreads(): Readonly<{
  verify: Pool<Workers["verify"]>;
  unbundle: Pool<Workers["unbundle"]>;
  close: () => Promise<void>;
}> {
  const common = { threads: 1, queueMax: 1_000, timeoutMs: 60_000, idleMs: 60_000 };
  const verify = openPool({ entry: "verify", ...common });
  const unbundle = openPool({ entry: "unbundle", ...common });
  return {
    verify,
    unbundle,
    close: async () => {
      await Promise.all([verify.close(), unbundle.close()]);
    },
  };
}

/** Data by root transaction, as far as it is to be had. */
export type DataSource = Readonly<{
  content: Pick<Content, "ensure" | "keep">;
  /** Data of format 1 that indexing gave to be stored. */
  stored: ReadonlyMap<Id, Uint8Array>;
  put: (id: Id, data: Uint8Array) => void;
}>;

/** Content that has what the script put there, in files of a folder. */
export function createDataSource(folder: string): DataSource {
  const data = new Map<Id, Uint8Array>();
  const stored = new Map<Id, Uint8Array>();
  return {
    stored,
    put: (id, bytes) => data.set(id, bytes),
    content: {
      keep: async ({ id }, bytes) => {
        stored.set(id, new Uint8Array(bytes));
        return true;
      },
      ensure: async ({ id, size }: RootSpec) => {
        const bytes = data.get(id) ?? stored.get(id);
        if (bytes === undefined) throw new Failure("source_failed", { id });
        if (bytes.length !== size) throw new Error("the index knows the size of a root's data");
        const path = join(folder, id);
        await writeFile(path, bytes);
        return { path, release: () => undefined };
      },
    },
  };
}

/** Everything that a simulation needs besides its script. */
export type SimulationOptions = Partial<Omit<IndexingOptions, "nodes" | "index" | "reader">> &
  Readonly<{
    seed: number;
    nodes: readonly ScriptedNode[];
    threads: Readonly<{ verify: Pool<Workers["verify"]>; unbundle: Pool<Workers["unbundle"]> }>;
    /** Is between indexing and the index. */
    between?: (calls: IndexWriterCalls) => IndexWriterCalls;
  }>;

/** Opens indexing in a folder of its own. */
export function openSimulation(options: SimulationOptions) {
  const folder = openFolder();
  const clock = options.clock ?? (() => Date.now());
  const random = createRandom(options.seed).next;
  const openIndex = () => openDirectIndex(join(folder.path, "index.sqlite"), clock);
  let index = openIndex();
  const data = createDataSource(folder.path);
  const nodes = createNodes(
    options.nodes.map(({ url }) => openNode(url, { firstByteMs: 1_000, stallMs: 1_000, totalMs: 2_000 })),
    { clock, random, log: silentLog },
  );
  const always = readFilter('{"always":true}');
  const open = () =>
    openIndexing({
      verify: options.threads.verify,
      unbundle: options.threads.unbundle,
      content: data.content,
      start: 0,
      stop: undefined,
      unbundleFilter: always,
      indexFilter: always,
      isMempoolWatched: false,
      hooks: { onBlock: () => undefined, onItems: () => undefined, onRollback: () => undefined },
      clock,
      random,
      log: silentLog,
      ...options,
      times: {
        followMs: 5,
        queueMs: 20,
        mempoolMs: 10,
        shrinkGraceMs: 50,
        goneGraceMs: 50,
        ...options.times,
      },
      nodes,
      index: options.between === undefined ? index.calls : options.between(index.calls),
      reader: index.reader,
    });
  let indexing = open();

  return {
    get index() {
      return index;
    },
    data,
    status: () => indexing.status(),
    wake: () => indexing.wake(),
    /** Stops indexing, closes the index, and begins again on the same file. */
    restart: async () => {
      await indexing.close();
      index.close();
      index = openIndex();
      indexing = open();
    },
    /** Data of every transaction of a chain becomes available. */
    putAll: (tip: ScriptedBlock) => {
      for (const { transactions } of chainTo(tip))
        for (const { transaction, data: bytes } of transactions)
          if (transaction.format === 2) data.put(transaction.id, bytes);
    },
    close: async () => {
      await indexing.close();
      nodes.close();
      index.close();
      folder.remove();
    },
  };
}

/** An open simulation. */
export type Simulation = ReturnType<typeof openSimulation>;

/** Waits until something is so; says what the simulation's state is when it does not come. */
export async function until(isSo: () => boolean, what: string, simulation: Simulation, ms = 60_000): Promise<void> {
  const state = () => {
    const { follow, bundles, missing } = simulation.status();
    return `${what}: ${JSON.stringify({ follow, bundles, missing, counts: simulation.index.reader.counts() })}`;
  };
  await untilTrue(isSo, state, ms);
}

/** Waits until the index is at a block and has nothing left to do. */
export function untilSettled(tip: ScriptedBlock, simulation: Simulation, ms?: number): Promise<void> {
  const isSettled = () => {
    const { reader } = simulation.index;
    if (reader.tip()?.hash !== tip.hash) return false;
    const { bundlesQueued, bundlesFailed, missingTransactions } = reader.counts();
    return bundlesQueued === 0 && bundlesFailed === 0 && missingTransactions === 0;
  };
  return until(isSettled, `the index settles at block ${tip.height}`, simulation, ms);
}
