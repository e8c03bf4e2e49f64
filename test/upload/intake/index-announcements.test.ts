/**
 * The index hears of every item that is on its way: also of those that it missed, and of none that has failed. Its rows
 * stay until a block has them, whatever was announced before or after.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Id } from "../../../src/arweave/id.ts";
import { createLog } from "../../../src/lib/log.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { type IndexReader, noColumns, type PendingRow } from "../../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { pendingHeight } from "../../../src/store/index/place.ts";
import {
  announceItemsOfBundle,
  announceMissedItems,
  type MissedItemsParts,
} from "../../../src/upload/intake/index-announcements.ts";
import { createPlanner } from "../../../src/upload/pipeline/plan-bundles.ts";
import { failUpload, findUpload } from "../../../src/upload/upload-rows.ts";
import {
  type BundleFixture,
  openBundleFixture,
  quickRules,
  type SignedItem,
  storeName,
} from "../pipeline/bundle-fixture.ts";

const never = new AbortController().signal;
const columns = { ...noColumns, tags: true, ownerKey: true };

let fixture: BundleFixture;
let folder: string;
let writer: IndexWriter;
let reader: IndexReader;
let seconds: number;
beforeEach(async () => {
  fixture = await openBundleFixture();
  folder = mkdtempSync(join(tmpdir(), "cairn-announced-"));
  seconds = 1_000_000;
  writer = openIndexWriter(join(folder, "index.sqlite"), { clock: () => seconds * 1_000 });
  reader = openIndexReader(join(folder, "index.sqlite"));
});
afterEach(async () => {
  reader.close();
  writer.close();
  removeFolder(folder);
  await fixture.close();
});

function parts(): MissedItemsParts {
  const { database: ledger, threads, folder: uploads } = fixture;
  const log = createLog({ level: "error", format: "json", clock: Date.now, write: () => undefined });
  return {
    ledger,
    threads,
    folder: uploads,
    storeName,
    log,
    statusOf: (id) => {
      const place = reader.placeOf(id);
      if (place === undefined) return undefined;
      return place.height === pendingHeight ? "pending" : "mined";
    },
    addPending: async (rows) => writer.addPending(rows),
    forgetPending: async (ids) => {
      writer.removePending(ids);
    },
  };
}

const plan = async () => {
  const { database: ledger, makeId, clock } = fixture;
  const rules = { ...quickRules.plan, waitMs: 0 };
  await createPlanner({ ledger, storeName, rules, makeId, clock }).look();
};
const isFound = (id: Id) => reader.page({ order: "desc", ids: [id], limit: 1, columns }).rows.length === 1;

test("missed items are verified and announced in every state", async () => {
  const bundled = fixture.sign([10, 2_000_000]);
  await fixture.take([bundled[0] as SignedItem]);
  await fixture.take([bundled[1] as SignedItem], { apart: true });
  await plan();
  const waiting = fixture.sign([0, 30]);
  await fixture.take(waiting);
  await announceMissedItems(parts(), never);
  for (const { id, bytes } of [...bundled, ...waiting]) {
    const located = reader.locate(id);
    const upload = await fixture.database.read((tx) => findUpload(tx, id));
    expect(located).toMatchObject({ kind: "item", pending: true, verified: true });
    expect(located?.size).toBe(bytes.length - (upload?.headerSize ?? 0));
    expect(Buffer.compare(located?.digest ?? new Uint8Array(0), upload?.digest ?? new Uint8Array(1))).toBe(0);
    const [row] = reader.page({ order: "desc", ids: [id], limit: 1, columns }).rows;
    expect(row?.tags[0]).toEqual({ name: "Content-Type", value: "text/plain" });
  }
});

test("known items are not read again, and many items are announced in steps", async () => {
  const items = fixture.sign(Array.from({ length: 620 }, () => 3));
  await fixture.take(items);
  await announceMissedItems(parts(), never);
  expect(items.every(({ id }) => isFound(id))).toBe(true);
  let jobs = 0;
  const { threads } = fixture;
  const counting: MissedItemsParts = {
    ...parts(),
    threads: {
      ...threads,
      run: (...job) => {
        jobs += 1;
        return threads.run(...job);
      },
    },
  };
  await announceMissedItems(counting, never);
  expect(jobs).toBe(0);
});

test("an item with changed bytes is not announced, and does not prevent the others", async () => {
  const [bad, good] = fixture.sign([500, 600]) as [SignedItem, SignedItem];
  const [place] = await fixture.take([bad, good]);
  const path = join(fixture.folder, place?.file ?? "");
  const bytes = readFileSync(path);
  const at = (place?.offset ?? 0) + (place?.size ?? 1) - 1;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  await announceMissedItems(parts(), never);
  expect([isFound(bad.id), isFound(good.id)]).toEqual([false, true]);
});

test("an item with an unreadable file is not announced, and does not prevent the others", async () => {
  const items = fixture.sign([1_500_000, 1_600_000, 10]) as [SignedItem, SignedItem, SignedItem];
  const [bad, ...good] = items;
  const [place] = await fixture.take([bad], { apart: true });
  await fixture.take(good.slice(0, 1), { apart: true });
  await fixture.take(good.slice(1));
  const path = join(fixture.folder, place?.file ?? "");
  rmSync(path);
  mkdirSync(path); // reading it gives EISDIR, as a broken disk gives EIO
  await announceMissedItems(parts(), never);
  expect(items.map(({ id }) => isFound(id))).toEqual([false, true, true]);
});

test("one that has failed is taken back", async () => {
  const [item] = fixture.sign([10]) as [SignedItem];
  await fixture.take([item]);
  await announceMissedItems(parts(), never);
  await plan();
  const upload = await fixture.database.read((tx) => findUpload(tx, item.id));
  await fixture.database.write((tx) => failUpload(tx, item.id, upload?.place?.bundleId ?? "", "lost"));
  await announceMissedItems(parts(), never);
  expect(isFound(item.id)).toBe(false);
});

test("all items of a bundle that has left its block are announced", async () => {
  const items = fixture.sign([10, 20]);
  await fixture.take(items);
  await plan();
  const upload = await fixture.database.read((tx) => findUpload(tx, items[0]?.id ?? ""));
  await announceItemsOfBundle(parts(), upload?.place?.bundleId ?? "", never);
  expect(items.map(({ id }) => isFound(id))).toEqual([true, true]);
});

describe("the row of an upload", () => {
  const week = 7 * 24 * 60 * 60;

  async function announcedRow(): Promise<PendingRow> {
    const [item] = fixture.sign([10]) as [SignedItem];
    await fixture.take([item]);
    const rows: PendingRow[] = [];
    await announceMissedItems({ ...parts(), addPending: async (added) => rows.push(...added) }, never);
    const [row] = rows;
    if (row === undefined) throw new Error("a row was announced");
    return row;
  }

  /** As the index's upkeep does from time to time. */
  function upkeep(): void {
    seconds += week;
    writer.expireAnnounced(seconds - 2 * 60 * 60);
    writer.expirePending(seconds - 24 * 60 * 60);
  }

  test("stays for as long as no block has it", async () => {
    const row = await announcedRow();
    writer.addPending([row]);
    upkeep();
    expect(isFound(row.id)).toBe(true);
  });

  test("stays when it was announced before it was uploaded", async () => {
    const row = await announcedRow();
    writer.addPending([{ ...row, verified: false, digest: null }]);
    expect(reader.locate(row.id)).toMatchObject({ verified: false });
    writer.addPending([row]);
    expect(reader.locate(row.id)).toMatchObject({ verified: true, pending: true });
    upkeep();
    expect(isFound(row.id)).toBe(true);
    expect(reader.placesOf(row.id)).toHaveLength(1);
  });

  test("stays when it is announced after it was uploaded, and does not become less", async () => {
    const row = await announcedRow();
    writer.addPending([row]);
    writer.addPending([{ ...row, verified: false, digest: null }]);
    expect(reader.locate(row.id)).toMatchObject({ verified: true });
    upkeep();
    expect(isFound(row.id)).toBe(true);
  });

  test("goes when nothing was ever uploaded: an announcement alone is dropped", async () => {
    const row = await announcedRow();
    writer.addPending([{ ...row, verified: false, digest: null }]);
    upkeep();
    expect(isFound(row.id)).toBe(false);
  });
});
