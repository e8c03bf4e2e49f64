/**
 * The queue of bundles: every bundle reaches its state, whatever is in it and whatever is beside it.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { writeBundle, writeBundleHeader } from "../../src/arweave/bundle.ts";
import { checkItem } from "../../src/arweave/data-item.ts";
import { readFilter } from "../../src/arweave/filter.ts";
import type { Id } from "../../src/arweave/id.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { silentLog } from "../../src/lib/log.ts";
import { sleep } from "../../src/lib/stop.ts";
import type { IndexWriterCalls } from "../../src/store/index/index-writer-calls.ts";
import { openPool } from "../../src/threads/pool.ts";
import { expectIndexToEqual } from "../sim/expected.ts";
import {
  createDataSource,
  openSimulation,
  openThreads,
  type Simulation,
  type SimulationOptions,
  until,
  untilSettled,
} from "../sim/harness.ts";
import { createScript, growBranch, type ScriptedBlock, type ScriptedTransaction } from "../sim/scripted-chain.ts";
import { openScriptedNode, type ScriptedNode } from "../sim/scripted-node.ts";
import { testWith } from "../support/helpers.ts";
import { vectorBytes, vectors, vectorsOf } from "../support/vectors.ts";
import { bundleTags, makeItem, makeItems, makeNested, openFolder, signers, spoil } from "./samples.ts";

const threads = openThreads();
afterAll(threads.close);

const never = readFilter('{"never":true}');

function bundle(items: readonly Uint8Array[], seed = 1): ScriptedTransaction {
  return createScript(seed).carrying(writeBundle(items), bundleTags);
}

async function withBlock(
  transactions: readonly ScriptedTransaction[],
  options: Partial<SimulationOptions> & Readonly<{ isDataLate?: boolean }>,
  body: (simulation: Simulation, tip: ScriptedBlock, node: ScriptedNode) => Promise<void>,
): Promise<void> {
  const tip = createScript(99).block(undefined, transactions);
  const node = await openScriptedNode(tip);
  const simulation = openSimulation({ seed: 1, nodes: [node], threads, ...options });
  if (options.isDataLate !== true) put(simulation, ...transactions);
  try {
    await until(() => simulation.index.reader.tip()?.hash === tip.hash, "the block is followed", simulation);
    await body(simulation, tip, node);
  } finally {
    await simulation.close();
    await node.stop();
  }
}

function put(simulation: Simulation, ...transactions: readonly ScriptedTransaction[]): void {
  for (const { transaction, data } of transactions) simulation.data.put(transaction.id, data);
}

function statusOf(simulation: Simulation, id: Id) {
  const status = simulation.index.reader.bundleStatus(id);
  if (status === undefined) throw new Error("the bundle has a status");
  return status;
}

function checkedId(item: Uint8Array): Id {
  const checked = checkItem(item, "lenient");
  if (checked.kind !== "item") throw new Error(checked.reason);
  return checked.header.id;
}

const counts = (simulation: Simulation) => simulation.index.reader.counts();

describe("bundles", () => {
  test("items of every signature type, nested to any depth, become rows with their counts", async () => {
    const deep = [1, 2, 3, 4].reduce((inner) => makeNested([...makeItems(1, "deep"), inner]), makeItem("the core"));
    const items = [
      ...signers.map((signer) => makeItem("signed", {}, signer)),
      makeNested(signers.map((signer) => makeItem("signed within", {}, signer))),
      deep,
    ];
    const root = bundle(items);
    await withBlock([root], {}, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      const { reader } = simulation.index;
      const status = statusOf(simulation, root.transaction.id);
      expect(status).toMatchObject({ dataItemCount: 9, matchedDataItemCount: 9, duplicatedDataItemCount: 0 });
      for (const time of [status.firstQueuedAt, status.firstUnbundledAt, status.lastFullyIndexedAt])
        expect(time).toBeGreaterThan(1_600_000_000);
      expect(status.firstSkippedAt).toBeNull();
      // Items with the same words under the same key are the same item: four levels say "deep 0".
      expect(counts(simulation)).toMatchObject({ items: 9 + 7 + 5, duplicates: 3 });
      expect(reader.integrity()).toEqual([]);
    });
  });

  testWith(vectors, "real bundles and real items, nested ones too, become exactly their valid items", async () => {
    const files = vectorsOf("bundle").filter(({ file }) => file.startsWith("bundles/"));
    const bundles = files.map(({ file }, number) => createScript(300 + number).carrying(vectorBytes(file), bundleTags));
    const items = vectorsOf("data-item").filter(({ file }) => file.startsWith("data-items/"));
    const ids = items.map(({ checks }) => Object(checks["arbundles"])["id"]);
    const header = writeBundleHeader(
      items.map(({ file }, number) => {
        const bytes = vectorBytes(file);
        return { id: ids[number] ?? checkedId(bytes), size: bytes.length };
      }),
    );
    const root = createScript(400).carrying(
      concatBytes([header, ...items.map(({ file }) => vectorBytes(file))]),
      bundleTags,
    );
    await withBlock([root, ...bundles], {}, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      const { reader } = simulation.index;
      for (const [number, { file, checks }] of files.entries()) {
        const { items: named, n, valid } = { ...Object(checks), ...Object(checks["arbundles"]) };
        const { matchedDataItemCount, dataItemCount } = statusOf(simulation, bundles[number]!.transaction.id);
        expect(`${file} ${matchedDataItemCount} of ${dataItemCount}`).toBe(`${file} ${valid} of ${named ?? n}`);
      }
      const wrong = items.filter(({ result }) => result === "expected-invalid");
      expect(wrong.length).toBe(1);
      expect(reader.invalidItems(root.transaction.id, 0, 10)?.items.map(({ id }) => id)).toEqual(
        wrong.map(({ checks }) => Object(checks["arbundles"])["id"]),
      );
      const nested = items.flatMap(({ checks }) => Object(checks["nested"])["ids"] ?? []);
      expect(nested.length).toBeGreaterThan(0);
      for (const id of nested) expect(reader.locate(id)).toMatchObject({ verified: true, rootId: root.transaction.id });
    });
  });

  test("a bundle whose data is not there yet is tried until it is", async () => {
    const roots = [bundle(makeItems(3)), bundle(makeItems(4, "other"), 2)];
    await withBlock(roots, { isDataLate: true }, async (simulation, tip) => {
      await until(
        () => roots.every(({ transaction }) => statusOf(simulation, transaction.id).importAttemptCount > 1),
        "both were tried",
        simulation,
      );
      expect(counts(simulation)).toMatchObject({ items: 0, bundlesFailed: 2 });
      put(simulation, roots[1]!);
      await until(() => counts(simulation).items === 4, "the second is done", simulation);
      put(simulation, roots[0]!);
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
      expect(statusOf(simulation, roots[0]!.transaction.id).retryAttemptCount).toBeGreaterThan(0);
    });
  });

  test("a bundle that does not end in time is tried again", async () => {
    const root = bundle(makeItems(3));
    const folder = openFolder();
    const source = createDataSource(folder.path);
    source.put(root.transaction.id, root.data);
    let attempts = 0;
    const content: typeof source.content = {
      ...source.content,
      ensure: async (spec, span, signal) => {
        attempts += 1;
        if (attempts === 1) await sleep(600_000, signal);
        return await source.content.ensure(spec, span, signal);
      },
    };
    await withBlock([root], { content, times: { bundleMs: 2_000 } }, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
      expect(attempts).toBeGreaterThanOrEqual(2);
    });
    folder.remove();
  });

  test("B4: a wrong item is recorded with its reason, its siblings are indexed", async () => {
    const items = makeItems(5);
    const bytes = writeBundle(items);
    const end = (index: number) => 32 + 64 * 5 + items.slice(0, index + 1).reduce((sum, { length }) => sum + length, 0);
    const root = createScript(3).carrying(spoil(spoil(bytes, end(1) - 1, 0xee), end(3) - 1, 0xee), bundleTags);
    await withBlock([root], {}, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
      const { id } = root.transaction;
      expect(statusOf(simulation, id)).toMatchObject({ dataItemCount: 5, matchedDataItemCount: 3 });
      const invalid = simulation.index.reader.invalidItems(id, 0, 10)?.items ?? [];
      expect(invalid.map(({ entry }) => entry)).toEqual([1, 3]);
      expect(invalid.every(({ reason }) => /signature/.test(reason))).toBe(true);
    });
  });

  test("an item in several bundles is one row, and is counted as a duplicate", async () => {
    const [shared, first, second] = makeItems(3);
    const roots = [bundle([shared!, first!]), bundle([second!, shared!], 2)];
    await withBlock(roots, {}, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      expect(counts(simulation)).toMatchObject({ items: 3, duplicates: 1 });
      const duplicated = roots.map(({ transaction }) => statusOf(simulation, transaction.id).duplicatedDataItemCount);
      expect(duplicated).toEqual([0, 1]);
    });
  });

  test("the unbundle filter skips bundles and the index filter items; the bundle says so", async () => {
    const wanted = [{ name: "App", value: "wanted" }];
    const nested = makeNested([makeItem("inner", { tags: wanted }), makeItem("inner other")], {
      tags: wanted,
    });
    const skipped = makeNested([makeItem("skipped inner", { tags: wanted })]);
    const root = createScript(4).carrying(
      writeBundle([makeItem("a", { tags: wanted }), makeItem("b"), nested, skipped]),
      [...bundleTags, ...wanted],
    );
    const other = bundle(makeItems(2), 5);
    const filter = readFilter('{"tags":[{"name":"App","value":"wanted"}]}');
    await withBlock([root, other], { unbundleFilter: filter, indexFilter: filter }, async (simulation, tip) => {
      put(simulation, root, other);
      await untilSettled(tip, simulation);
      expect(counts(simulation)).toMatchObject({ items: 3, bundles: 3 });
      expect(statusOf(simulation, root.transaction.id)).toMatchObject({
        dataItemCount: 4,
        matchedDataItemCount: 2,
      });
      const status = statusOf(simulation, other.transaction.id);
      expect(status.lastSkippedAt).toBeGreaterThan(0);
      expect(status).toMatchObject({ firstUnbundledAt: null, dataItemCount: null });
    });
  });

  test("filters that exclude a bundle leave it skipped, without a request for its data", async () => {
    const root = bundle(makeItems(3));
    await withBlock([root], { unbundleFilter: never, indexFilter: never }, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      expect(statusOf(simulation, root.transaction.id).importAttemptCount).toBe(1);
      expect(counts(simulation).items).toBe(0);
    });
  });

  test("data that is not a bundle fails and is not tried again", async () => {
    const root = createScript(6).carrying(new Uint8Array(100).fill(0xff), bundleTags);
    await withBlock([root, bundle(makeItems(2))], {}, async (simulation) => {
      await until(
        () => counts(simulation).bundlesFailed === 1 && counts(simulation).items === 2,
        "it failed",
        simulation,
      );
      await Bun.sleep(50); // time for a second attempt, which must not happen
      expect(statusOf(simulation, root.transaction.id).importAttemptCount).toBe(1);
    });
  });

  test("bundles within bundles end at the tenth level, and everything above is indexed", async () => {
    const levels = Array.from({ length: 14 }, (_, level) => level);
    const deep = levels.reduce((inner, level) => makeNested([inner, makeItem(`level ${level}`)]), makeItem("the core"));
    const root = bundle([deep, makeItem("beside")]);
    await withBlock([root], {}, async (simulation) => {
      // The transaction is level 0; ten more are opened, and the eleventh is an item that stays closed.
      await until(() => counts(simulation).bundlesFailed === 1, "the last is rejected", simulation);
      await until(() => counts(simulation).bundlesQueued === 0, "the others are done", simulation);
      expect(counts(simulation)).toMatchObject({ bundles: 12, items: 2 + 2 * 10, bundlesFailed: 1 });
    });
  });

  const fan = (name: string) =>
    bundle(Array.from({ length: 40 }, (_, index) => makeNested(makeItems(40, `${name} ${index}`))));

  test("B2: a bundle that opens into thousands ends at the budget of its root, and others go on", async () => {
    const warned: string[] = [];
    const log = { ...silentLog, warn: (message: string) => warned.push(message) };
    const options = { limits: { entriesPerRootMax: 400 }, log };
    await withBlock([fan("fan"), bundle(makeItems(5), 2)], options, async (simulation) => {
      await until(() => counts(simulation).bundlesQueued === 0, "all are settled", simulation);
      // The root's 40, and 360 of what is in them: nine bundles whole, or more of them in part.
      expect(counts(simulation).items).toBe(400 + 5);
      expect(counts(simulation).bundlesFailed).toBeGreaterThanOrEqual(40 - 9);
      expect(warned).toEqual(["bundle rejected"]);
    });
  });

  test("entries beyond the budget are rejected before their bytes are requested", async () => {
    const root = fan("unread");
    const asked: number[] = [];
    await withBlock([root], { limits: { entriesPerRootMax: 40 }, isDataLate: true }, async (simulation) => {
      const { content } = simulation.data;
      const { ensure } = content;
      Object.assign(content, {
        ensure: (...parts: Parameters<typeof ensure>) => {
          asked.push(parts[1].start);
          return ensure(...parts);
        },
      });
      put(simulation, root);
      await until(() => counts(simulation).bundlesFailed === 40, "all are rejected", simulation);
      await until(() => counts(simulation).bundlesQueued === 0, "nothing waits", simulation);
      expect(new Set(asked)).toEqual(new Set([0]));
      expect(counts(simulation).items).toBe(40);
    });
  });

  test("the budget of a root holds over restarts, also where more than half of it is used", async () => {
    const root = fan("again");
    const limits = { entriesPerRootMax: 400, entriesPerBatch: 10 };
    await withBlock([root], { limits, isDataLate: true }, async (simulation) => {
      put(simulation, root);
      for (const items of [100, 200, 300]) {
        await until(() => counts(simulation).items >= items, "some are there", simulation);
        await simulation.restart();
      }
      await until(() => counts(simulation).bundlesQueued === 0, "all are settled", simulation);
      expect(counts(simulation).items).toBe(400);
    });
  });

  test("an item that is named like the bundle around it is wrong, not a circle", async () => {
    const inner = makeItems(2);
    const nested = makeNested(inner);
    const nestedId = writeBundle([nested]).subarray(64, 96);
    const header = writeBundleHeader(
      inner.map((item) => ({ id: createScript(8).transaction("data").transaction.id, size: item.length })),
    );
    header.set(nestedId, 64);
    const circle = makeItem(concatBytes([header, ...inner]), { tags: [...bundleTags] });
    const root = bundle([circle, nested]);
    await withBlock([root], {}, async (simulation, tip) => {
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
    });
  });

  test("B5: a bundle over which threads die is set aside after three; one over which they hang too; others are done", async () => {
    const pool = openPool({
      entry: new URL("./poison-unbundle.ts", import.meta.url),
      threads: 1,
      queueMax: 100,
      timeoutMs: 60_000,
      idleMs: 60_000,
    });
    const dies = bundle([makeItem("poison: die")], 11);
    const hangs = bundle([makeItem("poison: hang")], 12);
    const good = [1, 2, 3, 4].map((number) => bundle(makeItems(10, `good ${number}`), number));
    let now = Date.now();
    const options = {
      threads: { ...threads, unbundle: pool },
      unbundle: pool,
      clock: () => now,
      limits: { batchTimeoutMs: 1_500 }, // a thread's start is within it
    };
    await withBlock([dies, hangs, ...good], options, async (simulation) => {
      const hours = setInterval(() => {
        now += 3_600_000;
      }, 20);
      await until(
        () =>
          counts(simulation).bundlesFailed === 2 &&
          counts(simulation).items === 40 &&
          simulation.index.reader.nextBundleAt() === undefined,
        "all are settled",
        simulation,
      );
      clearInterval(hours);
      expect(statusOf(simulation, dies.transaction.id).importAttemptCount).toBe(3);
      expect(statusOf(simulation, hangs.transaction.id).importAttemptCount).toBe(3);
    });
    await pool.close();
  });

  test("reading never runs ahead of writing by more than one batch", async () => {
    const root = bundle(makeItems(60));
    let reading = 0;
    let written = 0;
    let ahead = 0;
    const counting: typeof threads.unbundle = {
      ...threads.unbundle,
      run: (name, job, options) => {
        ahead = Math.max(ahead, reading - written);
        reading += 1;
        return threads.unbundle.run(name, job, options);
      },
    };
    const options = { unbundle: counting, limits: { entriesPerBatch: 5 }, isDataLate: true };
    await withBlock([root], options, async (simulation, tip) => {
      const { writer } = simulation.index;
      const { addItems } = writer;
      Object.assign(writer, {
        addItems: async (...parts: Parameters<typeof addItems>) => {
          const added = addItems(...parts);
          await Bun.sleep(10);
          written += 1;
          return added;
        },
      });
      put(simulation, root);
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
      expect(written).toBe(12);
      expect(ahead).toBeLessThanOrEqual(1);
    });
  });

  test("a write that fails is made again: no row is lost, none is there twice", async () => {
    const root = bundle(makeItems(60));
    await withBlock([root], { limits: { entriesPerBatch: 5 }, isDataLate: true }, async (simulation, tip) => {
      const { writer } = simulation.index;
      const { addItems, finishBundle } = writer;
      let calls = 0;
      const failing =
        <Parts extends readonly unknown[], Result>(call: (...parts: Parts) => Result) =>
        (...parts: Parts): Result => {
          calls += 1;
          if (calls % 3 === 0) throw new Error("database or disk is full");
          return call(...parts);
        };
      Object.assign(writer, { addItems: failing(addItems), finishBundle: failing(finishBundle) });
      put(simulation, root);
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
      expect(statusOf(simulation, root.transaction.id)).toMatchObject({
        dataItemCount: 60,
        matchedDataItemCount: 60,
      });
      expect(calls).toBeGreaterThan(13);
    });
  });

  /** Runs something before the n-th call of a step. */
  const beforeCall =
    (step: "addItems" | "finishBundle", number: number, work: (calls: IndexWriterCalls) => Promise<void>) =>
    (calls: IndexWriterCalls): IndexWriterCalls => {
      const call = calls[step] as (...given: readonly unknown[]) => Promise<unknown>;
      let made = 0;
      const counted = async (...given: readonly unknown[]) => {
        made += 1;
        if (made === number) await work(calls);
        return await call(...given);
      };
      return { ...calls, [step]: counted };
    };

  test.each([
    ["before its first batch", "addItems", 1],
    ["between its batches", "addItems", 3],
    ["after its last batch", "finishBundle", 1],
  ] as const)(
    "a bundle that a reorg removes and adds again %s is read to its end, although another slot has taken it",
    async (_, step, number) => {
      const root = bundle(makeItems(20));
      const { id } = root.transaction;
      const opened: { simulation?: Simulation } = {};
      const reorganise = async (calls: IndexWriterCalls) => {
        const { simulation } = opened;
        if (simulation === undefined) throw new Error("the simulation is open");
        await calls.rollback(0);
        const isTaken = () => simulation.index.reader.bundleStatus(id)?.importAttemptCount === 1;
        await until(isTaken, "another slot has taken it", simulation);
      };
      const between = beforeCall(step, number, reorganise);
      await withBlock(
        [root],
        { limits: { entriesPerBatch: 5 }, isDataLate: true, between },
        async (simulation, tip) => {
          opened.simulation = simulation;
          put(simulation, root);
          await untilSettled(tip, simulation);
          expectIndexToEqual(simulation.index.reader, tip);
          expect(statusOf(simulation, id)).toMatchObject({ dataItemCount: 20, matchedDataItemCount: 20 });
          expect(simulation.index.reader.integrity()).toEqual([]);
        },
      );
    },
  );

  test("a bundle that a reorg puts in the place of another one is read beside it", async () => {
    const [root, other] = [bundle(makeItems(20, "one")), bundle(makeItems(20, "another"), 2)];
    const branch = createScript(98).block(undefined, [other]);
    const opened: { simulation?: Simulation; node?: ScriptedNode } = {};
    const reorganise = async (calls: IndexWriterCalls) => {
      const { simulation, node } = opened;
      if (simulation === undefined || node === undefined) throw new Error("the simulation is open");
      node.setTip(branch);
      await calls.rollback(0);
      const isTaken = () => simulation.index.reader.bundleStatus(other.transaction.id)?.importAttemptCount === 1;
      await until(isTaken, "another slot has taken it", simulation);
    };
    const between = beforeCall("addItems", 2, reorganise);
    const options = { limits: { entriesPerBatch: 5 }, isDataLate: true, between };
    await withBlock([root], options, async (simulation, _, node) => {
      Object.assign(opened, { simulation, node });
      put(simulation, root, other);
      await untilSettled(branch, simulation);
      expectIndexToEqual(simulation.index.reader, branch);
    });
  });

  test("a block that is removed while its bundle is read leaves nothing behind", async () => {
    const script = createScript(20);
    const base = script.block(undefined, []);
    const root = script.carrying(writeBundle(makeItems(200)), bundleTags);
    const tip = growBranch(script, script.block(base, [root]), 2);
    const node = await openScriptedNode(tip);
    const simulation = openSimulation({
      seed: 20,
      nodes: [node],
      threads,
      limits: { entriesPerBatch: 5 },
    });
    simulation.putAll(tip);
    await until(() => counts(simulation).items > 5, "some items are there", simulation);
    const other = growBranch(script, base, 2);
    simulation.putAll(other);
    node.setTip(other);
    await untilSettled(other, simulation);
    expectIndexToEqual(simulation.index.reader, other);
    await simulation.close();
    await node.stop();
  });
});
