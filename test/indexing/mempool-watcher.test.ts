/**
 * Pending rows over a mempool that the test states: which are removed after a restart or for a new chain, and the
 * memory of those that are requested.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Id } from "../../src/arweave/id.ts";
import type { Node } from "../../src/chain/node.ts";
import type { Nodes } from "../../src/chain/nodes.ts";
import { heldTransactionsMax, type Mempool, openMempool } from "../../src/indexing/mempool-watcher.ts";
import { utf8Bytes } from "../../src/lib/bytes.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import type { CheckTransactionsJob } from "../../workers/verify.ts";
import { idOf, ownerOf, pendingOf } from "../store/index/rows-of.ts";
import { createRandom } from "../support/random.ts";
import { eventually } from "../support/until.ts";
import { openDirectIndex } from "./direct-index.ts";
import { openFolder } from "./samples.ts";

/** The edges of one page of pending rows, which has 1,000, and more than two pages. */
const counts = [1_000, 1_001, 2_001];

let folder: ReturnType<typeof openFolder>;
let index: ReturnType<typeof openDirectIndex>;
let mempool: Mempool;
let listed: readonly Id[];
let now: number;

beforeEach(() => {
  folder = openFolder();
  index = openDirectIndex(join(folder.path, "index.sqlite"), () => now);
  listed = [];
  lacking = new Set();
  now = 1_700_000_000_000;
});
afterEach(async () => {
  await mempool.close();
  index.close();
  folder.remove();
});

/** Adds pending transactions as an earlier run left them, and some announced items. */
function addRows(count: number): readonly Id[] {
  const random = createRandom(1);
  const owner = ownerOf(random);
  const rows = Array.from({ length: count }, () => pendingOf(random, owner, { kind: "transaction" }));
  const items = Array.from({ length: 3 }, () => pendingOf(random, owner));
  index.writer.addPending([...rows, ...items]);
  return rows.map(({ id }) => id);
}

/** Requested transactions that are not verified yet, and the most of them so far. */
let unverified: number;
let unverifiedMax: number;

/** Ids whose transactions the node does not have, and the number of requests for each id. */
let lacking: Set<string>;
let requests: Map<string, number>;

/** Starts watching a node whose mempool is `listed`; none of its transactions is valid. */
function open(intervalMs = 5): Mempool {
  [unverified, unverifiedMax] = [0, 0];
  requests = new Map();
  const node = {
    pendingIds: async () => ({ kind: "ok", value: listed }),
    relay: async ({ path }: Readonly<{ path: string }>) => {
      const id = path.slice("/unconfirmed_tx/".length);
      requests.set(id, (requests.get(id) ?? 0) + 1);
      if (lacking.has(id)) return { kind: "ok", value: { status: 404, headers: new Headers(), body: utf8Bytes("") } };
      unverified += 1;
      unverifiedMax = Math.max(unverifiedMax, unverified);
      await Bun.sleep(1);
      return { kind: "ok", value: { status: 200, headers: new Headers(), body: utf8Bytes("{}") } };
    },
  } as unknown as Node;
  const nodes = {
    ask: async (call: (node: Node, signal: AbortSignal) => unknown, signal: AbortSignal) => await call(node, signal),
  } as unknown as Nodes;
  const pool = {
    run: async (_job: string, { transactions }: CheckTransactionsJob) => {
      unverified -= transactions.length;
      return transactions.map(() => ({ kind: "invalid", reason: "invalid" }));
    },
  } as never;
  mempool = openMempool({
    fetch: { nodes, pool, semaphore: createSemaphore(32, 1_000), random: () => 0.5, log: silentLog },
    index: index.calls,
    reader: index.reader,
    content: { keep: async () => true },
    intervalMs,
    goneGraceMs: 60_000,
    onPending: () => undefined,
    clock: () => now,
    random: () => 0.5,
    log: silentLog,
  });
  return mempool;
}

const pending = () => index.reader.counts().pendingTransactions;
const untilPending = (count: number) => eventually(pending, (found) => found === count, 10_000);
const untilRounds = async (rounds: number) => {
  for (let round = 0; round < rounds; round += 1) {
    const { lastSuccessAt } = mempool.status();
    now += 1;
    await eventually(
      () => mempool.status().lastSuccessAt,
      (at) => at !== lastSuccessAt,
    );
  }
};

describe("pending transactions of an earlier run", () => {
  test.each(counts)("that left the mempool are removed after the grace: %i rows", async (count) => {
    const ids = addRows(count);
    listed = ids.slice(-1);
    open();
    await untilRounds(2);
    now += 59_000;
    await untilRounds(2);
    expect(pending()).toBe(count);
    now += 1_000;
    await untilPending(1);
    await untilRounds(2);
    expect(ids.filter((id) => index.reader.placeOf(id) !== undefined)).toEqual([...listed]);
    expect(index.reader.counts().pendingItems).toBe(3);
  });

  test.each(counts)("are removed at once for a new chain: %i rows", async (count) => {
    const ids = addRows(count);
    open();
    const listedIds = new Set(ids.slice(-1));
    expect(await mempool.removeAllBut(listedIds)).toBe(count - 1);
    expect(ids.filter((id) => index.reader.placeOf(id) !== undefined)).toEqual([...listedIds]);
    expect(index.reader.counts().pendingItems).toBe(3);
  });
});

test("a mempool of large transactions takes the memory of a few: they are verified before others are requested", async () => {
  const random = createRandom(2);
  listed = Array.from({ length: 10 * heldTransactionsMax + 1 }, () => idOf(random));
  open();
  await untilRounds(2);
  expect(unverified).toBe(0);
  expect(unverifiedMax).toBe(heldTransactionsMax);
});

describe("transactions that a node lists and does not have", () => {
  test.each([199, 200, 201, 450])(
    "are requested at most once a round, and hide no others: %i of them",
    async (count) => {
      const random = createRandom(3);
      const absent = Array.from({ length: count }, () => idOf(random));
      const last = idOf(random);
      listed = [...absent, last];
      lacking = new Set(absent);
      open(60_000);
      await eventually(
        () => requests.get(last),
        (found) => found === 1,
        5_000,
      );
      await Bun.sleep(200); // time for more requests, which must not happen
      const rounds = Math.ceil(listed.length / 200);
      expect(Math.max(...requests.values())).toBeLessThanOrEqual(rounds);
      expect(requests.size).toBe(count + 1);
    },
  );

  test("are found in a later round, whatever their number", async () => {
    const random = createRandom(4);
    listed = Array.from({ length: 450 }, () => idOf(random));
    lacking = new Set(listed);
    open();
    await eventually(
      () => requests.size,
      (size) => size === listed.length,
      5_000,
    );
    lacking.clear();
    const before = new Map(requests);
    await eventually(
      () => listed.filter((id) => requests.get(id) === before.get(id)),
      (unasked) => unasked.length === 0,
      10_000,
    );
  });
});
