/**
 * The items of a bundle, and the exact offset of each, also under concurrency.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import { writeBundle } from "../../../src/arweave/bundle.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { nextBundles } from "../../../src/upload/pipeline/bundle-rows.ts";
import { createPlanner, type PlanRules } from "../../../src/upload/pipeline/plan-bundles.ts";
import { findUpload, itemsOfBundle, storedBytes } from "../../../src/upload/upload-rows.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { type BundleFixture, openBundleFixture, type SignedItem, storeName } from "./bundle-fixture.ts";

const { RUNS = "25" } = process.env;

for (const kind of ledgerKinds())
  describeWith(kind.need, `planning on ${kind.name}`, () => {
    let fixture: BundleFixture;
    let now = 0;
    beforeEach(async () => {
      now = 1_000_000;
      fixture = await openBundleFixture({ kind, clock: () => now });
    });
    afterEach(() => fixture.close());

    const rulesOf = (rules: Partial<PlanRules> = {}): PlanRules => ({
      itemsMax: 10_000,
      bytesMax: 2 ** 31,
      waitMs: 1_000,
      ...rules,
    });
    const plannerWith = (rules: Partial<PlanRules> = {}, ledger: LedgerDatabase = fixture.database) =>
      createPlanner({
        ledger,
        storeName,
        rules: rulesOf(rules),
        makeId: fixture.makeId,
        clock: () => now,
      });
    const bundlesIn = (state: "filling" | "planned") =>
      fixture.database.read((tx) => nextBundles(tx, { store: storeName, states: [state], limit: 1_000 }));
    const idsOf = async (bundleId: string) => (await itemsOfBundle(fixture.database, bundleId)).map(({ id }) => id);
    const uploadOf = (id: string) => fixture.database.read((tx) => findUpload(tx, id));

    test("the planned offset of an item equals its offset in the written bundle, in the order of arrival", async () => {
      const items = fixture.sign([0, 1, 300, 77, 5_000]);
      for (const item of items) {
        await fixture.take([item], { receivedAt: now });
        now += 1;
      }
      now += 1_000;
      await plannerWith().look();
      const [bundle, ...others] = await bundlesIn("planned");
      expect(others).toEqual([]);
      const written = writeBundle(items.map(({ bytes }) => bytes));
      expect(bundle).toMatchObject({ itemCount: 5, dataSize: written.length });
      for (const [position, { id, bytes }] of items.entries()) {
        const place = (await uploadOf(id))?.place;
        expect(place).toMatchObject({ bundleId: bundle?.id ?? "", position, transactionId: undefined });
        const offset = place?.offset ?? -1;
        expect(Buffer.compare(written.subarray(offset, offset + bytes.length), bytes)).toBe(0);
      }
    });

    test("items of one moment go in the order of their ids", async () => {
      const items = fixture.sign([1, 2, 3, 4, 5, 6, 7, 8]);
      await fixture.take(items);
      now += 1_000;
      await plannerWith().look();
      const [bundle] = await bundlesIn("planned");
      expect<string[]>(await idsOf(bundle?.id ?? "")).toEqual(items.map(({ id }) => id).sort());
    });

    test("a lone item waits for the configured time, and no longer", async () => {
      const [item] = fixture.sign([10]);
      await fixture.take([item as SignedItem]);
      const planner = plannerWith();
      await planner.look();
      expect(await bundlesIn("filling")).toHaveLength(1);
      expect(await uploadOf(item?.id ?? "")).toMatchObject({ state: "stored", place: { offset: undefined } });
      expect(planner.nextAt()).toBe(now + 1_000);
      now += 999;
      expect(planner.isDue()).toBe(false);
      await planner.look();
      expect(await bundlesIn("planned")).toHaveLength(0);
      now += 1;
      expect(planner.isDue()).toBe(true);
      await planner.look();
      expect(await bundlesIn("planned")).toHaveLength(1);
      expect(await uploadOf(item?.id ?? "")).toMatchObject({ state: "planned", place: { offset: 96 } });
      expect(planner.nextAt()).toBe(now + 10 * 60_000);
    });

    test("an item that was never noted, because its transaction had an unknown outcome, is planned within ten minutes", async () => {
      const planner = plannerWith();
      await planner.look();
      const [item] = fixture.sign([10]);
      await fixture.take([item as SignedItem]);
      now += 10 * 60_000 - 1;
      expect(planner.isDue()).toBe(false);
      now += 1;
      expect(planner.nextAt()).toBe(now);
      expect(planner.isDue()).toBe(true);
      await planner.look();
      expect(await uploadOf(item?.id ?? "")).toMatchObject({ state: "planned" });
    });

    test("those that come while one waits go with it, and wait no longer than it does", async () => {
      const items = fixture.sign([10, 20, 30]);
      const planner = plannerWith();
      for (const item of items) {
        await fixture.take([item]);
        planner.note(item.bytes.length);
        await planner.look();
        now += 400;
      }
      await planner.look();
      const [bundle, ...others] = await bundlesIn("planned");
      expect(others).toEqual([]);
      expect<string[]>(await idsOf(bundle?.id ?? "")).toEqual(items.map(({ id }) => id));
    });

    test("a planner is due after enough items, and reads nothing before", async () => {
      const planner = plannerWith({ bytesMax: 1_000 });
      await planner.look();
      expect(planner.isDue()).toBe(false);
      expect([planner.note(100), planner.note(100)]).toEqual([true, false]);
      expect(planner.isDue()).toBe(false);
      expect(planner.note(800)).toBe(true);
      expect(planner.isDue()).toBe(true);
      await planner.look();
      const many = Array.from({ length: 500 }, () => planner.note(1));
      expect(many.filter(Boolean)).toHaveLength(2);
      expect(planner.isDue()).toBe(true);
    });

    test("an item that comes while others are planned is not forgotten", async () => {
      const [first, second] = fixture.sign([10, 20]) as [SignedItem, SignedItem];
      await fixture.take([first]);
      let isFirst = true;
      const slow: LedgerDatabase = {
        ...fixture.database,
        write: async (work) => {
          const response = await fixture.database.write(work);
          if (isFirst) {
            isFirst = false;
            now += 1;
            planner.note(second.bytes.length);
          }
          return response;
        },
      };
      const planner = plannerWith({}, slow);
      now += 1_000;
      await planner.look();
      await fixture.take([second]);
      expect(planner.nextAt()).toBe(now + 1_000);
      now += 1_000;
      await planner.look();
      now += 1_000;
      await planner.look();
      expect(await uploadOf(second.id)).toMatchObject({ state: "planned" });
    });

    test("an item that fits into no bundle is bundled alone, and does not delay others", async () => {
      const sizes = [100, 5_000, 100, 100];
      const items = fixture.sign(sizes);
      for (const item of items) {
        await fixture.take([item]);
        now += 1;
      }
      now += 1_000;
      await plannerWith({ bytesMax: 2_000 }).look();
      const bundles = await bundlesIn("planned");
      expect(await Promise.all(bundles.map(({ id }) => idsOf(id)))).toEqual([
        [items[0]?.id ?? ""],
        [items[1]?.id ?? ""],
        [items[2]?.id ?? "", items[3]?.id ?? ""],
      ]);
    });

    test("thousands that come at once fill bundles to the item, in slices", async () => {
      const items = fixture.sign(Array.from({ length: 4_321 }, () => 1));
      await fixture.take(items);
      now += 1_000;
      const startedAt = performance.now();
      await plannerWith({ itemsMax: 2_000 }).look();
      console.log(`${items.length} items planned in ${Math.round(performance.now() - startedAt)} ms`);
      const bundles = await bundlesIn("planned");
      expect(bundles.map(({ itemCount }) => itemCount)).toEqual([2_000, 2_000, 321]);
      const ids = (await Promise.all(bundles.map(({ id }) => idsOf(id)))).flat();
      expect<string[]>(ids).toEqual(items.map(({ id }) => id).sort());
      const sum = items.reduce((total, { bytes }) => total + bytes.length, 0);
      expect(await fixture.database.read((tx) => storedBytes(tx, storeName))).toBe(sum);
    }, 120_000);

    test("two planners at once put every item into one bundle, whole and in order", async () => {
      const other = await fixture.ledger.openAgain();
      const makeOther = createTransferIds(
        () => now,
        () => 0.5,
      );
      const planners = [
        plannerWith({ itemsMax: 700 }),
        createPlanner({
          ledger: other,
          storeName,
          rules: rulesOf({ itemsMax: 700 }),
          makeId: makeOther,
          clock: () => now,
        }),
      ];
      const items = fixture.sign(Array.from({ length: 2_000 }, () => 1));
      for (let at = 0; at < items.length; at += 400) {
        await fixture.take(items.slice(at, at + 400));
        now += 1;
        await Promise.all(planners.map(({ look }) => look()));
      }
      now += 1_000;
      await Promise.all(planners.map(({ look }) => look()));
      const bundles = await bundlesIn("planned");
      expect(bundles.reduce((sum, { itemCount }) => sum + itemCount, 0)).toBe(2_000);
      const ids = (await Promise.all(bundles.map(({ id }) => idsOf(id)))).flat();
      expect(new Set(ids).size).toBe(2_000);
      expect(bundles.map(({ itemCount }) => itemCount)).toEqual([700, 700, 600]);
      await expectPlaces(fixture, bundles);
      await other.close();
    }, 120_000);

    test("what belongs to another folder of uploads is left alone", async () => {
      const [mine, theirs] = fixture.sign([10, 20]);
      await fixture.take([mine as SignedItem]);
      await fixture.take([theirs as SignedItem], { store: "another" });
      now += 1_000;
      await plannerWith().look();
      const [bundle] = await bundlesIn("planned");
      expect<string[]>(await idsOf(bundle?.id ?? "")).toEqual([mine?.id ?? ""]);
      expect(await uploadOf(theirs?.id ?? "")).toMatchObject({ state: "stored", place: undefined });
    });

    test("a planner that fails amid its slices goes on where it was", async () => {
      await fixture.take(fixture.sign(Array.from({ length: 1_400 }, () => 1)));
      now += 1_000;
      let writes = 0;
      const failing: LedgerDatabase = {
        ...fixture.database,
        write: (work) => {
          writes += 1;
          if (writes === 2) return Promise.reject(new Error("the process ends here"));
          return fixture.database.write(work);
        },
      };
      await expect(plannerWith({}, failing).look()).rejects.toThrow("the process ends here");
      expect(await bundlesIn("filling")).toMatchObject([{ itemCount: 200 }]);
      await plannerWith().look();
      const bundles = await bundlesIn("planned");
      expect(bundles).toMatchObject([{ itemCount: 1_400 }]);
      await expectPlaces(fixture, bundles);
    }, 120_000);
  });

test("bundles are filled in order, and no further than they may be", async () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 400, max: 3_000 })), {
    minLength: 1,
    maxLength: 30,
  });
  const rules = fc.record({
    itemsMax: fc.integer({ min: 1, max: 8 }),
    bytesMax: fc.integer({ min: 1, max: 3_000 }),
  });
  await fc.assert(
    fc.asyncProperty(sizes, rules, async (payloads, limits) => {
      let now = 1_000;
      const fixture = await openBundleFixture({ clock: () => now });
      try {
        const items = fixture.sign(payloads);
        for (const item of items) {
          await fixture.take([item], { receivedAt: now });
          now += 1;
        }
        now += 1_000;
        const { database: ledger, makeId } = fixture;
        const planner = createPlanner({
          ledger,
          storeName,
          makeId,
          clock: () => now,
          rules: { ...limits, waitMs: 1_000 },
        });
        await planner.look();
        const bundles = await ledger.read((tx) =>
          nextBundles(tx, { store: storeName, states: ["planned"], limit: 100 }),
        );
        const planned: string[][] = [];
        for (const { id } of bundles.toSorted((left, right) => (left.id < right.id ? -1 : 1)))
          planned.push((await itemsOfBundle(ledger, id)).map((item) => item.id));
        expect(planned).toEqual(packed(items, limits));
        await expectPlaces(fixture, bundles);
      } finally {
        await fixture.close();
      }
    }),
    { numRuns: Number(RUNS) },
  );
}, 120_000);

/** The bundles that these items make, one after another. */
function packed(items: readonly SignedItem[], { itemsMax, bytesMax }: Omit<PlanRules, "waitMs">): string[][] {
  const bundles: string[][] = [];
  let bytes = 0;
  for (const { id, bytes: item } of items) {
    const last = bundles.at(-1);
    const fits = last !== undefined && last.length < itemsMax && bytes + item.length <= bytesMax;
    if (fits) last.push(id);
    else bundles.push([id]);
    bytes = fits ? bytes + item.length : item.length;
  }
  return bundles;
}

/** Checks that every item of these bundles directly follows the previous one. */
async function expectPlaces(fixture: BundleFixture, bundles: readonly Readonly<{ id: string }>[]): Promise<void> {
  for (const { id } of bundles) {
    const bundle = await fixture.database.read((tx) =>
      tx.get<{ item_count: bigint; items_size: bigint }>("SELECT item_count, items_size FROM bundles WHERE id = ?", id),
    );
    const items = await itemsOfBundle(fixture.database, id);
    expect(items).toHaveLength(Number(bundle?.item_count ?? -1));
    const behind = await fixture.database.read((tx) =>
      tx.all<{ position: bigint; behind: bigint; size: bigint }>(
        "SELECT position, behind, size FROM uploads WHERE bundle_id = ? ORDER BY position",
        id,
      ),
    );
    let sum = 0n;
    for (const [index, row] of behind.entries()) {
      if (row.position !== BigInt(index) || row.behind !== sum)
        throw new Error(
          `item ${index} of ${id} has position ${row.position} after ${row.behind} bytes, expected ${sum}`,
        );
      sum += row.size;
    }
    expect(Number(sum)).toBe(Number(bundle?.items_size ?? -1));
  }
}
