/**
 * From chosen items to a signed transaction: header, data root, tags, reward and anchor to the byte, in one reading of
 * the items; and what becomes of items that are not what they were.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeBundle } from "../../../src/arweave/bundle.ts";
import { checkItem } from "../../../src/arweave/data-item.ts";
import type { Id } from "../../../src/arweave/id.ts";
import { dataRootOf } from "../../../src/arweave/merkle.ts";
import { readTransactionHeader, verifyTransaction } from "../../../src/arweave/transaction.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { type Bundle, nextBundles } from "../../../src/upload/pipeline/bundle-rows.ts";
import { createPlanner } from "../../../src/upload/pipeline/plan-bundles.ts";
import { post } from "../../../src/upload/pipeline/post-bundle.ts";
import { prepare } from "../../../src/upload/pipeline/prepare-bundle.ts";
import { findUpload } from "../../../src/upload/upload-rows.ts";
import type { TestBlockList } from "../../support/block-lists.ts";
import { validEncodings } from "../../support/encodings.ts";
import { paidIn, testAddress } from "../../support/payment.ts";
import { signers } from "../../support/signers.ts";
import { until } from "../../support/until.ts";
import { testItem } from "../../support/upload.ts";
import {
  type BundleFixture,
  openBundleFixture,
  type Place,
  quickRules,
  type SignedItem,
  storeName,
} from "./bundle-fixture.ts";
import { createFakeChain, type FakeChain } from "./fake-chain.ts";

const never = new AbortController().signal;

const ethereumLike = signers
  .filter(({ scheme }) => [3, 7, 101].includes(scheme.type))
  .map((signer) => [signer.scheme.name, signer] as const);

function idOf(item: Uint8Array | undefined): Id {
  const checked = checkItem(item ?? new Uint8Array(0), "strict");
  if (checked.kind !== "item") throw new Error(checked.reason);
  return checked.header.id;
}

let fixture: BundleFixture;
let chain: FakeChain;
beforeEach(async () => {
  fixture = await openBundleFixture();
  chain = createFakeChain(100);
});
afterEach(async () => {
  expect(await checkLedger(fixture.database)).toEqual([]);
  await fixture.close();
});

/** Plans what waits, and responses the bundles. */
async function planned(): Promise<Bundle[]> {
  const { database: ledger, makeId, clock } = fixture;
  const rules = { ...quickRules.plan, waitMs: 0 };
  await createPlanner({ ledger, storeName, rules, makeId, clock }).look();
  return await bundlesIn("planned");
}

function bundlesIn(state: Bundle["state"]): Promise<Bundle[]> {
  return fixture.database.read((tx) => nextBundles(tx, { store: storeName, states: [state], limit: 100 }));
}

const stateOf = async (id: string) => (await fixture.database.read((tx) => findUpload(tx, id)))?.state;

describe("a bundle that is prepared", () => {
  test.each([
    ["one item of no bytes", [0]],
    ["one item of many chunks", [1_000_000]],
    ["a last chunk that would be small", [262_144 * 2 + 100]],
    ["items that end at chunks' borders", [262_144 - 96 - 200, 262_144, 1]],
    ["many small items", Array.from({ length: 700 }, (_, index) => index)],
  ] as const)("has the root, the size and the fields of its data: %s", async (_, sizes) => {
    const items = fixture.sign(sizes).toSorted((left, right) => (left.id < right.id ? -1 : 1));
    await fixture.take(items);
    const [bundle] = await planned();
    chain.fixture.price = 12_345n;
    await prepare(fixture.partsWith(chain), bundle as Bundle, never);
    const [prepared] = await bundlesIn("prepared");
    const written = writeBundle(items.map(({ bytes }) => bytes));
    const transaction = readTransactionHeader(prepared?.transaction?.text ?? "");
    expect(transaction).toMatchObject({
      id: prepared?.transaction?.id ?? "",
      format: 2,
      dataSize: written.length,
      dataRoot: encodeBase64url(dataRootOf(written, "halved")),
      reward: 12_345n,
      target: "",
      quantity: 0n,
    });
    expect(transaction.tags.slice(0, 3)).toEqual([
      { name: "Bundle-Format", value: "binary" },
      { name: "Bundle-Version", value: "2.0.0" },
      { name: "App-Name", value: "Cairn" },
    ]);
    const anchor = await chain.anchor(never);
    expect(transaction.lastTx).toBe(anchor.hash);
    expect(prepared?.transaction?.anchorHeight).toBe(anchor.height);
    expect(verifyTransaction(transaction)).toEqual({ valid: true });
  });

  const signedAnewSql =
    "UPDATE bundles SET state = 'planned', transaction_id = NULL, signed = NULL, anchor_height = NULL";

  test("was read once, just before, whenever it is signed", async () => {
    const items = fixture.sign(Array.from({ length: 40 }, () => 500_000));
    const places = await fixture.take(items, { apart: true });
    const [bundle] = await planned();
    const size = bundle?.dataSize ?? 0;
    const parts = fixture.partsWith(chain);
    await fixture.threads.ping();
    const before = bytesRead();
    await prepare(parts, bundle as Bundle, never);
    const read = bytesRead() - before;
    expect(read).toBeGreaterThan(size * 0.99);
    expect(read).toBeLessThan(size * 1.2);
    await fixture.database.write((tx) => tx.run(signedAnewSql));
    rmSync(join(fixture.folder, places[7]?.file ?? ""));
    const [again] = await bundlesIn("planned");
    await prepare(parts, again as Bundle, never);
    expect(await bundlesIn("prepared")).toEqual([]);
    expect(await stateOf(items[7]?.id ?? "")).toBe("failed");
    const [rest] = await planned();
    expect(rest?.itemCount).toBe(39);
  });

  test.each([
    ["cannot be paid for", { balance: 0n }],
    ["has an index that is behind the nodes", { indexLag: 20 }],
    ["has silent nodes", { areNodesSilent: true }],
  ] as const)("is not read while it %s", async (_, fault) => {
    await fixture.take(fixture.sign(Array.from({ length: 10 }, () => 500_000)));
    const [bundle] = await planned();
    await fixture.threads.ping();
    Object.assign(chain.fixture, fault);
    const before = bytesRead();
    await expect(prepare(fixture.partsWith(chain), bundle as Bundle, never)).rejects.toThrow();
    expect(bytesRead() - before).toBeLessThan((bundle?.dataSize ?? 0) * 0.1);
  });

  test("waits for an index that is behind its nodes, and for nodes that are silent", async () => {
    await fixture.take(fixture.sign([10]));
    const [bundle] = await planned();
    chain.fixture.indexLag = 20;
    await expect(prepare(fixture.partsWith(chain), bundle as Bundle, never)).rejects.toMatchObject({
      code: "not_synced",
    });
    chain.fixture.indexLag = 0;
    chain.fixture.areNodesSilent = true;
    await expect(prepare(fixture.partsWith(chain), bundle as Bundle, never)).rejects.toMatchObject({
      code: "source_failed",
    });
    expect(await bundlesIn("planned")).toHaveLength(1);
  });
});

describe("an item that is not what it was", () => {
  const ada = testAddress("ada");
  const bob = testAddress("bob");

  const damages: readonly (readonly [name: string, apart: boolean, damage: (place: Place) => void, says: RegExp])[] = [
    ["a byte of its payload changed", false, (place) => change(place, place.size - 1), /changed/],
    ["a byte of its payload changed, in its own file", true, (place) => change(place, place.size - 3), /changed/],
    ["its file is gone", true, ({ file }) => rmSync(join(fixture.folder, file)), /not there/],
    [
      "its file is cut short",
      true,
      ({ file, size }) => truncateSync(join(fixture.folder, file), size - 1),
      /cut short/,
    ],
    ["its file is empty", true, ({ file }) => truncateSync(join(fixture.folder, file), 0), /cut short/],
  ];

  function change({ file, offset }: Place, at: number): void {
    const path = join(fixture.folder, file);
    const bytes = readFileSync(path);
    bytes[offset + at] = (bytes[offset + at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  }

  test.each(damages)("fails alone and is paid back once; the others go on: %s", async (_, apart, damage, says) => {
    await paidIn(
      {
        database: fixture.database,
        clock: { now: Date.now, set: noop, advance: noop },
        makeId: fixture.makeId,
      },
      "payment",
      ada,
      100n,
    );
    const items = fixture.sign([300, 400, 500]);
    const [first, bad, last] = items as [SignedItem, SignedItem, SignedItem];
    await fixture.take([first]);
    const [place] = await fixture.take([bad], { apart, payment: { signer: ada, winc: 7n } });
    await fixture.take([last], { payment: { signer: ada, winc: 11n } });
    expect(await balanceOf(ada)).toBe(82n);
    damage(place as Place);
    const [bundle] = await planned();
    await prepare(fixture.partsWith(chain), bundle as Bundle, never);

    expect(await stateOf(bad.id)).toBe("failed");
    const failed = await fixture.database.read((tx) => findUpload(tx, bad.id));
    expect(failed?.failedReason).toMatch(says);
    expect(failed?.place).toBeUndefined();
    expect(await balanceOf(ada)).toBe(89n);
    expect(fixture.left).toContain(place?.file ?? "");
    expect(chain.forgotten).toEqual([bad.id]);
    expect(fixture.ended).toEqual({ permanent: 0, failed: 1 });

    const [again] = await planned();
    expect(again?.itemCount).toBe(2);
    await prepare(fixture.partsWith(chain), again as Bundle, never);
    expect(await bundlesIn("prepared")).toHaveLength(1);
    expect(await Promise.all([first.id, last.id].map(stateOf))).toEqual(["planned", "planned"]);
    expect(await balanceOf(ada)).toBe(89n);
  });

  test("gives what came of an approval to the one who gave it", async () => {
    const payment = {
      database: fixture.database,
      clock: { now: Date.now, set: noop, advance: noop },
      makeId: fixture.makeId,
    };
    await paidIn(payment, "payment", bob, 50n);
    await paidIn(payment, "payment", ada, 5n);
    const { giveApproval } = await import("../../../src/payment/credits/approvals.ts");
    await fixture.database.write((tx) =>
      giveApproval(
        tx,
        { approvalId: "approval", payer: bob, approved: ada, winc: 8n },
        { now: Date.now(), makeId: fixture.makeId },
      ),
    );
    const [item] = fixture.sign([10]);
    const [place] = await fixture.take([item as SignedItem], {
      apart: true,
      payment: { signer: ada, winc: 10n, paidBy: [bob] },
    });
    expect([await balanceOf(ada), await balanceOf(bob)]).toEqual([3n, 42n]);
    rmSync(join(fixture.folder, place?.file ?? ""));
    const [bundle] = await planned();
    await prepare(fixture.partsWith(chain), bundle as Bundle, never);
    expect([await balanceOf(ada), await balanceOf(bob)]).toEqual([5n, 50n]);
    expect(await planned()).toEqual([]);
  });

  test("a whole segment that is gone fails all that was in it, each paid back, in steps", async () => {
    const payment = {
      database: fixture.database,
      clock: { now: Date.now, set: noop, advance: noop },
      makeId: fixture.makeId,
    };
    await paidIn(payment, "payment", ada, 1_000n);
    const items = fixture.sign(Array.from({ length: 120 }, () => 5));
    const [place] = await fixture.take(items, { payment: { signer: ada, winc: 3n } });
    rmSync(join(fixture.folder, place?.file ?? ""));
    const [bundle] = await planned();
    // The program ends after the first step.
    let steps = 0;
    const parts = fixture.partsWith(chain);
    const ending = {
      ...parts,
      chain: {
        ...chain,
        forgetPending: async () => {
          steps += 1;
          if (steps === 1) throw new Error("the process ends here");
        },
      },
    };
    await expect(prepare(ending, bundle as Bundle, never)).rejects.toThrow("ends here");
    expect(await balanceOf(ada)).toBe(1_000n - 360n + 150n);
    for (let round = 0; round < 3; round += 1) for (const each of await planned()) await prepare(parts, each, never);
    expect(await balanceOf(ada)).toBe(1_000n);
    expect(new Set(await Promise.all(items.map(({ id }) => stateOf(id))))).toEqual(new Set(["failed"]));
  });

  test("an unreadable disk loses no item", async () => {
    const [item] = fixture.sign([2_000]);
    const [place] = await fixture.take([item as SignedItem], { apart: true });
    const path = join(fixture.folder, place?.file ?? "");
    const bytes = readFileSync(path);
    rmSync(path);
    mkdirSync(path);
    const [bundle] = await planned();
    await expect(prepare(fixture.partsWith(chain), bundle as Bundle, never)).rejects.toMatchObject({
      code: "busy",
      context: { reason: expect.stringContaining("cannot be read") },
    });
    expect(await stateOf(item?.id ?? "")).toBe("planned");
    rmSync(path, { recursive: true });
    writeFileSync(path, bytes);
    await prepare(fixture.partsWith(chain), bundle as Bundle, never);
    expect(await bundlesIn("prepared")).toHaveLength(1);
  });

  test("found when chunks are sent again, it ends the bundle and not its siblings", async () => {
    const items = fixture.sign([300_000, 400_000]);
    const places = await fixture.take(items, { apart: true });
    const bad = places[1] as Place;
    chain.fixture.faults = {
      chunk: () => ({ kind: "fault", reason: "the disk is slow" }),
    };
    const pipeline = fixture.start(chain);
    await until(() => chain.posts.chunk > 0, "the transaction is posted");
    await pipeline.close();
    change(bad, 200_000);
    chain.fixture.faults = {};
    const another = fixture.start(chain);
    await until(async () => {
      chain.mine();
      return (await stateOf(items[0]?.id ?? "")) === "permanent";
    }, "the other is permanent");
    expect(await stateOf(items[1]?.id ?? "")).toBe("failed");
    expect(another.reasons()).toEqual([]);
  });
});

describe("a wallet that is too poor", () => {
  test("is reported to the operator, and retried until it ends", async () => {
    await fixture.take(fixture.sign([10]));
    chain.fixture.price = 500n;
    chain.fixture.balance = 499n;
    const pipeline = fixture.start(chain);
    await until(() => pipeline.reasons().length > 0, "the reason is reported");
    expect(pipeline.reasons()).toEqual(["the wallet holds 499 winston; 500 are needed for the next bundle"]);
    expect(chain.posts.tx).toBe(0);
    chain.fixture.balance = 500n;
    await until(() => {
      chain.mine();
      return fixture.ended.permanent === 1;
    }, "the bundle is permanent");
    expect(pipeline.reasons()).toEqual([]);
  });

  test("does not promise twice what it holds once", async () => {
    chain.fixture.price = 500n;
    chain.fixture.balance = 900n;
    const pipeline = fixture.start(chain, { plan: { itemsMax: 1, bytesMax: 2 ** 31, waitMs: 0 } });
    for (const item of fixture.sign([10, 20])) await fixture.take([item]);
    pipeline.onItem(10);
    await until(() => chain.posts.tx === 1 && pipeline.reasons().length > 0, "one is posted and the other waits");
    expect(pipeline.reasons()).toEqual([
      "the wallet holds 900 winston; 500 are needed for the next bundle and 500 for bundles that are in no block yet",
    ]);
    chain.fixture.balance = 1_000n;
    await until(() => {
      chain.mine();
      return fixture.ended.permanent === 2;
    }, "both are permanent");
  });
});

test.each([
  ["is damaged", (path: string) => truncateSync(path, 100)],
  ["is not there", (path: string) => rmSync(path)],
  [
    "cannot be read",
    (path: string) => {
      rmSync(path);
      symlinkSync(path, path);
    },
  ],
])("a layout that %s is made again", async (_what, harm) => {
  const [item] = fixture.sign([600_000]);
  await fixture.take([item as SignedItem]);
  chain.fixture.faults = { chunk: () => ({ kind: "fault", reason: "away" }) };
  const pipeline = fixture.start(chain);
  await until(() => chain.posts.chunk > 0, "chunks are sent");
  await pipeline.close();
  const [bundle] = await bundlesIn("posted");
  const layout = join(fixture.folder, "bundles", bundle?.id ?? "");
  expect(existsSync(layout)).toBe(true);
  harm(layout);
  await fixture.threads.close();
  chain.fixture.faults = {};
  const fresh = await openBundleFixture();
  const parts = { ...fixture.partsWith(chain), threads: fresh.threads };
  const { openPipeline } = await import("../../../src/upload/pipeline/bundle-pipeline.ts");
  const second = openPipeline(parts);
  await until(() => {
    chain.mine();
    return fixture.ended.permanent === 1;
  }, "it is permanent");
  await second.close();
  await fresh.close();
});

function noop(): void {
  // No test moves this clock.
}

async function balanceOf(address: string): Promise<bigint> {
  const row = await fixture.database.read((tx) =>
    tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = ?", `user:${address}`),
  );
  return row?.balance ?? 0n;
}

/** Bytes that this process has asked the system to read so far, in all its threads. */
function bytesRead(): number {
  return Number(/rchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

describe("P2: items that are blocked while they wait", () => {
  const ada = testAddress("ada");

  test.each(["id", "hash"] as const)(
    "by their %s, fail and are paid back before the bundle is signed; the others are planned anew",
    async (by) => {
      const { blockList, database, makeId } = fixture;
      const clock = { now: Date.now, set: noop, advance: noop };
      await paidIn({ database, clock, makeId }, "payment", ada, 1_000n);
      const items = fixture.sign([500, 600, 700]);
      for (const item of items) await fixture.take([item], { payment: { signer: ada, winc: 10n } });
      expect(await balanceOf(ada)).toBe(970n);
      const [bundle] = await planned();
      block(blockList, by, items[1]);
      await prepare(fixture.partsWith(chain), bundle as Bundle, never);
      expect(await bundlesIn("prepared")).toEqual([]);
      expect(await Promise.all(items.map(({ id }) => stateOf(id)))).toEqual(["stored", "failed", "stored"]);
      const failed = await database.read((tx) => findUpload(tx, items[1]?.id ?? ""));
      expect(failed?.failedReason).toBe("Blocked by this gateway's content policy");
      expect(await balanceOf(ada)).toBe(980n);
      const [rest] = await planned();
      expect(rest?.itemCount).toBe(2);
      await prepare(fixture.partsWith(chain), rest as Bundle, never);
      expect(await bundlesIn("prepared")).toHaveLength(1);
    },
  );

  test.each([...ethereumLike])("by the id of another encoding of their signature, fail too: %s", async (_, signer) => {
    const { blockList } = fixture;
    const items = ["one", "other", "third"].map((data) => testItem(data, { signer }));
    for (const [index, item] of items.entries()) await fixture.take([item], { apart: index === 2 });
    const others = items.map(({ bytes }) => idOf(validEncodings(bytes)[0]));
    expect(others).not.toContain(items[0]?.id);
    for (const index of [1, 2]) blockList.ids.add(others[index] ?? "");
    const [bundle] = await planned();
    await prepare(fixture.partsWith(chain), bundle as Bundle, never);
    expect(await Promise.all(items.map(({ id }) => stateOf(id)))).toEqual(["stored", "failed", "failed"]);
    const [rest] = await planned();
    await prepare(fixture.partsWith(chain), rest as Bundle, never);
    expect(await bundlesIn("prepared")).toHaveLength(1);
  });

  test("are not posted with a transaction that was signed before but never sent", async () => {
    const items = fixture.sign([500, 600]);
    await fixture.take(items);
    const [bundle] = await planned();
    const parts = fixture.partsWith(chain);
    await prepare(parts, bundle as Bundle, never);
    const [prepared] = await bundlesIn("prepared");
    block(fixture.blockList, "id", items[0]);
    await post(parts, prepared as Bundle, never);
    expect(chain.posts.tx).toBe(0);
    expect([await bundlesIn("posted"), (await bundlesIn("planned")).length]).toEqual([[], 1]);
    const [again] = await bundlesIn("planned");
    await prepare(parts, again as Bundle, never);
    expect(await Promise.all(items.map(({ id }) => stateOf(id)))).toEqual(["failed", "stored"]);
  });
});

function block(list: TestBlockList, by: "id" | "hash", item: SignedItem | undefined): void {
  const checked = checkItem(item?.bytes ?? new Uint8Array(0), "strict");
  if (checked.kind !== "item") throw new Error(checked.reason);
  if (by === "id") list.ids.add(checked.header.id);
  else list.hashes.add(encodeBase64url(checked.digest));
}
