/**
 * One batch of a bundle: exactly the valid items become rows, whatever is beside them, however the walk
 * is cut.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { writeBundle, writeBundleHeader } from "../../src/arweave/bundle.ts";
import { checkItem } from "../../src/arweave/data-item.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { createFilterKeys } from "../../src/store/index/filter-key.ts";
import type { ItemRow } from "../../src/store/index/index-types.ts";
import { readBatch } from "../../src/store/index/rows/row-batch.ts";
import { type UnbundleJob, type UnbundleResult, unbundle } from "../../workers/unbundle.ts";
import { indexFile } from "../store/index/index-file.ts";
import { itemsOfBatch } from "../support/batch-items.ts";
import { makeItem, makeItems, makeNested, noise, openFolder, seedOf, signers, spoil } from "./samples.ts";

const folder = openFolder();
afterAll(folder.remove);

const always = '{"always":true}';
const never = '{"never":true}';
const rootId = idFromBytes(seedOf(100));
const filterSecret = seedOf(101);
const keys = createFilterKeys(filterSecret);

type Batch = Extract<UnbundleResult, { kind: "batch" }>;

function jobOf(bytes: Uint8Array, changes: Partial<UnbundleJob> = {}): UnbundleJob {
  return {
    path: folder.file("root", bytes),
    root: { height: 9, txIndex: 3 },
    rootId,
    bundleId: rootId,
    start: 0,
    size: bytes.length,
    parentOffset: null,
    depth: 0,
    from: { index: 0 },
    entriesMax: 1_000,
    bytesMax: 2 ** 30,
    indexFilter: always,
    unbundleFilter: always,
    bypassFilter: false,
    indexPath: undefined,
    filterSecret,
    ...changes,
  };
}

function batchOf(response: UnbundleResult): Batch {
  if (response.kind !== "batch") throw new Error(response.reason);
  return response;
}

function rowsOf(response: UnbundleResult): readonly ItemRow[] {
  return itemsOfBatch(readBatch(batchOf(response).rows, keys));
}

/** What the index must say of items that are back to back from a byte on. */
function expectedRows(items: readonly Uint8Array[], start: number, parentOffset: number | null): ItemRow[] {
  let at = start + 32 + 64 * items.length;
  return items.map((bytes) => {
    const item = checkItem(bytes, "strict");
    if (item.kind !== "item") throw new Error(item.reason);
    const { header } = item;
    const row: ItemRow = {
      place: { height: 9, txIndex: 3, offset: at },
      id: header.id,
      parentOffset,
      signatureType: header.signatureType,
      owner: new Uint8Array(header.owner),
      ownerAddress: header.ownerAddress,
      target: header.target,
      anchor: header.anchor,
      tags: header.tags,
      headerSize: header.headerSize,
      size: item.data.length,
      digest: sha256(item.data),
    };
    at += bytes.length;
    return row;
  });
}

describe("unbundle", () => {
  test("gives every item of every signature type its row, small, large and empty", () => {
    const fields = {
      target: idFromBytes(seedOf(20)),
      anchor: idFromBytes(seedOf(21)),
      tags: [{ name: "Content-Type", value: "text/plain" }],
    };
    const items = [
      ...signers.map((signer, index) => makeItem(`payload ${index}`, fields, signer)),
      makeItem(noise(5 * 2 ** 20 + 1, 1), fields),
      makeItem(""),
      makeItem(noise(2 * 2 ** 20 + 77, 2), {}),
    ];
    const response = unbundle(jobOf(writeBundle(items)));
    expect(rowsOf(response)).toEqual(expectedRows(items, 0, null));
    expect(batchOf(response)).toMatchObject({
      count: items.length,
      invalidCount: 0,
      bundles: [],
      next: undefined,
    });
    expect(batchOf(response).ids).toEqual(expectedRows(items, 0, null).map(({ id }) => id));
  });

  test("tests the ids of its rows in an index whose file is given", () => {
    using index = indexFile();
    const filterSecret = index.reader.filterSecret;
    const testedOf = (indexPath: string | undefined) => {
      const response = unbundle(jobOf(writeBundle(makeItems(3)), { filterSecret, indexPath }));
      return readBatch(batchOf(response).rows, createFilterKeys(filterSecret)).tested;
    };
    expect(testedOf(undefined)).toBeUndefined();
    for (let time = 0; time < 2; time += 1)
      expect(testedOf(index.path)).toEqual({ version: 0, present: new Uint32Array(0) });
    using other = indexFile();
    expect(() => unbundle(jobOf(writeBundle(makeItems(3)), { filterSecret, indexPath: other.path }))).toThrow(
      "ids are tested in the index that they are for",
    );
    expect(testedOf(index.path)).toBeDefined();
  });

  test("reads a bundle from the middle of a root's data, and names its parent", () => {
    const items = makeItems(3);
    const bundle = writeBundle(items);
    const response = unbundle(
      jobOf(concatBytes([noise(777, 3), bundle, noise(99, 4)]), {
        start: 777,
        size: bundle.length,
        parentOffset: 555,
        depth: 1,
      }),
    );
    expect(rowsOf(response)).toEqual(expectedRows(items, 777, 555));
  });

  test("says the same however the walk is cut, with and without the offset handed on", () => {
    const items = [...makeItems(23), makeItem(noise(3 * 2 ** 20, 5)), ...makeItems(4, "after")];
    const whole = expectedRows(items, 0, null);
    const job = jobOf(writeBundle(items));
    for (const cut of [{ entriesMax: 1 }, { entriesMax: 7 }, { bytesMax: 1 }, { bytesMax: 2_000 }, { entriesMax: 27 }])
      for (const handsOn of [true, false]) {
        const rows: ItemRow[] = [];
        let from: UnbundleJob["from"] | undefined = { index: 0 };
        while (from !== undefined) {
          const batch = batchOf(unbundle({ ...job, ...cut, from }));
          rows.push(...rowsOf(batch));
          expect(batch.count).toBe(items.length);
          from = batch.next && (handsOn ? batch.next : { index: batch.next.index });
        }
        expect(rows).toEqual(whole);
      }
  });

  test("leaves out what is wrong, says why, and keeps the siblings", () => {
    const good = makeItems(6);
    const [first, second, third, fourth, fifth, sixth] = good as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ];
    const last = (bytes: Uint8Array) => bytes.length - 1;
    const bad: readonly (readonly [Uint8Array, RegExp])[] = [
      [spoil(second, last(second), 0xff), /signature/],
      [spoil(third, 2 + 5, 0xff, 0xfe), /item's id is not the id in its bundle/],
      [spoil(fourth, 0, 99, 0), /type 99 is unknown/],
      [spoil(fifth, 2 + 64 + 3, 1, 2, 3), /signature|key/],
      [new Uint8Array(0), /cut short/],
      [noise(70, 6), /./],
    ];
    const items = [first, ...bad.map(([bytes]) => bytes), sixth];
    const header = writeBundleHeader(
      items.map((bytes, index) => ({
        id: expectedRows([good[index] ?? first], 0, null)[0]?.id ?? rootId,
        size: bytes.length,
      })),
    );
    // The sixth good item is last: its entry must carry its own id.
    header.set(
      concatBytes([writeBundleHeader([{ id: idOf(sixth), size: sixth.length }])]).subarray(32),
      32 + 64 * (items.length - 1),
    );
    const response = unbundle(jobOf(concatBytes([header, ...items])));
    expect(rowsOf(response).map(({ id }) => id)).toEqual([idOf(first), idOf(sixth)]);
    const { invalid, invalidCount } = batchOf(response);
    expect(invalidCount).toBe(bad.length);
    expect(invalid.map(({ entry }) => entry)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const [index, [, reason]] of bad.entries()) expect(invalid[index]?.reason).toMatch(reason);
  });

  test("keeps the items before an entry that reaches beyond the bundle, and says where it broke", () => {
    const items = makeItems(5);
    const bundle = writeBundle(items);
    for (const size of [[0xff, 0xff, 0xff, 0xff], Array.from({ length: 32 }, () => 0xff)]) {
      const spoiled = spoil(bundle, 32 + 64 * 2, ...size);
      for (const entriesMax of [1_000, 2, 1]) {
        const rows: ItemRow[] = [];
        let invalid: Batch["invalid"] = [];
        let from: UnbundleJob["from"] | undefined = { index: 0 };
        while (from !== undefined) {
          const batch = batchOf(unbundle(jobOf(spoiled, { entriesMax, from })));
          rows.push(...rowsOf(batch));
          invalid = [...invalid, ...batch.invalid];
          from = batch.next;
        }
        expect(rows).toEqual(expectedRows(items, 0, null).slice(0, 2));
        expect(invalid).toEqual([
          {
            entry: 2,
            id: idOf(items[2]!),
            offset: expect.any(Number),
            reason: expect.stringContaining("entry 2 reaches beyond"),
          },
        ]);
      }
    }
  });

  test.each([
    ["no bytes at all", new Uint8Array(0)],
    ["31 bytes", new Uint8Array(31)],
    ["a count of 2^255", spoil(writeBundle(makeItems(2)), 31, 0x80)],
    ["a count of 2^53", spoil(writeBundle(makeItems(2)), 6, 0x20)],
    ["one entry more than fits", spoil(new Uint8Array(32 + 64), 0, 2)],
  ])("rejects %s as no bundle", (_name, bytes) => {
    expect(unbundle(jobOf(bytes))).toEqual({
      kind: "malformed",
      reason: expect.stringMatching(/bundle|count/),
    });
  });

  test("takes a bundle of no items, and one with bytes behind its last item", () => {
    expect(batchOf(unbundle(jobOf(new Uint8Array(32))))).toMatchObject({ count: 0, next: undefined });
    const items = makeItems(2);
    const response = unbundle(jobOf(concatBytes([writeBundle(items), noise(50, 7)])));
    expect(rowsOf(response)).toEqual(expectedRows(items, 0, null));
  });

  test("names bundles among the items: those in the index and those the unbundle filter chose", () => {
    const inner = makeItems(2);
    const nested = makeNested(inner, { tags: [{ name: "App", value: "a" }] });
    const items = [makeItem("plain"), nested];
    const bundle = writeBundle(items);
    const at = 32 + 64 * 2 + (items[0]?.length ?? 0);
    const bundles = (changes: Partial<UnbundleJob>) => batchOf(unbundle(jobOf(bundle, changes))).bundles;
    const row = expectedRows(items, 0, null)[1];
    const found = [
      {
        id: idOf(nested),
        place: { height: 9, txIndex: 3, offset: at },
        parentOffset: null,
        headerSize: row?.headerSize,
        size: row?.size,
        depth: 1,
        bypassFilter: false,
      },
    ];
    expect(bundles({})).toEqual(found as typeof bundles extends () => infer Rows ? Rows : never);
    expect(bundles({ indexFilter: never })).toHaveLength(1);
    expect(bundles({ unbundleFilter: never })).toHaveLength(1);
    expect(bundles({ indexFilter: never, unbundleFilter: never })).toEqual([]);
    expect(bundles({ indexFilter: never, unbundleFilter: never, bypassFilter: true })).toMatchObject([
      { bypassFilter: true },
    ]);
    expect(bundles({ indexFilter: never, unbundleFilter: '{"tags":[{"name":"App","value":"b"}]}' })).toEqual([]);
  });

  test("indexes what the index filter chooses, by tags, owner and parent", () => {
    const items = makeItems(4);
    const bundle = writeBundle(items);
    const ids = (indexFilter: string, bypassFilter = false) =>
      rowsOf(unbundle(jobOf(bundle, { indexFilter, bypassFilter }))).map(({ id }) =>
        items.findIndex((item) => idOf(item) === id),
      );
    const owner = expectedRows(items, 0, null)[0]?.ownerAddress;
    expect(ids(never)).toEqual([]);
    expect(ids(never, true)).toEqual([0, 1, 2, 3]);
    expect(ids('{"tags":[{"name":"Number","value":"2"}]}')).toEqual([2]);
    expect(ids(`{"attributes":{"owner_address":"${owner}"}}`)).toEqual([0, 1, 2, 3]);
    expect(ids(`{"attributes":{"parent_id":"${rootId}"}}`)).toEqual([0, 1, 2, 3]);
    expect(ids('{"not":{"isNestedBundle":true}}')).toEqual([]);
  });

  test("throws when the file is shorter than the bundle, or not there", () => {
    const bundle = writeBundle(makeItems(2));
    expect(() => unbundle(jobOf(bundle.subarray(0, bundle.length - 1), { size: bundle.length }))).toThrow(/file ends/);
    expect(() => unbundle(jobOf(bundle, { path: `${folder.path}/absent` }))).toThrow(/ENOENT/);
  });

  test("B1: ends within bounds for every spoiled byte of a bundle", () => {
    const items = makeItems(2);
    const bundle = writeBundle(items);
    const whole = new Map(expectedRows(items, 0, null).map((row) => [row.id, row]));
    const harmless: number[] = [];
    for (let at = 0; at < bundle.length; at += 1) {
      const response = unbundle(jobOf(spoil(bundle, at, (bundle[at] ?? 0) ^ 0x41)));
      if (response.kind === "malformed") continue;
      for (const row of rowsOf(response)) expect(row).toEqual(whole.get(row.id) as ItemRow);
      if (rowsOf(response).length === items.length) harmless.push(at);
    }
    // A flag that is neither 0 nor 1 means "absent", as published readers have it, and is not signed; nothing
    // else passes.
    const flags = expectedRows(items, 0, null).flatMap(({ place: { offset } }) => [offset + 98, offset + 99]);
    expect(harmless).toEqual(flags);
  });
});

function idOf(item: Uint8Array) {
  const id = expectedRows([item], 0, null)[0]?.id;
  if (id === undefined) throw new Error("an item has an id");
  return id;
}
