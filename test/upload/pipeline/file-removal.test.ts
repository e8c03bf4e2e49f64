/**
 * Unneeded files of uploads are removed, and no others: separate files with their item, segments with their last item.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../src/lib/clock.ts";
import { createLog } from "../../../src/lib/log.ts";
import { openSegments } from "../../../src/store/uploads/item-files.ts";
import { openRemoval, type Removal } from "../../../src/upload/pipeline/file-removal.ts";
import { insertUpload } from "../../../src/upload/upload-rows.ts";
import { until } from "../../support/until.ts";
import { type BundleFixture, openBundleFixture, type SignedItem } from "./bundle-fixture.ts";
import { createFakeChain, type FakeChain } from "./fake-chain.ts";

let fixture: BundleFixture;
let chain: FakeChain;
let opened: Removal[];
let gone: string[];
beforeEach(async () => {
  fixture = await openBundleFixture();
  chain = createFakeChain(100);
  opened = [];
  gone = [];
});
afterEach(async () => {
  for (const each of opened) await each.close();
  await fixture.close();
});

async function removal(graceMs = 0, clock: Clock = Date.now): Promise<Removal> {
  const log = createLog({ level: "error", format: "json", clock: Date.now, write: () => undefined });
  const { database: ledger, folder } = fixture;
  const made = await openRemoval({ ledger, folder, onGone: (file) => gone.push(file), graceMs, clock, log });
  opened.push(made);
  return made;
}

const isThere = (file: string) => existsSync(join(fixture.folder, file));

/** Takes items, and brings all that waits onto the chain for good. */
async function permanent(items: readonly SignedItem[], apart: boolean): Promise<string[]> {
  const places = await fixture.take(items, { apart });
  const before = fixture.ended.permanent;
  const pipeline = fixture.start(chain);
  await until(() => {
    chain.mine();
    return fixture.ended.permanent === before + items.length;
  }, "they are permanent");
  await pipeline.close();
  return [...new Set(places.map(({ file }) => file))];
}

test("the files of permanent items go, and the layout of their bundle, after a while", async () => {
  const own = await permanent(fixture.sign([10, 20]), true);
  const left = [...fixture.left];
  expect(left.filter((file) => file.startsWith("bundles/"))).toHaveLength(1);
  const removing = await removal(50);
  await removing.idle();
  expect(own.map(isThere)).toEqual([false, false]);
  expect(left.map(isThere)).toEqual(left.map(() => false));
});

test("what is noted stays for those who found it just before", async () => {
  let now = Date.now();
  const removing = await removal(400, () => now);
  const own = await permanent(fixture.sign([10]), true);
  removing.note(own);
  now += 399;
  removing.note([]); // it looks at its clock
  await Bun.sleep(100); // time for a removal, which must not happen
  expect(own.map(isThere)).toEqual([true]);
  now += 1;
  removing.note([]);
  await removing.idle();
  expect(own.map(isThere)).toEqual([false]);
});

test("a segment stays while one item in it is needed, and goes with the last", async () => {
  const [first, second] = fixture.sign([10, 20]) as [SignedItem, SignedItem];
  const [segment = ""] = await permanent([first], false);
  await fixture.take([second]);
  const removing = await removal();
  removing.note([segment]);
  await removing.idle();
  expect([isThere(segment), gone.includes(segment)]).toEqual([true, false]);
  const pipeline = fixture.start(chain);
  await until(() => {
    chain.mine();
    return fixture.ended.permanent === 2;
  }, "the second is permanent");
  await pipeline.close();
  removing.note([segment]);
  await removing.idle();
  expect([isThere(segment), gone.includes(segment)]).toEqual([false, true]);
});

test("a segment that was written to a moment ago stays: what was written may be on its way to its row", async () => {
  const [segment = ""] = await permanent(fixture.sign([10]), false);
  let now = Date.now();
  const removing = await removal(300, () => now);
  const later = new Date(now + 300);
  utimesSync(join(fixture.folder, segment), later, later);
  removing.note([segment]);
  now += 300;
  removing.note([]); // it looks at its clock
  await Bun.sleep(100); // time for a removal, which must not happen
  expect(isThere(segment)).toBe(true);
  now += 300;
  removing.note([]);
  await removing.idle();
  expect(isThere(segment)).toBe(false);
});

test("nothing that was appended to a removed segment is promised, and the next segment is another", async () => {
  const [segment = ""] = await permanent(fixture.sign([10]), false);
  const removing = await removal();
  removing.note([segment]);
  await removing.idle();
  const [late, next] = fixture.sign([30, 40]) as [SignedItem, SignedItem];
  const row = (await fixture.database.read((tx) => tx.get("SELECT id FROM uploads LIMIT 1"))) as {
    id: string;
  };
  expect(row.id).toBeDefined();
  const bytes = { file: segment, offset: 0, size: late.bytes.length };
  const { findUpload } = await import("../../../src/upload/upload-rows.ts");
  const known = await fixture.database.read((tx) => findUpload(tx, row.id));
  if (known === undefined) throw new Error("the item is there");
  const promised = fixture.database.write((tx) => insertUpload(tx, { ...known, id: late.id, bytes }));
  await expect(promised).rejects.toMatchObject({ code: "busy" });
  const [place] = await fixture.take([next]);
  expect(place?.file).not.toBe(segment);
  expect(isThere(place?.file ?? "")).toBe(true);
});

test("a thread whose segment was removed begins another one", () => {
  const folder = join(fixture.folder, "thread");
  mkdirSync(join(folder, "segments"), { recursive: true });
  let names = 0;
  const segments = openSegments(folder, () => {
    names += 1;
    return `segment-${names}`;
  });
  const item = new Uint8Array([1, 2, 3]);
  expect(segments.append([item])).toEqual({ file: "segments/segment-1", offsets: [0] });
  expect(segments.append([item])).toEqual({ file: "segments/segment-1", offsets: [3] });
  Bun.spawnSync(["rm", join(folder, "segments/segment-1")]);
  expect(segments.append([item, item])).toEqual({ file: "segments/segment-2", offsets: [0, 3] });
});

test("what a crash left behind is found at the next start, and what is needed stays", async () => {
  const [waiting] = await fixture.take(fixture.sign([10]));
  const gone = ["segments/nobodys", "items/cut-short", "bundles/of-nothing", "bundles/half.part"];
  mkdirSync(join(fixture.folder, "bundles"), { recursive: true });
  mkdirSync(join(fixture.folder, "parts"), { recursive: true });
  for (const file of gone) writeFileSync(join(fixture.folder, file), "bytes");
  // Unfinished multipart uploads remove their own files.
  writeFileSync(join(fixture.folder, "parts/under-way"), "bytes");
  const old = new Date(Date.now() - 60_000);
  utimesSync(join(fixture.folder, "segments/nobodys"), old, old);
  const removing = await removal();
  await removing.idle();
  expect(gone.map(isThere)).toEqual([false, false, false, false]);
  expect(isThere("parts/under-way")).toBe(true);
  expect(isThere(waiting?.file ?? "")).toBe(true);
  expect(readdirSync(join(fixture.folder, "segments"))).toHaveLength(1);
});
