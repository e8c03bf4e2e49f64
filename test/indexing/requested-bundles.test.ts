/**
 * A bundle that an operator requests is unbundled without filters, at whatever step of its work the request comes, and
 * also when the program ends right after the response; a bundle that is done is not unbundled again.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { readFilter } from "../../src/arweave/filter.ts";
import { createIndexingRequests } from "../../src/indexing/pending-requests.ts";
import { bundleLimitsDefault } from "../../src/indexing/unbundle.ts";
import type { IndexWriterCalls } from "../../src/store/index/index-writer-calls.ts";
import { openSimulation, openThreads, type Simulation, until } from "../sim/harness.ts";
import { createScript } from "../sim/scripted-chain.ts";
import { openScriptedNode } from "../sim/scripted-node.ts";
import { bundleTags, makeItems, makeNested } from "./samples.ts";

const threads = openThreads();
afterAll(threads.close);

const always = readFilter('{"always":true}');
const never = readFilter('{"never":true}');
const itemCount = 6;
const nestedCount = 3;

/** Calls that end or continue the work on a bundle; each writes what the work found. */
type Step = "takeBundle" | "addItems" | "finishBundle" | "skipBundle" | "failBundle";

type Barrier = Readonly<{
  between: (calls: IndexWriterCalls) => IndexWriterCalls;
  reached: Promise<void>;
  open: () => void;
  /** The call is never made, as in a program that was killed. */
  kill: () => void;
}>;

/** Stops the first call of a step, before it is made or right after it. */
function barrierAt(step: Step, side: "before" | "after"): Barrier {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  let isFirst = true;
  let isKilled = false;
  const between = (calls: IndexWriterCalls): IndexWriterCalls => {
    const call = calls[step] as (...given: readonly unknown[]) => Promise<unknown>;
    const gated = async (...given: readonly unknown[]) => {
      if (!isFirst) return await call(...given);
      // Not when there was nothing to take.
      const response = side === "after" ? await call(...given) : undefined;
      if (!isFirst || (step === "takeBundle" && response === undefined)) return response;
      isFirst = false;
      reached.resolve();
      await opened.promise;
      if (isKilled) throw new Error("the program was killed");
      return side === "after" ? response : await call(...given);
    };
    return { ...calls, [step]: gated };
  };
  return {
    between,
    reached: reached.promise,
    open: opened.resolve,
    kill: () => {
      isKilled = true;
      opened.resolve();
    },
  };
}

async function withBundle(
  options: Partial<Parameters<typeof openSimulation>[0]>,
  body: (parts: {
    simulation: Simulation;
    root: ReturnType<ReturnType<typeof createScript>["carrying"]>;
    queue: (bypassFilter: boolean) => Promise<"queued" | "skipped">;
  }) => Promise<void>,
): Promise<void> {
  const items = [...makeItems(itemCount - 1), makeNested(makeItems(nestedCount, "nested"))];
  const root = createScript(7).carrying(writeBundle(items), bundleTags);
  const tip = createScript(99).block(undefined, [root]);
  const node = await openScriptedNode(tip);
  const simulation = openSimulation({
    seed: 1,
    nodes: [node],
    threads,
    limits: { ...bundleLimitsDefault, entriesPerBatch: 2 },
    ...options,
  });
  const queue = (bypassFilter: boolean) =>
    createIndexingRequests({
      reader: simulation.index.reader,
      index: simulation.index.calls,
      staged: { add: () => false },
      unbundleFilter: options.unbundleFilter ?? always,
      indexFilter: options.indexFilter ?? always,
      onBundle: simulation.wake,
      onStaged: () => undefined,
    }).queueBundle(root.transaction.id, bypassFilter);
  try {
    await body({ simulation, root, queue });
  } finally {
    await simulation.close();
    await node.stop();
  }
}

const isQuiet = ({ index, status }: Simulation): boolean => {
  const { bundlesQueued, bundlesFailed } = index.reader.counts();
  return bundlesQueued === 0 && bundlesFailed === 0 && status().bundles.working.length === 0;
};

describe("queue-bundle", () => {
  const steps: readonly (readonly [Step, "before" | "after", "always" | "never"])[] = [
    ["takeBundle", "after", "always"],
    ["addItems", "before", "always"],
    ["addItems", "after", "always"],
    ["finishBundle", "before", "always"],
    ["finishBundle", "after", "always"],
    ["takeBundle", "after", "never"],
    ["skipBundle", "before", "never"],
    ["skipBundle", "after", "never"],
    ["failBundle", "before", "always"],
    ["failBundle", "after", "always"],
  ];
  const cases = steps.flatMap(([step, side, unbundle]) =>
    (["goes on", "is killed"] as const).map((then) => [side, step, unbundle, then] as const),
  );

  test.each(cases)(
    "bypasses the filters when requested %s %s, unbundle filter %s, and the program %s",
    async (side, step, unbundle, then) => {
      const barrier = barrierAt(step, side);
      const filters = { unbundleFilter: unbundle === "always" ? always : never, indexFilter: never };
      await withBundle({ ...filters, between: barrier.between }, async ({ simulation, root, queue }) => {
        const { id } = root.transaction;
        if (step !== "failBundle") simulation.data.put(id, root.data);
        await barrier.reached;
        expect(await queue(true)).toBe("queued");
        simulation.data.put(id, root.data);
        if (then === "is killed") {
          barrier.kill();
          await simulation.restart();
        } else barrier.open();
        simulation.wake();
        await until(
          () => simulation.index.reader.counts().items === itemCount + nestedCount && isQuiet(simulation),
          "every item is indexed, of the nested bundle too",
          simulation,
        );
        expect(simulation.index.reader.bundleStatus(id)).toMatchObject({
          dataItemCount: itemCount,
          matchedDataItemCount: itemCount,
        });
        expect(simulation.index.reader.integrity()).toEqual([]);
        // Done, so that a second request has nothing to do.
        const attempts = simulation.index.reader.bundleStatus(id)?.importAttemptCount;
        expect([await queue(true), await queue(false)]).toEqual(["skipped", "skipped"]);
        expect(isQuiet(simulation)).toBe(true);
        expect(simulation.index.reader.bundleStatus(id)?.importAttemptCount).toBe(attempts);
      });
    },
    60_000,
  );

  test("of a bundle that is done with the same filters responds skipped, says when, and reads nothing", async () => {
    await withBundle({}, async ({ simulation, root, queue }) => {
      const { id } = root.transaction;
      simulation.data.put(id, root.data);
      const status = () => simulation.index.reader.bundleStatus(id);
      await until(() => status()?.lastFullyIndexedAt != null && isQuiet(simulation), "it is done", simulation);
      const before = status();
      expect(before?.lastSkippedAt).toBeNull();
      // Filters that choose everything are as good as none.
      for (const bypassFilter of [true, false, true]) expect(await queue(bypassFilter)).toBe("skipped");
      expect(isQuiet(simulation)).toBe(true);
      const after = status();
      expect([after?.firstSkippedAt, after?.lastSkippedAt].every((at) => Number(at) > 1_600_000_000)).toBe(true);
      const timeless = (record: typeof after) => ({ ...record, firstSkippedAt: 0, lastSkippedAt: 0 });
      expect(timeless(after)).toEqual(timeless(before));
      await simulation.restart();
      expect(await queue(true)).toBe("skipped");
    });
  });

  test("of a bundle that is done with filters is unbundled once more without them", async () => {
    await withBundle({ indexFilter: never }, async ({ simulation, root, queue }) => {
      const { id } = root.transaction;
      simulation.data.put(id, root.data);
      const status = () => simulation.index.reader.bundleStatus(id);
      await until(() => status()?.lastFullyIndexedAt != null && isQuiet(simulation), "it is done", simulation);
      expect(await queue(false)).toBe("skipped");
      expect(status()).toMatchObject({ importAttemptCount: 1, matchedDataItemCount: 0 });
      expect(await queue(true)).toBe("queued");
      await until(
        () => simulation.index.reader.counts().items === itemCount + nestedCount && isQuiet(simulation),
        "it is done again",
        simulation,
      );
      expect(await queue(true)).toBe("skipped");
      expect(status()).toMatchObject({ importAttemptCount: 2, matchedDataItemCount: itemCount });
    });
  });

  test("brings back what was pruned of a bundle that is done", async () => {
    await withBundle({}, async ({ simulation, root, queue }) => {
      const { id } = root.transaction;
      simulation.data.put(id, root.data);
      const { reader } = simulation.index;
      const isWhole = () => reader.counts().items === itemCount + nestedCount && isQuiet(simulation);
      await until(isWhole, "it is done", simulation);
      const bounds = { ingestedBeforeSeconds: 2 ** 40, startHeight: 0, endHeight: 2 ** 30 };
      expect(await simulation.index.calls.pruneItems(bounds)).toBe(itemCount + nestedCount);
      expect(await queue(true)).toBe("queued");
      await until(isWhole, "the items are back", simulation);
      expect(await queue(true)).toBe("skipped");
    });
  });
});
