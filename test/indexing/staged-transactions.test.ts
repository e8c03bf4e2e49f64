/**
 * Transactions that an operator requested, looked for on a development chain through nodes that tell the truth, respond falsely, or
 * know nothing: indexed once they are proven, wherever the follower is.
 * @module
 */
import { deserialize } from "bun:jsc";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { readBlock } from "../../src/arweave/block.ts";
import { writeBundle } from "../../src/arweave/bundle.ts";
import type { Id } from "../../src/arweave/id.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { bytesUnderWay } from "../../src/indexing/fetch-block.ts";
import { openMissing } from "../../src/indexing/missing.ts";
import { openStagedSearch } from "../../src/indexing/staged-transactions.ts";
import { createByteBudget } from "../../src/lib/byte-budget.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import { openAdministration } from "../../src/store/administration-database.ts";
import type { BlockRows, TransactionRow } from "../../src/store/index/index-types.ts";
import { openPool } from "../../src/threads/pool.ts";
import { checkBlock } from "../../workers/verify.ts";
import { openTestDevnet, post, rsa, serve, type TestNode, testBytes } from "../dev/devnet/support.ts";
import { idOf } from "../support/memory-content.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";
import { openDirectIndex } from "./direct-index.ts";
import { bundleTags, makeItem, openFolder } from "./samples.ts";

const verify = openPool({ entry: "verify", threads: 1, queueMax: 100, timeoutMs: 60_000, idleMs: 60_000 });
let devnet: Devnet;
let node: TestNode;
let plain: Transaction;
let bundle: Transaction;
let old: Transaction;
const oldData = Uint8Array.from([...testBytes(3_000, 8), 0xff]);

/** Blocks 1 to 3 have something, 40 more are on top. */
beforeAll(async () => {
  devnet = await openTestDevnet();
  node = serve(devnet);
  plain = await post(devnet, rsa, { data: testBytes(100) });
  await post(devnet, rsa, { data: testBytes(101) });
  await devnet.mine(1);
  bundle = await post(devnet, rsa, { data: writeBundle([makeItem("an item")]), tags: [...bundleTags] });
  await devnet.mine(1);
  old = await post(devnet, rsa, { format: 1, data: oldData });
  await devnet.mine(41);
}, 120_000);
afterAll(async () => {
  await verify.close();
  await node.close();
  devnet.close();
});

/** What a node between us and the chain does to a response. */
type Spoil = (path: string, text: string) => string | Response;

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

/** A search over nodes; each passes on what the chain's node says, changed. */
function openSearch(spoils: readonly Spoil[] = [(_path, text) => text]) {
  const folder = openFolder();
  const time = { now: 1_700_000_000_000 };
  const clock = () => time.now;
  const { log, lines } = createRecordingLog(clock);
  const servers = spoils.map((spoil) =>
    Bun.serve({
      port: 0,
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        const response = await fetch(`http://127.0.0.1:${node.port}${pathname}`);
        const text = await response.text();
        const spoiled = spoil(pathname, text);
        return spoiled instanceof Response ? spoiled : new Response(spoiled, { status: response.status });
      },
    }),
  );
  const nodes = createNodes(
    servers.map(({ port }) => openNode(`http://127.0.0.1:${port}`)),
    { clock, random: () => 0.5, log },
  );
  const index = openDirectIndex(join(folder.path, "index.sqlite"), clock);
  const { staged, close: closeFile } = openAdministration(join(folder.path, "administration.sqlite"), clock);
  const found: [Id, boolean, boolean][] = [];
  const stored = new Map<Id, Uint8Array>();
  const search = openStagedSearch({
    staged,
    nodes,
    verify,
    index: index.calls,
    reader: index.reader,
    content: {
      keep: async ({ id }, bytes) => {
        stored.set(id, new Uint8Array(bytes));
        return true;
      },
    },
    onFound: (id, outcome) => found.push([id, outcome.hasBundle, outcome.isNew]),
    clock,
    random: () => 0.5,
    log,
  });
  opened.push(async () => {
    await search.close();
    nodes.close();
    index.close();
    closeFile();
    for (const server of servers) await server.stop(true);
    folder.remove();
  });
  /** Asks for an id, and waits until it was looked for. */
  const ask = async (id: Id, options = { isBundle: false, bypassFilter: false }) => {
    staged.add({ id, ...options });
    await tryAgain(id, 0);
  };
  const tryAgain = async (id: Id, attempts: number) => {
    search.wake();
    const isTried = () => (staged.find(id)?.attempts ?? attempts + 1) > attempts;
    await until(isTried, () => `the search ends: ${JSON.stringify(lines.slice(-5))}`);
  };
  return { ...index, staged, search, ask, tryAgain, found, stored, time, clock, log, lines, nodes };
}

function blockText(height: number): string {
  return devnet.blockAt(height)?.text ?? "";
}

/** The rows of a block of the chain, as the follower makes them. */
async function rowsOf(height: number, without: readonly Id[] = []): Promise<BlockRows> {
  const text = blockText(height);
  const texts = await Promise.all(
    readBlock(text).txs.map(async (id) =>
      without.includes(id) ? null : new Uint8Array(await (await node.get(`/tx/${id}`)).arrayBuffer()),
    ),
  );
  const job = { block: text, transactions: texts, previous: undefined, isMainNet: false };
  const response = checkBlock(job);
  if (response.kind !== "accepted") throw new Error(JSON.stringify(response));
  return deserialize(response.rows);
}

describe("a requested transaction", () => {
  test("is found below everything that is followed, with its block and nothing else of it", async () => {
    const { ask, reader, staged, found } = openSearch();
    await ask(plain.id);
    expect(staged.count()).toBe(0);
    expect(found).toEqual([[plain.id, false, true]]);
    expect(reader.placeOf(plain.id)).toMatchObject({ height: 1, offset: -1 });
    expect(reader.transactionsOfBlock(1).map(({ id }) => id)).toEqual([plain.id]);
    expect(reader.blockText(1)?.text).toBe(blockText(1));
    expect([reader.tip(), reader.counts().missingTransactions]).toEqual([undefined, 0]);
  });

  test("joins others of the same block, and the follower's rows when it comes there", async () => {
    const { ask, reader, writer } = openSearch();
    const ids = readBlock(blockText(1)).txs;
    for (const id of ids) await ask(id);
    expect(reader.transactionsOfBlock(1).map(({ id }) => id)).toEqual([...ids]);
    for (const height of [0, 1, 2]) writer.addBlock(await rowsOf(height));
    expect(reader.tip()?.height).toBe(2);
    expect(reader.counts()).toMatchObject({ blocks: 3, duplicates: 0 });
    expect(reader.transactionStatus(plain.id)?.confirmations).toBe(2);
  });

  test("is stored with its data when it carries it", async () => {
    const { ask, reader, stored } = openSearch();
    await ask(old.id);
    expect(reader.locate(old.id)).toMatchObject({ kind: "transaction", size: oldData.length });
    expect(Buffer.compare(stored.get(old.id) ?? new Uint8Array(0), oldData)).toBe(0);
  });

  test.each([
    [{ isBundle: false, bypassFilter: false }, false],
    [{ isBundle: true, bypassFilter: true }, true],
    [{ isBundle: true, bypassFilter: false }, false],
  ])("whose tags say that it is a bundle is queued; with %p past the filters: %p", async (options, bypassFilter) => {
    const { ask, found, writer } = openSearch();
    await ask(bundle.id, options);
    expect(found).toEqual([[bundle.id, true, true]]);
    expect(writer.takeBundle()).toMatchObject({ id: bundle.id, depth: 0, bypassFilter });
  });

  test("is queued as a bundle when the operator says so, whatever its tags say", async () => {
    const { ask, found, writer } = openSearch();
    await ask(plain.id, { isBundle: true, bypassFilter: true });
    expect(found).toEqual([[plain.id, true, true]]);
    expect(writer.takeBundle()).toMatchObject({ id: plain.id, bypassFilter: true, size: 100 });
  });

  test("fills the gap of a block that was followed without it, with the places of the block's data", async () => {
    const { ask, tryAgain, found, reader, writer, calls, nodes, time, clock, log } = openSearch();
    const whole = await rowsOf(1);
    writer.addBlock(await rowsOf(0));
    writer.addBlock(await rowsOf(1, [plain.id]));
    const place = { height: 1, txIndex: whole.transactions.findIndex(({ id }) => id === plain.id), offset: -1 };
    writer.postponeMissing(place, plain.id, time.now + 3_600_000);
    const checked = () => reader.blockText(1)?.checked ?? [];
    expect([reader.counts().missingTransactions, reader.weaveSpan(plain.id)]).toEqual([1, undefined]);
    await ask(plain.id, { isBundle: true, bypassFilter: true });
    const fetch = {
      ...{ nodes, pool: verify, log, random: () => 0.5 },
      ...{ bytes: createByteBudget(bytesUnderWay), semaphore: createSemaphore(8, 100) },
    };
    const parts = { fetch, index: calls, reader, content: { keep: async () => true }, clock, log, random: () => 0.5 };
    const missing = openMissing({ ...parts, intervalMs: 10, onFound: () => undefined });
    await until(
      () => reader.counts().missingTransactions === 0,
      () => "the search for missing transactions finds it",
    );
    await missing.close();
    const spanOf = ({ id, weaveStart: start, weaveEnd: end }: TransactionRow) => ({ id, start, end });
    expect(whole.transactions.every(({ weaveStart }) => weaveStart !== undefined)).toBe(true);
    expect(whole.transactions.map(({ id }) => reader.weaveSpan(id))).toMatchObject(whole.transactions.map(spanOf));
    expect(checked()).toEqual(expect.arrayContaining([...whole.block.checked]));
    time.now += 60_000;
    await tryAgain(plain.id, 1);
    // The search for missing transactions has reported it as new.
    expect(found).toEqual([[plain.id, true, false]]);
    expect(writer.takeBundle()).toMatchObject({ id: plain.id, bypassFilter: true });
  });

  test("is not looked for when the index has it by then", async () => {
    const { ask, found, writer, staged } = openSearch([() => new Response("", { status: 500 })]);
    for (const height of [0, 1, 2]) writer.addBlock(await rowsOf(height));
    const options = { isBundle: true, bypassFilter: true };
    await ask(bundle.id, options);
    expect([found, staged.count()]).toEqual([[[bundle.id, true, false]], 0]);
    expect(writer.takeBundle()).toMatchObject({ id: bundle.id, bypassFilter: true });
  });
});

test("a transaction that was written when the program ended is reported again, and then taken out", async () => {
  const { ask, found, staged, writer } = openSearch();
  await ask(plain.id);
  // As if the process had ended before the request was taken out.
  staged.add({ id: plain.id, isBundle: false, bypassFilter: false });
  staged.found(plain.id);
  await ask(plain.id);
  expect([found, staged.count()]).toEqual([
    [
      [plain.id, false, true],
      [plain.id, false, true],
    ],
    0,
  ]);
  expect(writer.takeBundle()).toBeUndefined();
});

describe("a transaction that cannot be had", () => {
  test("waits to be mined, and then for the follower, as long as its block may be forked away", async () => {
    const { ask, tryAgain, staged, found, time, writer, reader } = openSearch();
    const waiting = await post(devnet, rsa, { data: testBytes(77) });
    await ask(waiting.id);
    expect(staged.find(waiting.id)).toMatchObject({ attempts: 1, reason: "pending" });
    await devnet.mine(1);
    const height = devnet.height();
    time.now += 60_000;
    await tryAgain(waiting.id, 1);
    expect(staged.find(waiting.id)).toMatchObject({
      attempts: 2,
      reason: `block ${height} has not been followed yet`,
    });
    await devnet.mine(20);
    time.now += 60_000;
    await tryAgain(waiting.id, 2);
    expect([staged.count(), found]).toEqual([0, [[waiting.id, false, true]]]);
    // Above the tip it is here, and is not a valid part of the chain that was followed.
    for (const each of [0, 1]) writer.addBlock(await rowsOf(each));
    expect(reader.locate(waiting.id)).toBeDefined();
    expect(reader.transactionStatus(waiting.id)).toBeUndefined();
  });

  test("is requested at growing intervals, and dropped after two days", async () => {
    const { ask, tryAgain, staged, time, lines } = openSearch();
    const id = idOf("no client has it");
    await ask(id);
    const waits: number[] = [];
    for (let attempts = 1; attempts < 6; attempts++) {
      expect(staged.find(id)).toMatchObject({ attempts, reason: "absent" });
      const dueAt = staged.nextDueAt() ?? 0;
      waits.push(dueAt - time.now);
      time.now = dueAt;
      await tryAgain(id, attempts);
    }
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits.at(-1)).toBeGreaterThan(4 * (waits[0] ?? 0));
    time.now += 49 * 60 * 60_000;
    await tryAgain(id, 6);
    expect(staged.count()).toBe(0);
    expect(lines.at(-1)).toMatchObject({ message: "staged transaction dropped", id });
  });

  const falsehoods: readonly (readonly [string, Spoil, RegExp])[] = [
    [
      "another transaction",
      (path, text) => (path === `/tx/${plain.id}` ? bundle.text : text),
      /id is not the requested one/,
    ],
    [
      "a transaction with a changed fee",
      (path, text) => (path === `/tx/${plain.id}` ? text.replace(/"reward":"\d/, '"reward":"9') : text),
      /signature/,
    ],
    [
      "another block of that height",
      (path, text) => (path === "/block/height/1" ? blockText(2) : text),
      /another block is at the height/,
    ],
    [
      "a block with another hash",
      (path, text) => (path === "/block/height/1" ? text.replace(/"timestamp":\d/, '"timestamp":9') : text),
      /hash/,
    ],
    [
      "a height at which it is not",
      (path, text) =>
        path === `/tx/${plain.id}/status`
          ? JSON.stringify({
              ...JSON.parse(text),
              block_height: 2,
              block_indep_hash: readBlock(blockText(2)).hash,
            })
          : text,
      /does not name the transaction/,
    ],
  ];

  test.each(falsehoods)(
    "from a node that gives %s is not believed, and the node is not trusted",
    async (_name, spoil, reason) => {
      const { ask, staged, found, reader, lines } = openSearch([spoil]);
      await ask(plain.id);
      expect(found).toEqual([]);
      expect(staged.find(plain.id)?.reason).toMatch(reason);
      expect(reader.placeOf(plain.id)).toBeUndefined();
      expect(lines.map(({ message }) => message)).toContain("a node said what is not true");
    },
  );

  test("from one node is found at another", async () => {
    const missing: Spoil = (path, text) =>
      path.startsWith(`/tx/${plain.id}`) ? new Response("Not Found.", { status: 404 }) : text;
    const { ask, found } = openSearch([missing, (_path, text) => text]);
    await ask(plain.id);
    expect(found).toEqual([[plain.id, false, true]]);
  });

  test("from one node, whose status is false, is not blamed on the node that has the block", async () => {
    const [, falsehood] = falsehoods.at(-1) ?? [];
    const wrongStatus: Spoil = (path, text) =>
      path.startsWith("/block/")
        ? new Response("Block not found.", { status: 404 })
        : (falsehood?.(path, text) ?? text);
    const { ask, staged, nodes } = openSearch([wrongStatus, (_path, text) => text]);
    await ask(plain.id);
    expect(staged.find(plain.id)?.reason).toMatch(/does not name the transaction/);
    expect(nodes.sourceStatus().map(({ wrongs }) => wrongs)).toEqual([1, 0]);
  });

  test("because the index has another block there waits", async () => {
    const { ask, staged, writer } = openSearch();
    const [zero, one] = [await rowsOf(0), await rowsOf(1)];
    const other = await rowsOf(2);
    writer.addBlock(zero);
    writer.addBlock({ ...other, block: { ...other.block, height: 1 }, transactions: [], bundles: [] });
    await ask(plain.id);
    expect(one.block.hash).not.toBe(other.block.hash);
    expect(staged.find(plain.id)?.reason).toBe("the index has another block at height 1");
  });
});
