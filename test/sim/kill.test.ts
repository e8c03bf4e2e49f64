/**
 * A process that is killed at any moment, again and again, while the chain goes on: the next one goes on
 * without a hand being laid on it, and in the end no row is lost and none is there twice.
 *
 * KILLS sets how many, at most 50 for each seed; SEED runs one seed alone.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { openWhole, untilWhole } from "../indexing/indexing-fixture.ts";
import { openFolder } from "../indexing/samples.ts";
import { createRandom } from "../support/random.ts";
import { seedsOr } from "../support/seed.ts";
import { expectIndexToEqual } from "./expected.ts";
import { ancestorAt, chainTo, createScript, growBranch, type ScriptedBlock } from "./scripted-chain.ts";
import { openScriptedNode } from "./scripted-node.ts";

const kills = Number(process.env["KILLS"] ?? 8);
const killsOfSeed = Math.min(kills, 50);
const seeds = seedsOr(Array.from({ length: Math.ceil(kills / killsOfSeed) }, (_, index) => index + 1));
const none = new AbortController().signal;

async function begin(folder: string, url: string) {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "kill-child.ts"), folder, url], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { done } = await child.stdout.getReader().read();
  if (done) throw new Error(`the process ended by itself: ${await child.exited}`);
  return child;
}

async function run(seed: number): Promise<void> {
  const script = createScript(seed);
  const random = createRandom(seed * 31).next;
  const folder = openFolder();
  let tip: ScriptedBlock = growBranch(script, undefined, 30);
  const node = await openScriptedNode(tip);
  for (let killed = 0; killed < killsOfSeed; killed += 1) {
    const child = await begin(folder.path, node.url);
    await Bun.sleep(random() * 250);
    const depth = random() < 0.5 ? Math.floor(random() * 12) : 0;
    tip = growBranch(script, ancestorAt(tip, Math.max(0, tip.height - depth)), 3 + Math.floor(random() * 10));
    node.setTip(tip);
    await Bun.sleep(random() * 250);
    child.kill("SIGKILL");
    await child.exited;
  }
  const whole = await openWhole({ folder: folder.path, nodeUrls: [node.url] });
  const isSettled = () => {
    const { bundlesQueued, bundlesFailed, missingTransactions } = whole.reader.counts();
    const isDone = bundlesQueued === 0 && bundlesFailed === 0 && missingTransactions === 0;
    return isDone && whole.reader.tip()?.hash === tip.hash;
  };
  await untilWhole(`seed ${seed} settles`, isSettled, whole);
  expectIndexToEqual(whole.reader, tip);
  for (const { transactions } of chainTo(tip).slice(-10))
    for (const { transaction, data } of transactions) {
      const open = await whole.content.open(transaction.id, none);
      if (data.length > 0) expect(Buffer.compare(await open.bytes({ start: 0, end: data.length }, none), data)).toBe(0);
    }
  await whole.close();
  await node.stop();
  folder.remove();
}

describe("N2: kill -9", () => {
  test.each(seeds)(
    "loses nothing and doubles nothing (seed %p)",
    async (seed) => {
      await run(seed);
    },
    90_000 + killsOfSeed * 4_000,
  );
});
