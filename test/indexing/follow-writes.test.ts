/**
 * While it catches up, the follower stores blocks that have arrived in one write, in order and linked.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Block } from "../../src/arweave/block.ts";
import type { Node } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { makeBlock } from "../../src/dev/devnet/block-making.ts";
import { minerWallet } from "../../src/dev/devnet/wallets.ts";
import { bytesUnderWay } from "../../src/indexing/fetch-block.ts";
import { openFollower } from "../../src/indexing/follow.ts";
import { createChainChoice } from "../../src/indexing/heaviest-chain.ts";
import { createByteBudget } from "../../src/lib/byte-budget.ts";
import { fault } from "../../src/lib/http-client.ts";
import { writeJson } from "../../src/lib/json.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import type { Pool, Workers } from "../../src/threads/pool.ts";
import { checkBlock, checkHeaders } from "../../workers/verify.ts";
import { createRandom } from "../support/random.ts";
import { eventually } from "../support/until.ts";
import { openDirectIndex } from "./direct-index.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-writes-"));
afterAll(() => removeFolder(folder));
const miner = minerWallet("writes");

function chainOf(seed: string, length: number): readonly Block[] {
  const blocks: Block[] = [];
  for (let height = 0; height < length; height += 1)
    blocks.push(
      makeBlock(
        {
          previous: blocks.at(-1),
          timestamp: 1_700_000_000 + height * 120,
          txs: [],
          txRoot: new Uint8Array(0),
          size: 0n,
          accountsRoot: new Uint8Array(32),
          endowment: 0n,
          reward: 0n,
          recall: undefined,
        },
        miner,
        seed,
      ),
    );
  return blocks;
}

const length = 60;
const chain = chainOf("writes", length);
const other = chainOf("other", length);

/** A node with these blocks. */
function nodeOf(url: string, blocks: readonly Pick<Block, "hash" | "fields">[]): Node {
  const ok = <Value>(value: Value) => ({ kind: "ok", value }) as const;
  return {
    url,
    info: async () => ok(JSON.stringify({ height: length - 1, current: blocks.at(-1)?.hash })),
    height: async () => fault("connect", "closed"),
    blockText: async (at: number) => ok(writeJson(blocks[at]?.fields ?? {})),
    close: () => undefined,
  } as unknown as Node;
}

/** Follows nodes, with writes that take longer than fetches. */
async function follow(name: string, all: readonly Node[], tip: number) {
  const jobs = { checkBlock, checkHeaders } as const;
  const pool = {
    run: async (job: keyof typeof jobs, question: never) => jobs[job](question),
  } as unknown as Pool<Workers["verify"]>;
  const clock = () => 1_700_000_000_000;
  const random = createRandom(1).next;
  const nodes = createNodes(all, { clock, random, log: silentLog });
  const index = openDirectIndex(join(folder, `${name}.sqlite`), clock);
  const parts = { nodes, reader: index.reader, pool, clock, random, log: silentLog };
  const writes: number[] = [];
  const heights: number[] = [];
  const follower = openFollower({
    ...parts,
    choice: createChainChoice(parts),
    fetch: { ...parts, bytes: createByteBudget(bytesUnderWay), semaphore: createSemaphore(8, 100) },
    index: {
      ...index.calls,
      addBlocks: async (given) => {
        await Bun.sleep(1);
        writes.push(given.length);
        await index.calls.addBlocks(given);
      },
    },
    content: { keep: async () => true },
    start: 0,
    stop: undefined,
    intervalMs: 1,
    retryMs: 1,
    shrinkGraceMs: 10_000_000_000,
    onBlock: ({ height }) => heights.push(height),
    beforeRollback: async () => undefined,
    onRollback: () => undefined,
  });
  try {
    await eventually(
      () => index.reader.tip()?.height,
      (height) => height === tip,
      20_000,
      () => Bun.inspect([writes, follower.status()]),
    );
    expect(heights).toEqual(Array.from({ length: tip + 1 }, (_, height) => height));
    expect(index.reader.tip()?.hash).toBe(chain[tip]?.hash);
    return { writes, failures: follower.status().failures, sources: nodes.sourceStatus() };
  } finally {
    await follower.close();
    index.close();
  }
}

test("blocks that arrive during a write are stored in the next one together, and announced in order", async () => {
  const { writes } = await follow("whole", [nodeOf("http://node", chain)], length - 1);
  expect(writes.reduce((sum, count) => sum + count, 0)).toBe(length);
  expect(writes.length).toBeLessThan(length);
  expect(Math.max(...writes)).toBeLessThanOrEqual(16);
});

test("the blocks before one that does not follow them are stored, and none from there on", async () => {
  await follow("torn", [nodeOf("http://node", [...chain.slice(0, 30), ...other.slice(30)])], 29);
});

test("a node is not blamed for the blocks after those that another node has altered", async () => {
  const altered = chain.map(({ hash, fields }) => ({ hash, fields: { ...fields, weave_size: "1" } }));
  const { sources } = await follow("altered", [nodeOf("http://altered", altered), nodeOf("http://honest", chain)], 59);
  const wrongs = new Map(sources.map(({ url, wrongs }) => [url, wrongs]));
  expect(wrongs.get("http://altered")).toBeGreaterThan(0);
  expect(wrongs.get("http://honest")).toBe(0);
});

test("a write of several blocks stores all of them or none", async () => {
  const index = openDirectIndex(join(folder, "none.sqlite"), () => 1_700_000_000_000);
  try {
    const checked = [0, 1, 3].map((height) =>
      checkBlock({
        block: writeJson(chain[height]?.fields ?? {}),
        transactions: [],
        previous: undefined,
        isMainNet: false,
      }),
    );
    const rows = checked.flatMap((each) => (each.kind === "accepted" ? [each.rows] : []));
    expect(rows.length).toBe(3);
    await expect(index.calls.addBlocks(rows)).rejects.toThrow("the height of a block is the tip's plus 1");
    expect(index.reader.tip()).toBeUndefined();
  } finally {
    index.close();
  }
});
