/**
 * Following a chain that forks, from nodes that fail: whatever happens on the way, the index ends equal to the chain.
 *
 * Every run follows from a seed, which is printed; a seed that ever failed belongs into the list.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { expectIndexToEqual } from "./expected.ts";
import { openSimulation, openThreads, until, untilSettled } from "./harness.ts";
import { ancestorAt, createScript, growBranch, idsOf } from "./scripted-chain.ts";
import { type Fault, openScriptedNode } from "./scripted-node.ts";

const threads = openThreads();
afterAll(threads.close);

describe("following", () => {
  test("a chain becomes its rows, nested items and all", async () => {
    const script = createScript(1);
    const tip = growBranch(script, undefined, 30);
    const node = openScriptedNode(tip);
    const simulation = openSimulation({ seed: 1, nodes: [node], threads });
    simulation.putAll(tip);
    await untilSettled(tip, simulation);
    expectIndexToEqual(simulation.index.reader, tip);
    for (const { transactions } of [tip, ancestorAt(tip, 10)])
      for (const { transaction, data } of transactions)
        if (transaction.format === 1 && data.length > 0)
          expect(Buffer.compare(simulation.data.kept.get(transaction.id) ?? new Uint8Array(0), data)).toBe(0);
    await simulation.close();
    await node.stop();
  });
});
