/**
 * From a signed transaction to a permanent bundle: what nodes reject, forget and take back, and that nothing is on the
 * chain twice for it.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readPostedChunk } from "../../../src/arweave/chunk.ts";
import type { Transaction } from "../../../src/arweave/transaction.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { type Bundle, nextBundles } from "../../../src/upload/pipeline/bundle-rows.ts";
import { failPermanent } from "../../../src/upload/pipeline/prepare-bundle.ts";
import { findUpload, itemsOfBundle } from "../../../src/upload/upload-rows.ts";
import { until } from "../../support/until.ts";
import { type BundleFixture, openBundleFixture, type SignedItem, storeName } from "./bundle-fixture.ts";
import { createFakeChain, type FakeChain, type PostFault } from "./fake-chain.ts";

let fixture: BundleFixture;
let chain: FakeChain;
beforeEach(async () => {
  fixture = await openBundleFixture();
  chain = createFakeChain(100);
});
afterEach(() => fixture.close());

const every = ["filling", "planned", "prepared", "posted", "seeded"] as const;
const unfinished = (states: readonly Bundle["state"][] = every) =>
  fixture.database.read((tx) => nextBundles(tx, { store: storeName, states, limit: 100 }));

/** Mines a block every few milliseconds until all is permanent. */
async function minedUntilPermanent(items: number): Promise<void> {
  await until(async () => {
    chain.mine();
    return fixture.ended.permanent === items;
  }, `${items} items are permanent`);
}

/** Every item is on the chain once, with its bytes. */
function expectOnceEach(items: readonly SignedItem[]): void {
  const carried = chain.mined().flatMap((transaction) => {
    const data = chain.dataOf(transaction);
    return data === undefined ? [] : items.filter(({ bytes }) => Buffer.from(data).includes(bytes));
  });
  expect(carried.map(({ id }) => id).sort()).toEqual(items.map(({ id }) => id).sort());
}

async function taken(sizes: readonly number[]): Promise<SignedItem[]> {
  const items = fixture.sign(sizes);
  await fixture.take(items);
  return items;
}

describe("a transaction", () => {
  test("that nodes accept needs one post, and its unneeded files are reported", async () => {
    const items = await taken([10, 300_000]);
    fixture.start(chain);
    await minedUntilPermanent(2);
    expect(chain.posts.tx).toBe(1);
    expect(chain.posts.chunk).toBe(2);
    expectOnceEach(items);
    const [mined] = chain.mined();
    for (const { id } of items)
      expect(await fixture.database.read((tx) => findUpload(tx, id))).toMatchObject({
        state: "permanent",
        place: { transactionId: mined?.id ?? "" },
      });
    expect(chain.forgotten.toSorted()).toEqual(items.map(({ id }) => id).sort());
    expect(fixture.left.filter((file) => file.startsWith("bundles/"))).toHaveLength(1);
    expect(fixture.left.filter((file) => file.startsWith("segments/"))).toHaveLength(1);
    expect(chain.wanted).toEqual([mined?.id ?? ""]);
  });

  test("that every node rejects at once is signed again: no node has the first", async () => {
    const items = await taken([10]);
    const rejections: string[] = [];
    chain.fixture.faults = {
      tx: ({ id }): PostFault => {
        if (rejections.length > 0) return undefined;
        rejections.push(id);
        return { kind: "rejected", reason: "400 tx_too_cheap", word: "", isByAll: true };
      },
    };
    const pipeline = fixture.start(chain);
    await minedUntilPermanent(1);
    expect(chain.mined().map(({ id }) => id)).not.toContain(rejections[0] ?? "");
    expectOnceEach(items);
    expect(pipeline.reasons()).toEqual([]);
  });

  test("that every node rejects with a NUL in its text is signed again, and an operator sees the rest of the text", async () => {
    const items = await taken([10]);
    let rejections = 0;
    chain.fixture.faults = {
      tx: (): PostFault => {
        rejections += 1;
        return rejections > 2
          ? undefined
          : { kind: "rejected", reason: "400 too\0cheap", word: "", isByAll: rejections > 1 };
      },
    };
    fixture.start(chain);
    await minedUntilPermanent(1);
    expectOnceEach(items);
    expect(fixture.lines.filter(({ message }) => message === "a retry of a bundle could not be scheduled")).toEqual([]);
  });

  test("that one node rejects while another is silent stays the one: the silent one may have it", async () => {
    const items = await taken([10]);
    const posted = new Set<string>();
    let rejections = 0;
    chain.fixture.faults = {
      tx: ({ id }): PostFault => {
        posted.add(id);
        rejections += 1;
        if (rejections > 3) return undefined;
        return { kind: "rejected", reason: "400 Invalid anchor", word: "", isByAll: false };
      },
    };
    fixture.start(chain);
    await until(() => chain.waiting().length === 1, "it is taken");
    await minedUntilPermanent(1);
    expect(posted.size).toBe(1);
    expectOnceEach(items);
  });

  test("that was sent before the program ended, and is rejected afterwards, stays the one", async () => {
    const items = await taken([10]);
    const posted = new Set<string>();
    chain.fixture.faults = {
      tx: ({ id }): PostFault => {
        posted.add(id);
        return { kind: "fault", reason: "no response" };
      },
    };
    const first = fixture.start(chain);
    await until(() => posted.size === 1, "it was sent");
    await first.close();
    let rejections = 0;
    chain.fixture.faults = {
      tx: ({ id }): PostFault => {
        posted.add(id);
        rejections += 1;
        if (rejections > 2) return undefined;
        return { kind: "rejected", reason: "400 overspend", word: "", isByAll: true };
      },
    };
    const second = fixture.start(chain);
    await until(() => second.reasons().length > 0, "the rejection is reported");
    expect(second.reasons()).toEqual(["the nodes rejected the transaction: 400 overspend"]);
    await until(() => chain.waiting().length === 1, "it is taken");
    await minedUntilPermanent(1);
    expect(posted.size).toBe(1);
    expectOnceEach(items);
  });

  test("that waited here for too long is signed anew before it is sent", async () => {
    const items = await taken([10]);
    let isHeld = true;
    const slow: FakeChain = {
      ...chain,
      anchor: async (signal) => {
        const anchor = await chain.anchor(signal);
        // The nodes go on while it is signed.
        if (isHeld) chain.mine(45);
        isHeld = false;
        return anchor;
      },
    };
    fixture.start(slow);
    await minedUntilPermanent(1);
    expect(chain.posts.tx).toBe(1);
    expectOnceEach(items);
  });

  test("that nodes forget is posted and seeded again, the same one", async () => {
    const items = await taken([10, 500_000]);
    let drops = 2;
    chain.fixture.faults = {
      tx: (): PostFault => {
        drops -= 1;
        return drops >= 0 ? "taken and dropped" : undefined;
      },
    };
    fixture.start(chain);
    await until(() => chain.waiting().length === 1, "it waits at the nodes");
    await minedUntilPermanent(2);
    expect(chain.seen.size).toBe(1);
    expectOnceEach(items);
  });

  test("that nodes forget when it is seeded is posted and seeded again, the same one", async () => {
    const items = await taken([10, 700_000]);
    fixture.start(chain);
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    for (const id of chain.waiting()) chain.forgetTx(id);
    await until(() => chain.waiting().length === 1, "it is back", 10_000);
    await minedUntilPermanent(2);
    expect(chain.seen.size).toBe(1);
    expectOnceEach(items);
  });

  test("that no node knows is not abandoned while it can be mined, and is never on the chain twice", async () => {
    const items = await taken([10]);
    let isDropped = true;
    chain.fixture.faults = { tx: (): PostFault => (isDropped ? "taken and dropped" : undefined) };
    fixture.start(chain);
    await until(() => chain.seen.size === 1, "it was sent");
    const [first] = chain.seen.keys();
    // Up to the last block that may have it, and as many again as branches live.
    chain.mine(43);
    await Bun.sleep(300); // time for another post, which must not happen
    expect([...chain.seen.keys()]).toEqual([first ?? ""]);
    expect(chain.mineForgotten(([id]) => id)).toBe(first ?? "");
    isDropped = false;
    await minedUntilPermanent(1);
    expect(chain.seen.size).toBe(1);
    expectOnceEach(items);
  });

  test("that can never be mined any more is signed anew", async () => {
    const items = await taken([10, 20]);
    let isDropped = true;
    chain.fixture.faults = { tx: (): PostFault => (isDropped ? "taken and dropped" : undefined) };
    fixture.start(chain);
    await until(() => chain.seen.size === 1, "it was sent");
    chain.mine(60);
    await Bun.sleep(100); // time for another post, which must not happen
    expect(chain.seen.size).toBe(1);
    isDropped = false;
    chain.mine(20);
    await minedUntilPermanent(2);
    expect(chain.seen.size).toBe(2);
    expectOnceEach(items);
  });

  test("is not abandoned while nodes do not respond", async () => {
    await taken([10]);
    chain.fixture.faults = { tx: (): PostFault => "taken and dropped" };
    fixture.start(chain);
    await until(() => chain.seen.size === 1, "it was sent");
    chain.fixture.areNodesSilent = true;
    chain.mine(100);
    await Bun.sleep(500); // time for another post, which must not happen
    expect(chain.seen.size).toBe(1);
    chain.fixture.areNodesSilent = false;
    chain.fixture.faults = {};
    await minedUntilPermanent(1);
    expect(chain.seen.size).toBe(2);
  });

  test("of a chain that was begun anew is signed anew", async () => {
    const items = await taken([10]);
    fixture.start(chain);
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    chain.reset();
    await minedUntilPermanent(1);
    expect(chain.seen.size).toBe(2);
    expectOnceEach(items);
  });
});

describe("permanent items of a chain that was begun anew", () => {
  const stateOf = async ({ id }: SignedItem) => (await fixture.database.read((tx) => findUpload(tx, id)))?.state;
  const failed = async (items: readonly SignedItem[]) =>
    (await Promise.all(items.map(stateOf))).filter((state) => state === "failed").length;

  test("fail; those that are on the new chain stay", async () => {
    const old = await taken([10, 20]);
    const pipeline = fixture.start(chain);
    await minedUntilPermanent(2);
    chain.reset();
    const fresh = await taken([30]);
    pipeline.onItem(30);
    await minedUntilPermanent(3);
    await pipeline.failPermanent();
    expect([await failed(old), await failed(fresh)]).toEqual([2, 0]);
    await pipeline.failPermanent();
    expect(await stateOf(fresh[0]!)).toBe("permanent");
    expect(await checkLedger(fixture.database)).toEqual([]);
  });

  test("are all ended, or on the new chain, when the program ends amid that", async () => {
    const items = await taken(Array.from({ length: 120 }, () => 5));
    const first = fixture.start(chain);
    await minedUntilPermanent(120);
    await first.close();
    chain.reset();
    const parts = fixture.partsWith(chain);
    const forgetPending = () => Promise.reject(new Error("the process ends here"));
    await expect(failPermanent({ ...parts, chain: { ...chain, forgetPending } })).rejects.toThrow("ends here");
    expect(await failed(items)).toBe(50);
    expect(await checkLedger(fixture.database)).toEqual([]);
    await fixture.database.write((tx) => tx.run("UPDATE bundles SET next_at = 0 WHERE state = 'planned'"));
    fixture.start(chain);
    await minedUntilPermanent(120 + 70);
    expect(await failed(items)).toBe(50);
    expect(await checkLedger(fixture.database)).toEqual([]);
  });
});

describe("chunks", () => {
  test("of which nodes lose some are sent again, until our own index has read all of them", async () => {
    const items = await taken([2_000_000]);
    const random = fixture.random;
    chain.fixture.faults = { chunk: () => (random.chance(0.3) ? "taken and dropped" : undefined) };
    fixture.start(chain);
    await minedUntilPermanent(1);
    expect(chain.posts.tx).toBe(1);
    expect(chain.posts.chunk).toBeGreaterThan(8);
    expectOnceEach(items);
  });

  test("that nodes forget after the block are sent again", async () => {
    const items = await taken([1_000_000]);
    chain.fixture.canReadBack = false;
    fixture.start(chain);
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    chain.mine(5);
    const [transaction] = chain.mined() as [Transaction];
    chain.forgetChunks(transaction.dataRoot, () => true);
    chain.fixture.canReadBack = true;
    await minedUntilPermanent(1);
    expect(chain.posts.tx).toBe(1);
    expectOnceEach(items);
  });

  test("are sent from where it stopped when the program ended", async () => {
    await taken([60 * 262_144]);
    const sent: number[] = [];
    let fails = true;
    chain.fixture.faults = {
      chunk: (_, start): PostFault => {
        if (fails && sent.length >= 30) return { kind: "fault", reason: "away" };
        sent.push(start);
        return undefined;
      },
    };
    // The progress counts up to the first chunk that is missing: the others wait for the first ones, however slow
    // the thread that makes those.
    const areFirstSent = () => sent.filter((start) => start < 4 * 262_144).length === 4;
    const ordered: FakeChain = {
      ...chain,
      post: async (path, body, signal) => {
        const isLater = path === "/chunk" && readPostedChunk(new TextDecoder().decode(body)).offset >= 4 * 262_144;
        if (isLater) await until(areFirstSent, "the first chunks were sent");
        return chain.post(path, body, signal);
      },
    };
    const first = fixture.start(ordered);
    await until(() => first.reasons().length > 0, "it gave up");
    await first.close();
    const [bundle] = await unfinished(["posted"]);
    expect(bundle?.seededChunks).toBeGreaterThan(0);
    expect(bundle?.seededChunks).toBeLessThanOrEqual(sent.length);
    const before = sent.length;
    fails = false;
    fixture.start(chain);
    await minedUntilPermanent(1);
    expect(sent.length - before).toBe(61 - (bundle?.seededChunks ?? 0));
  });

  test("of one bundle that no node takes do not hold up the others", async () => {
    const [stuck] = await taken([400_000]);
    let stuckRoot: string | undefined;
    chain.fixture.faults = {
      chunk: (root): PostFault => {
        stuckRoot ??= root;
        return root === stuckRoot ? { kind: "fault", reason: "503" } : undefined;
      },
    };
    const pipeline = fixture.start(chain);
    await until(() => stuckRoot !== undefined, "the first is stuck");
    const others: SignedItem[] = [];
    for (let round = 0; round < 12; round += 1) {
      const [item] = await taken([1_000 + round]);
      others.push(item as SignedItem);
      pipeline.onItem(1_000);
      await Bun.sleep(30); // each item gets its own bundle
    }
    await minedUntilPermanent(12);
    expect((await fixture.database.read((tx) => findUpload(tx, stuck?.id ?? "")))?.state).toBe("posted");
    await until(() => pipeline.reasons().length === 1, "the reason is reported");
    expect(pipeline.reasons()).toEqual(["no node accepted a chunk: 503"]);
    chain.fixture.faults = {};
    await minedUntilPermanent(13);
    expectOnceEach([stuck as SignedItem, ...others]);
  });

  test("are few in memory, however large the bundle", async () => {
    await taken([50 * 262_144]);
    const sizes: number[] = [];
    let under = 0;
    const counting: FakeChain = {
      ...chain,
      post: async (path, body, signal) => {
        under += body.length;
        sizes.push(under);
        await Bun.sleep(1);
        const posted = await chain.post(path, body, signal);
        under -= body.length;
        return posted;
      },
    };
    fixture.start(counting);
    // Blocks that come faster than chunks can be sent would leave its anchor behind.
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    await minedUntilPermanent(1);
    expect(Math.max(...sizes)).toBeLessThan(6 * 2 ** 20);
  });
});

describe("a block", () => {
  test("that is taken back takes the bundle with it, and the next one that has it counts anew", async () => {
    const items = await taken([10, 20]);
    chain.fixture.canReadBack = false;
    fixture.start(chain, { confirmations: 4 });
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    chain.mine(2);
    await until(async () => (await unfinished()).every((each) => each.blockHeight === 101), "its block is seen");
    chain.rollBack(2, () => true);
    await until(async () => (await unfinished()).every((each) => each.blockHeight === undefined), "it is in no block");
    chain.fixture.canReadBack = true;
    await minedUntilPermanent(2);
    expect(chain.seen.size).toBe(1);
    expectOnceEach(items);
  });

  test("that is taken back, and whose transactions nodes forget, has its bundle posted again", async () => {
    const items = await taken([10, 20]);
    fixture.start(chain, { confirmations: 4 });
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    chain.mine(3);
    await until(async () => (await unfinished()).every((each) => each.blockHeight === 101), "its block is seen");
    chain.rollBack(3, () => false);
    // Blocks that come faster than it is posted again would leave its anchor behind.
    await until(async () => chain.posts.tx === 2, "it is posted again");
    await minedUntilPermanent(2);
    expect(chain.seen.size).toBe(1);
    expectOnceEach(items);
  });

  test("makes nothing permanent before it is deep enough, and read back", async () => {
    await taken([10]);
    fixture.start(chain, { confirmations: 5 });
    await until(async () => (await unfinished(["seeded"])).length === 1, "it is seeded");
    chain.mine(4);
    await Bun.sleep(100); // time for a confirmation, which must not happen
    expect(fixture.ended.permanent).toBe(0);
    chain.fixture.canReadBack = false;
    chain.mine(4);
    await Bun.sleep(100); // time for a confirmation, which must not happen
    expect(fixture.ended.permanent).toBe(0);
    chain.fixture.canReadBack = true;
    await until(() => fixture.ended.permanent === 1, "it is permanent");
  });
});

test("what fails again and again is tried later and later", async () => {
  await taken([10]);
  const at: number[] = [];
  chain.fixture.faults = {
    tx: (): PostFault => {
      at.push(Date.now());
      return { kind: "fault", reason: "away" };
    },
  };
  fixture.start(chain);
  await until(() => at.length === 3, "it was tried three times");
  const [first = 0, second = 0, third = 0] = at;
  expect(second - first).toBeGreaterThanOrEqual(490);
  expect(third - second).toBeGreaterThanOrEqual(990);
  const [bundle] = await unfinished();
  expect(bundle).toMatchObject({ state: "prepared", attempts: expect.any(Number) });
  expect(await itemsOfBundle(fixture.database, bundle?.id ?? "")).toHaveLength(1);
});
