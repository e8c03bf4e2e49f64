/**
 * What the healthcheck says that the gateway is short of.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { createConcerns } from "../../src/gateway/health.ts";
import { silentLog } from "../../src/lib/log.ts";

const stats = { bytesMax: 0, damagedSteps: 0, lostFiles: 0, evictedRoots: 0, rejectedWrites: 0 };
const roomy = { hasSpace: () => true, stats: () => ({ ...stats, bytes: 1, freeBytes: 1 }) };
const idle = { load: () => ({ open: 3, threads: 1 }) };

function fixture() {
  let now = 1_000;
  const all = ["http://one.test", "http://two.test"].map((url) => openNode(url));
  const nodes = createNodes(all, { clock: () => now, random: () => 0, log: silentLog });
  const fail = (times: number) => {
    for (let time = 0; time < times; time++) for (const node of all) nodes.noteFault(node);
  };
  return { nodes, all, fail, pass: (ms: number) => (now += ms) };
}

describe("a gateway", () => {
  test("without problems reports no concern", () => {
    const { nodes } = fixture();
    expect(createConcerns({ nodes, extents: roomy, pools: { verify: idle } })()).toEqual([]);
  });

  test("whose nodes are silent reports them after repeated failures, and not while one of them responds", () => {
    const { nodes, all, fail, pass } = fixture();
    const concerns = createConcerns({ nodes, extents: roomy, pools: {} });
    fail(1);
    expect(concerns()).toEqual([]);
    fail(5);
    expect(concerns()).toEqual(["no node of the chain responds: http://one.test, http://two.test"]);
    const [one] = all;
    if (one === undefined) throw new Error("two nodes");
    pass(60_000);
    for (let time = 0; time < 6; time++) nodes.noteResponse(one, 10);
    expect(concerns()).toEqual([]);
  });

  test("reports how full its disk is, and which threads are overloaded", () => {
    const { nodes } = fixture();
    const full = { hasSpace: () => false, stats: () => ({ ...stats, bytes: 70, freeBytes: 5 }) };
    const busy = { load: () => ({ open: 600, threads: 2 }) };
    expect(createConcerns({ nodes, extents: full, pools: { verify: idle, query: busy } })()).toEqual([
      "the disk has no space for content, which takes 70 bytes; 5 are free",
      "600 jobs are open in the threads of query",
    ]);
  });
});
