/**
 * Following a chain that forks, from nodes that fail: whatever happens on the way, the index ends equal to
 * the chain.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { blockOf, ownerOf, transactionOf } from "../store/index/rows-of.ts";
import { createRandom } from "../support/random.ts";
import { expectIndexToEqual } from "./expected.ts";
import {
  openSimulation,
  openThreads,
  type Simulation,
  type SimulationOptions,
  until,
  untilSettled,
} from "./harness.ts";
import { ancestorAt, createScript, growBranch, idsOf, type ScriptedBlock } from "./scripted-chain.ts";
import { openScriptedNode, type ScriptedNode } from "./scripted-node.ts";

const threads = openThreads();
afterAll(threads.close);

/** A simulation with one node, closed when the body has ended. */
async function withNode(
  tip: ScriptedBlock,
  options: Partial<SimulationOptions>,
  body: (simulation: ReturnType<typeof openSimulation>, node: ScriptedNode) => Promise<void>,
): Promise<void> {
  const node = await openScriptedNode(tip);
  const simulation = openSimulation({ seed: 1, nodes: [node], threads, ...options });
  simulation.putAll(tip);
  try {
    await body(simulation, node);
  } finally {
    await simulation.close();
    await node.stop();
  }
}

/** Hooks that note from which heights the index is rolled back. */
function recordRemovals() {
  const removals: number[] = [];
  const hooks = {
    onBlock: () => undefined,
    onItems: () => undefined,
    onRollback: (fromHeight: number) => removals.push(fromHeight),
  };
  return { removals, hooks };
}

describe("following", () => {
  test("a chain becomes its rows, nested items and all, and data of format 1 is stored", async () => {
    const script = createScript(1);
    const tip = growBranch(script, undefined, 30);
    await withNode(tip, {}, async (simulation) => {
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
      const carried = expectedData(tip);
      expect(carried.length).toBeGreaterThan(0);
      for (const { id, data } of carried)
        expect(Buffer.compare(simulation.data.stored.get(id) ?? new Uint8Array(0), data)).toBe(0);
      expect(simulation.status().reasons).toEqual([]);
      expect(simulation.status().follow).toMatchObject({ lag: 0, theirHeight: 29, failures: 0 });
    });
  });

  test("begins at any height without the block before, and ends at a stop height", async () => {
    const script = createScript(2);
    const tip = growBranch(script, undefined, 80);
    for (const [start, from] of [
      [17, 17],
      ["latest", 29],
      [79, 79],
    ] as const)
      await withNode(tip, { start }, async (simulation) => {
        await untilSettled(tip, simulation);
        expectIndexToEqual(simulation.index.reader, tip, from);
      });
    await withNode(tip, { start: 10, stop: 20 }, async (simulation) => {
      const last = ancestorAt(tip, 20);
      await untilSettled(last, simulation);
      await Bun.sleep(30); // time for a change, which must not happen
      expectIndexToEqual(simulation.index.reader, last, 10);
    });
  });

  test("N3: rounds with the chain at every depth from 1 to 60, to longer, equal and shorter branches", async () => {
    const script = createScript(3);
    let tip = growBranch(script, undefined, 64);
    await withNode(tip, {}, async (simulation, node) => {
      await untilSettled(tip, simulation);
      const semaphore: number[] = [];
      for (const [depth, length] of [
        [1, 1],
        [1, 2],
        [2, 1],
        [3, 4],
        [5, 5],
        [9, 3],
        [17, 18],
        [18, 18],
        [19, 20],
        [33, 10],
        [50, 51],
        [51, 40],
        [60, 61],
      ] as const) {
        tip = growBranch(script, ancestorAt(tip, Math.max(0, tip.height - depth)), length);
        simulation.putAll(tip);
        node.setTip(tip);
        await untilSettled(tip, simulation);
        expectIndexToEqual(simulation.index.reader, tip);
        semaphore.push(depth);
      }
      expect(semaphore).toHaveLength(13);
    });
  });

  test("N3: a block that the node lacks for a moment is not taken for another: no common block is removed", async () => {
    const script = createScript(13);
    const base = growBranch(script, undefined, 27);
    const tip = growBranch(script, base, 3);
    const { removals, hooks } = recordRemovals();
    await withNode(tip, { hooks }, async (simulation, node) => {
      await untilSettled(tip, simulation);
      const other = growBranch(script, base, 4);
      simulation.putAll(other);
      const lacking = new Set(Array.from({ length: base.height + 1 }, (_, height) => `/block/height/${height}`));
      // Each is absent at the first request.
      node.setFault((path) => (lacking.delete(path) ? { kind: "status", status: 404 } : undefined));
      node.setTip(other);
      await untilSettled(other, simulation);
      expect(lacking.size).toBeLessThan(base.height + 1);
      expect(removals).toEqual([base.height + 1]);
      expectIndexToEqual(simulation.index.reader, other);
    });
  });

  test("a block far below, which was requested, is not where a deep fork ends", async () => {
    const script = createScript(14);
    const base = growBranch(script, undefined, 51);
    const tip = growBranch(script, base, 3);
    const { removals, hooks } = recordRemovals();
    await withNode(tip, { hooks, start: 48 }, async (simulation, node) => {
      await untilSettled(tip, simulation);
      const random = createRandom(1);
      const block = blockOf(random, { height: 5, txCount: 1 });
      const transactions = [transactionOf(random, ownerOf(random), { txIndex: 0 })];
      await simulation.index.calls.addStrayBlock({ block, transactions, missing: [], bundles: [] });
      const other = growBranch(script, base, 4);
      simulation.putAll(other);
      node.setTip(other);
      await untilSettled(other, simulation);
      expect(removals).toEqual([base.height + 1]);
      expect(simulation.index.reader.block(5)?.hash).toBe(block.hash);
    });
  });

  test("N3: rounds to a chain that has nothing in common with ours but where it begins", async () => {
    const script = createScript(4);
    const tip = growBranch(script, undefined, 12);
    const other = growBranch(script, undefined, 7);
    await withNode(tip, {}, async (simulation, node) => {
      await untilSettled(tip, simulation);
      simulation.putAll(other);
      node.setTip(other);
      await untilSettled(other, simulation);
      expectIndexToEqual(simulation.index.reader, other);
    });
  });

  test("N3: a transaction that a reorganisation moves is at its new place alone", async () => {
    const script = createScript(5);
    const base = growBranch(script, undefined, 3);
    const moved = [script.transaction("bundle"), script.transaction("data"), script.transaction("old")];
    const tip = growBranch(script, script.block(base, moved), 2);
    await withNode(tip, {}, async (simulation, node) => {
      await untilSettled(tip, simulation);
      const between = growBranch(script, base, 3);
      const other = script.block(between, [script.transaction("transfer"), ...moved.toReversed()]);
      simulation.putAll(other);
      node.setTip(other);
      await untilSettled(other, simulation);
      expectIndexToEqual(simulation.index.reader, other);
    });
  });

  test("N3: a chain that loses blocks is followed down after a while, a node that merely lags is not", async () => {
    const script = createScript(6);
    const tip = growBranch(script, undefined, 10);
    let now = 1_000_000;
    await withNode(tip, { clock: () => now, times: { shrinkGraceMs: 60_000 } }, async (simulation, node) => {
      await untilSettled(tip, simulation);
      const lower = ancestorAt(tip, 6);
      node.setTip(lower);
      await until(() => simulation.status().follow.lag === -3, "the node is seen below", simulation);
      now += 59_000;
      await Bun.sleep(30); // time for a change, which must not happen
      expect(simulation.index.reader.tip()?.height).toBe(9);
      node.setTip(tip);
      await until(() => simulation.status().follow.lag === 0, "the node is seen level", simulation);
      node.setTip(lower);
      await until(() => simulation.status().follow.lag === -3, "the node is seen below", simulation);
      await Bun.sleep(30); // time for a change, which must not happen
      now += 61_000;
      await untilSettled(lower, simulation);
      expectIndexToEqual(simulation.index.reader, lower);
    });
  });

  test("transactions that no node has are found when they appear; the block is there meanwhile", async () => {
    const script = createScript(7);
    const base = growBranch(script, undefined, 4);
    const block = script.block(base, [
      script.transaction("data"),
      script.transaction("bundle"),
      script.transaction("old"),
      script.transaction("large"),
    ]);
    const tip = growBranch(script, block, 3);
    const node = await openScriptedNode(tip);
    const [first, second, third] = idsOf(block);
    node.missing.add(first!).add(third!);
    node.pendingOnly.add(second!);
    let now = Date.now();
    const simulation = openSimulation({ seed: 7, nodes: [node], threads, clock: () => now });
    simulation.putAll(tip);
    const { reader } = simulation.index;
    await until(() => reader.tip()?.hash === tip.hash, "the tip is followed", simulation);
    expect(reader.counts().missingTransactions).toBe(3);
    expect([first, second, third].map((id) => reader.locate(id!))).toEqual([undefined, undefined, undefined]);
    expect(reader.blockText(block.height)?.unchecked).toContain("transactions");
    node.missing.clear();
    node.pendingOnly.clear();
    const minutes = setInterval(() => {
      now += 60_000;
    }, 10);
    await untilSettled(tip, simulation);
    clearInterval(minutes);
    await untilChecked(block.height, simulation);
    expectIndexToEqual(reader, tip);
    await simulation.close();
    await node.stop();
  });

  test("a node with wrong bytes is distinguished from one without: everything comes from the other", async () => {
    const script = createScript(8);
    const tip = growBranch(script, undefined, 15);
    const liar = await openScriptedNode(tip);
    const honest = await openScriptedNode(tip);
    // One digit of a timestamp, one character of a signature.
    liar.setFault((path) =>
      /^\/(block\/height|tx)\//.test(path) ? { kind: "spoil", at: path.length * 7 + 150 } : undefined,
    );
    const simulation = openSimulation({ seed: 8, nodes: [liar, honest], threads });
    simulation.putAll(tip);
    await untilSettled(tip, simulation);
    expectIndexToEqual(simulation.index.reader, tip);
    await simulation.close();
    await liar.stop();
    await honest.stop();
  });

  test("with one dishonest node alone, nothing wrong is indexed, and the log gives the reason", async () => {
    const script = createScript(9);
    const tip = growBranch(script, undefined, 4);
    const node = await openScriptedNode(tip);
    node.setFault((path) => (path === "/block/height/2" ? { kind: "spoil", at: 400 } : undefined));
    const simulation = openSimulation({ seed: 9, nodes: [node], threads });
    simulation.putAll(tip);
    await until(() => simulation.status().reasons.length > 0, "it is said", simulation);
    expect(simulation.status().reasons[0]).toMatch(/following the chain: failed \d+ times in a row: .*height.*2/);
    expect(simulation.index.reader.tip()?.height).toBe(1);
    node.setFault(() => undefined);
    await untilSettled(tip, simulation);
    expect(simulation.status().reasons).toEqual([]);
    expectIndexToEqual(simulation.index.reader, tip);
    await simulation.close();
    await node.stop();
  });

  test("a transaction that the only node cannot serve is missing after a while, and found later", async () => {
    const script = createScript(10);
    const block = script.block(undefined, [script.transaction("data"), script.transaction("data")]);
    const tip = growBranch(script, block, 2);
    const node = await openScriptedNode(tip);
    const [id] = idsOf(block);
    node.setFault((path) => (path === `/tx/${id}` ? { kind: "status", status: 500 } : undefined));
    let now = Date.now();
    const simulation = openSimulation({ seed: 10, nodes: [node], threads, clock: () => now });
    simulation.putAll(tip);
    await until(() => simulation.index.reader.tip()?.hash === tip.hash, "the tip is followed", simulation, 30_000);
    expect(simulation.index.reader.counts().missingTransactions).toBe(1);
    node.setFault(() => undefined);
    now += 3_600_000;
    await untilSettled(tip, simulation);
    await untilChecked(block.height, simulation);
    expectIndexToEqual(simulation.index.reader, tip);
    await simulation.close();
    await node.stop();
  });

  test("a restart goes on where it was, also in the middle", async () => {
    const script = createScript(11);
    const tip = growBranch(script, undefined, 60);
    await withNode(tip, {}, async (simulation) => {
      for (let height = 5; height < 55; height += 10) {
        await until(() => (simulation.index.reader.tip()?.height ?? -1) >= height, `block ${height}`, simulation);
        await simulation.restart();
      }
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
    });
  });

  test("a new block is seen at the next look, and what is settled costs one short request a look", async () => {
    const script = createScript(12);
    let tip = growBranch(script, undefined, 5);
    await withNode(tip, { times: { followMs: 2 ** 30 } }, async (simulation, node) => {
      await untilSettled(tip, simulation);
      await Bun.sleep(100); // time for the last requests of the settled index
      const before = new Map(node.requests());
      const asked = () =>
        [...node.requests()].filter(([path, count]) => count > (before.get(path) ?? 0)).map(([path]) => path);
      simulation.wake();
      await until(() => asked().length > 0, "the node was asked", simulation);
      await Bun.sleep(30); // time for a change, which must not happen
      expect(asked()).toEqual(["/info"]);
      tip = script.block(tip, [script.transaction("bundle")]);
      simulation.putAll(tip);
      node.setTip(tip);
      simulation.wake();
      await untilSettled(tip, simulation);
      expectIndexToEqual(simulation.index.reader, tip);
    });
  });
});

/** The last missing transaction of a block is followed by a check of the whole. */
function untilChecked(height: number, simulation: Simulation): Promise<void> {
  const isChecked = () => simulation.index.reader.blockText(height)?.checked.includes("transactions") === true;
  return until(isChecked, "the block is checked whole", simulation);
}

function expectedData(tip: ScriptedBlock) {
  const found: { id: ReturnType<typeof idsOf>[number]; data: Uint8Array }[] = [];
  for (let block: ScriptedBlock | undefined = tip; block !== undefined; block = block.parent)
    for (const { transaction, data } of block.transactions)
      if (transaction.format === 1 && data.length > 0) found.push({ id: transaction.id, data });
  return found;
}
