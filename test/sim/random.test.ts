/**
 * Chains that grow, fork, shrink and switch back, from nodes that fail in every way, with restarts in
 * between, all by seed. When the faults end, the index equals the chain.
 *
 * A seed that ever failed stays in the list; SEED runs one alone.
 * @module
 */
import { afterAll, describe, test } from "bun:test";
import { createRandom } from "../support/random.ts";
import { seedsOr } from "../support/seed.ts";
import { expectIndexToEqual } from "./expected.ts";
import { openSimulation, openThreads, untilSettled } from "./harness.ts";
import { ancestorAt, createScript, growBranch, type ScriptedBlock } from "./scripted-chain.ts";
import { type Fault, openScriptedNode } from "./scripted-node.ts";

const seeds = seedsOr([101, 102, 104, 105]);

const threads = openThreads();
afterAll(threads.close);

const faults: readonly ((chance: number) => Fault)[] = [
  () => ({ kind: "status", status: 500 }),
  () => ({ kind: "status", status: 503, body: '{"error":"timeout"}' }),
  () => ({ kind: "status", status: 429, body: "Too Many Requests" }),
  () => ({ kind: "status", status: 404, body: "Not Found." }),
  () => ({ kind: "status", status: 202, body: "Pending" }),
  () => ({ kind: "status", status: 410, body: "tx_too_cheap" }),
  (chance) => ({ kind: "delay", ms: chance * 30 }),
  () => ({ kind: "truncate" }),
  () => ({ kind: "cut" }),
  (chance) => ({ kind: "spoil", at: Math.floor(chance * 100_000) }),
];

async function run(seed: number): Promise<void> {
  const script = createScript(seed);
  const random = createRandom(seed * 7919).next;
  const upTo = (most: number) => Math.floor(random() * (most + 1));
  let skewMs = 0;
  let tip = growBranch(script, undefined, 5 + upTo(20));
  const nodes = [await openScriptedNode(tip), ...(random() < 0.5 ? [await openScriptedNode(tip)] : [])];
  const simulation = openSimulation({ seed, nodes, threads, clock: () => Date.now() + skewMs });
  simulation.putAll(tip);

  const setTip = (block: ScriptedBlock) => {
    tip = block;
    // Data of the last blocks often comes late: with the next change.
    simulation.putAll(random() < 0.5 ? tip : ancestorAt(tip, Math.max(0, tip.height - 3)));
    for (const node of nodes) if (random() < 0.9) node.setTip(tip);
  };
  const changes: readonly (() => void | Promise<void>)[] = [
    () => setTip(growBranch(script, tip, 1 + upTo(5))),
    () => setTip(growBranch(script, tip, 1 + upTo(5))),
    () => setTip(growBranch(script, ancestorAt(tip, Math.max(0, tip.height - upTo(4))), 1 + upTo(5))),
    () => setTip(growBranch(script, ancestorAt(tip, Math.max(0, tip.height - upTo(60))), 1 + upTo(40))),
    () => setTip(ancestorAt(tip, Math.max(0, tip.height - upTo(3)))),
    () => simulation.restart(),
    () => {
      const rate = random() * 0.3;
      for (const node of nodes)
        node.setFault(() => (random() < rate ? faults[upTo(faults.length - 1)]?.(random()) : undefined));
    },
    () => {
      for (const node of nodes) node.setFault(() => undefined);
    },
    () => {
      for (const { transaction } of ancestorAt(tip, upTo(tip.height)).transactions)
        nodes[0]?.missing.add(transaction.id);
    },
  ];
  for (let change = 0; change < 25; change += 1) {
    await changes[upTo(changes.length - 1)]?.();
    await Bun.sleep(random() * 60);
  }

  for (const node of nodes) {
    node.setFault(() => undefined);
    node.missing.clear();
    node.setTip(tip);
  }
  simulation.putAll(tip);
  const hours = setInterval(() => {
    skewMs += 3_600_000;
  }, 20);
  await untilSettled(tip, simulation, 30_000).finally(() => clearInterval(hours));
  await untilLaidOut(tip, simulation);
  expectIndexToEqual(simulation.index.reader, tip);
  await simulation.close();
  for (const node of nodes) await node.stop();
}

/** The check of a whole block follows a moment after its last missing transaction. */
async function untilLaidOut(tip: ScriptedBlock, simulation: ReturnType<typeof openSimulation>): Promise<void> {
  for (let block: ScriptedBlock | undefined = tip; block !== undefined; block = block.parent)
    for (let waited = 0; waited < 200; waited += 1) {
      if (simulation.index.reader.blockText(block.height)?.checked.includes("transactions")) break;
      await Bun.sleep(5);
    }
}

describe("whatever happens", () => {
  test.each(seeds)(
    "the index equals the chain in the end (seed %p)",
    async (seed) => {
      await run(seed);
    },
    120_000,
  );
});
