/**
 * Places of found items over restarts: looked at before anyone is asked, checked as a hint is, dropped when untrue,
 * bounded, and never a way around the block list.
 * @module
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Id, idBytes } from "../../src/arweave/id.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { Failure } from "../../src/failures.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openFoundItems, type StoredPlace } from "../../src/store/found-items.ts";
import { madeId } from "../chain/data-node.ts";
import { writeRootIndex } from "../support/cdb64.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { makeItem, makeNested } from "./bundles.ts";
import { type Harness, type HarnessOptions, isSame, joined, openHarness } from "./content-harness.ts";
import { type ItemFixture, openItemFixture, type PostedBundle } from "./item-fixture.ts";

const none = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "cairn-stored-items-"));
const closers: (() => Promise<unknown>)[] = [];
const direct = makeItem(2_000);
const nested = makeItem(700);
const large = makeItem(1_200_000);
let fixture: ItemFixture;
let bundle: PostedBundle;
let otherRootId: Id;
let plainId: Id;

beforeAll(async () => {
  fixture = await openItemFixture();
  bundle = await fixture.postBundle([makeItem(5), direct, makeNested([makeItem(9), nested]), large]);
  ({ rootId: otherRootId } = await fixture.postBundle([makeItem(1)]));
  plainId = await fixture.postData(new Uint8Array(100), []);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  fixture.node.setFault(() => undefined);
  fixture.node.requests.length = 0;
});
afterAll(async () => {
  await fixture.close();
  removeFolder(folder);
});

/** A fixture whose places are stored; each test has its own folder, which outlives the fixture. */
async function inFolder<Value>(
  own: string,
  options: Partial<HarnessOptions>,
  work: (harness: Harness) => Promise<Value>,
): Promise<Value> {
  const harness = openHarness({ nodeUrls: [fixture.node.url], foundItemsMax: 100, folder: own, ...options });
  try {
    return await work(harness);
  } finally {
    await harness.closeKeeping();
  }
}

const newFolder = () => mkdtempSync(join(folder, "test-"));

function indexOf(id: Id, rootId = bundle.rootId): string {
  const path = join(folder, `${Bun.randomUUIDv7()}.cdb`);
  writeFileSync(path, writeRootIndex([[id, { r: idBytes(rootId) }]]));
  return path;
}

const wholeOf = (opened: OpenContent) => joined(opened.read({ start: 0, end: opened.size }, none));

async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => "no failure",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}

/** What the file has; nothing else has it open. */
function rowOf(own: string, id: Id): StoredPlace | undefined {
  const rows = openFoundItems(join(own, "found-items.sqlite"), { log: silentLog });
  const row = rows.find(id);
  rows.close();
  return row;
}

function writeRow(own: string, id: Id, place: StoredPlace): void {
  const rows = openFoundItems(join(own, "found-items.sqlite"), { log: silentLog });
  rows.store(id, place);
  rows.close();
}

describe("an item that was found", () => {
  test.each([
    ["in a transaction", direct],
    ["in a nested bundle", nested],
  ])("%s is found after a restart, without any source of its place", async (_name, item) => {
    const own = newFolder();
    await inFolder(own, { rootFiles: [indexOf(item.id)] }, (harness) => harness.content.open(item.id, none));
    fixture.node.requests.length = 0;
    await inFolder(own, {}, async (harness) => {
      const opened = await harness.content.open(item.id, none);
      expect([opened.verified, isSame(await wholeOf(opened), item.payload)]).toEqual([true, true]);
    });
    // Its place is known: no source is asked about the id.
    expect(fixture.node.requests).not.toContain(`GET /tx/${item.id}`);
    const { parents: path, itemOffset } = bundle.place(item.id);
    expect(rowOf(own, item.id)).toMatchObject({ rootId: bundle.rootId, path, itemOffset });
  });

  test("and is large stays verified after a complete check", async () => {
    const own = newFolder();
    await inFolder(own, { rootFiles: [indexOf(large.id)] }, async (harness) => {
      const opened = await harness.content.open(large.id, none);
      expect(opened.verified).toBe(false);
      await wholeOf(opened);
    });
    await inFolder(own, {}, async (harness) => {
      const opened = await harness.content.open(large.id, none);
      expect([opened.verified, isSame(opened.digest, sha256(large.payload))]).toEqual([true, true]);
    });
  });

  test("is rejected after a restart when it was blocked meanwhile", async () => {
    const own = newFolder();
    await inFolder(own, { rootFiles: [indexOf(direct.id)] }, (harness) => harness.content.open(direct.id, none));
    await inFolder(own, {}, async (harness) => {
      harness.blockedIds.add(direct.id);
      expect(await codeOf(harness.content.open(direct.id, none))).toBe("blocked");
      harness.blockedIds.clear();
      harness.blockedIds.add(bundle.rootId);
      const opening = harness.content.open(direct.id, none).then(wholeOf);
      expect(await codeOf(opening)).toBe("blocked");
    });
  });

  test("is looked for again, and its place stays, after its root was temporarily unavailable", async () => {
    const own = newFolder();
    await inFolder(own, { rootFiles: [indexOf(direct.id)] }, (harness) => harness.content.open(direct.id, none));
    fixture.node.setFault(() => ({ kind: "reset" }));
    await inFolder(own, {}, async (harness) => {
      expect(await codeOf(harness.content.open(direct.id, none))).toBe("source_failed");
    });
    fixture.node.setFault(() => undefined);
    await inFolder(own, {}, async (harness) => {
      expect((await harness.content.open(direct.id, none)).verified).toBe(true);
    });
  });
});

describe("a false row", () => {
  const digest = new Uint8Array(32).fill(1);
  const wrong: readonly (readonly [string, () => StoredPlace])[] = [
    ["root", () => ({ rootId: otherRootId, path: [], itemOffset: 96, itemSize: 1, digest })],
    ["root, which is not a bundle,", () => ({ rootId: plainId, path: [], itemOffset: 0, itemSize: 1, digest })],
    ["offset", () => ({ rootId: bundle.rootId, path: [], itemOffset: 77, itemSize: 1, digest })],
    ["path", () => ({ rootId: bundle.rootId, path: [madeId(4)], itemOffset: 0, itemSize: 1, digest })],
  ];
  test.each(wrong)("in its %s is dropped, and the place from other sources is stored", async (_name, place) => {
    const own = newFolder();
    writeRow(own, nested.id, place());
    await inFolder(own, {}, async (harness) => {
      expect(await codeOf(harness.content.open(nested.id, none))).toBe("not_found");
    });
    expect(rowOf(own, nested.id)).toBeUndefined();
    writeRow(own, nested.id, place());
    await inFolder(own, { rootFiles: [indexOf(nested.id)] }, async (harness) => {
      const opened = await harness.content.open(nested.id, none);
      expect([opened.verified, isSame(opened.digest, sha256(nested.payload))]).toEqual([true, true]);
    });
    expect(rowOf(own, nested.id)?.itemOffset).toBe(bundle.place(nested.id).itemOffset);
  });

  test("never gives its digest to another place", async () => {
    const own = newFolder();
    const { itemOffset } = bundle.place(large.id);
    writeRow(own, large.id, { rootId: bundle.rootId, path: [], itemOffset, itemSize: 5, digest });
    await inFolder(own, {}, async (harness) => {
      expect(await harness.content.open(large.id, none)).toMatchObject({
        verified: false,
        digest: undefined,
      });
    });
  });
});

describe("the file", () => {
  const place = (number: number): StoredPlace => ({
    rootId: madeId(number),
    path: [madeId(number + 1)],
    itemOffset: number,
    itemSize: 100,
    digest: undefined,
  });

  test("stores the most recently used places, over restarts", () => {
    const path = join(newFolder(), "rows.sqlite");
    let rows = openFoundItems(path, { log: silentLog, rowsMax: 3 });
    for (const number of [1, 2, 3]) rows.store(madeId(number), place(number));
    rows.store(madeId(1), place(1));
    rows.close();
    rows = openFoundItems(path, { log: silentLog, rowsMax: 3 });
    rows.store(madeId(4), place(4));
    expect([1, 2, 3, 4].map((number) => rows.find(madeId(number))?.itemOffset)).toEqual([1, undefined, 3, 4]);
    rows.drop(madeId(3));
    rows.store(madeId(5), place(5));
    expect([1, 3, 4, 5].map((number) => rows.find(madeId(number))?.itemOffset)).toEqual([1, undefined, 4, 5]);
    rows.close();
  });

  test("stores the digest of a place until another place is stored", () => {
    const rows = openFoundItems(join(newFolder(), "rows.sqlite"), { log: silentLog });
    const digest = new Uint8Array(32).fill(7);
    rows.store(madeId(1), { ...place(1), digest });
    rows.store(madeId(1), place(1));
    expect(rows.find(madeId(1))).toEqual({ ...place(1), digest });
    rows.store(madeId(1), place(2));
    expect(rows.find(madeId(1))).toEqual(place(2));
    rows.close();
  });

  test("is created again when it is damaged, with a warning", () => {
    const path = join(newFolder(), "rows.sqlite");
    writeFileSync(path, "not a database, but long enough to be read as the head of one".repeat(200));
    const { log, lines } = createRecordingLog();
    const rows = openFoundItems(path, { log });
    rows.store(madeId(1), place(1));
    expect(rows.find(madeId(1))).toEqual(place(1));
    expect(lines).toHaveLength(1);
    rows.close();
  });
});
