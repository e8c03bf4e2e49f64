/**
 * Walks through bundles to an item: found at its place with few reads, rejected elsewhere, given up
 * in time.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { bundleCountSize, bundleEntrySize, writeBundleHeader } from "../../src/arweave/bundle.ts";
import type { Id } from "../../src/arweave/id.ts";
import type { Hint } from "../../src/chain/hint.ts";
import { walkReadsMax, walkToItem } from "../../src/content/bundle-walk.ts";
import { likelyChunk } from "../../src/content/fetch-to-cache.ts";
import { madeId } from "../chain/data-node.ts";
import { createChance, mutateBytes, mutationSeed } from "../support/mutate.ts";
import { bundleOf, bundleTags, forgedItem, type MadeItem, makeItem, makeNested, placesIn } from "./bundles.ts";

const rootId = madeId(1);
const toRoot: Hint = { rootId, path: [], itemOffset: undefined };

/** Data whose readings are counted; what was never written is zeros. */
function dataOf(size: number, parts: readonly (readonly [at: number, bytes: Uint8Array])[]) {
  const counted = { reads: 0, bytes: 0 };
  const read = async ({ start, end }: Readonly<{ start: number; end: number }>) => {
    if (start < 0 || start > end || end > size) throw new Error(`read ${start} to ${end} of ${size}`);
    counted.reads += 1;
    counted.bytes += end - start;
    const bytes = new Uint8Array(end - start);
    for (const [at, part] of parts) {
      const from = Math.max(start, at);
      const to = Math.min(end, at + part.length);
      if (from < to) bytes.set(part.subarray(from - at, to - at), from - start);
    }
    return bytes;
  };
  return { size, read, pieceEnd: (at: number) => likelyChunk(size, at).end, counted };
}

const wholeData = (bundle: Uint8Array) => dataOf(bundle.length, [[0, bundle]]);

/** An item in as many bundles as there are levels, each with siblings around it. */
function nest(item: MadeItem, levels: number): Uint8Array {
  let inner = item;
  for (let level = 1; level < levels; level += 1) inner = makeNested([makeItem(10), inner, makeItem(0)]);
  return bundleOf([makeItem(100), inner, makeItem(50)]);
}

describe("an item", () => {
  const levels = [1, 2, 3, 4];
  test.each(levels)("in %d bundles is found by every kind of hint, with few reads", async (depth) => {
    const item = makeItem(1_000);
    const bundle = nest(item, depth);
    const place = placesIn(bundle).get(item.id);
    if (place === undefined) throw new Error("it was put there");
    const { itemOffset, itemSize, headerSize, parents, parentStart } = place;
    expect(parents.length).toBe(depth - 1);
    const hints: readonly (readonly [Hint, number])[] = [
      [toRoot, walkReadsMax],
      [{ ...toRoot, itemOffset }, 2 * depth],
      [{ ...toRoot, path: parents }, depth > 1 ? 2 * depth : walkReadsMax],
      [{ ...toRoot, path: parents, itemOffset }, 2 * depth],
    ];
    for (const [hint, readsMax] of hints) {
      const data = wholeData(bundle);
      const walked = await walkToItem(data, item.id, hint);
      if (walked.kind !== "found") throw new Error(Bun.inspect(walked));
      expect(walked.item).toMatchObject({ itemOffset, itemSize, parents, parentStart });
      expect(walked.item.header).toMatchObject({ id: item.id, headerSize });
      expect(data.counted.reads).toBeLessThanOrEqual(readsMax);
    }
  });

  test("in five bundles is not searched for", async () => {
    const item = makeItem(1_000);
    const bundle = nest(item, 5);
    const parents = placesIn(bundle).get(item.id)?.parents ?? [];
    for (const path of [[], parents])
      expect(await walkToItem(wholeData(bundle), item.id, { ...toRoot, path })).toEqual({
        kind: "too far",
        reason: "more than 4 levels",
      });
  });

  test("is found as first, middle and last item, empty, with many tags, and next to a similar item", async () => {
    const tags = Array.from({ length: 100 }, (_, index) => ({
      name: `Name-${index}`,
      value: "v".repeat(20),
    }));
    const items = [makeItem(0), makeItem(300_000), makeItem(10, tags), makeItem(0, tags), makeItem(1)];
    const bundle = bundleOf(items);
    const places = placesIn(bundle);
    for (const { id, headerSize } of items) {
      const { itemOffset, itemSize } = places.get(id) ?? {};
      const walked = await walkToItem(wholeData(bundle), id, toRoot);
      expect(walked).toMatchObject({ kind: "found", item: { itemOffset, itemSize, header: { headerSize } } });
    }
  });

  test("is found at the end of an index of 200,000 entries, which is read in pages", async () => {
    const item = makeItem(1_000);
    const others = Array.from({ length: 200_000 }, (_, index) => ({ id: madeIdFast(index), size: 200 }));
    const header = writeBundleHeader([...others, { id: item.id, size: item.bytes.length }]);
    const itemOffset = header.length + others.length * 200;
    const data = dataOf(itemOffset + item.bytes.length, [
      [0, header],
      [itemOffset, item.bytes],
    ]);
    const walked = await walkToItem(data, item.id, { ...toRoot, itemOffset });
    expect(walked).toMatchObject({ kind: "found", item: { itemOffset } });
    expect(data.counted.reads).toBeLessThanOrEqual(14);
    const one = await walkToItem(data, item.id, toRoot);
    expect(one.kind).toBe("found");
  });

  test("that is listed twice is read where its header is", async () => {
    const [item, other] = [makeItem(100), makeItem(100)];
    const header = writeBundleHeader([
      { id: item.id, size: other.bytes.length },
      { id: item.id, size: item.bytes.length },
    ]);
    const bundle = Buffer.concat([header, other.bytes, item.bytes]);
    const walked = await walkToItem(wholeData(bundle), item.id, toRoot);
    const itemOffset = header.length + other.bytes.length;
    expect(walked).toMatchObject({ kind: "found", item: { itemOffset } });
  });
});

describe("a false hint", () => {
  const [item, other] = [makeItem(1_000), makeItem(1_000)];
  const nested = makeNested([item, makeItem(5)]);
  const bundle = bundleOf([other, nested]);
  const places = placesIn(bundle);
  const offsetOf = (id: Id) => places.get(id)?.itemOffset ?? 0;
  const away = madeId(5);
  const table: readonly (readonly [string, Id, Partial<Hint>])[] = [
    ["an id that is not there", away, {}],
    ["an id that is not there, at the byte of another item", away, { itemOffset: offsetOf(item.id) }],
    ["a byte within another item", item.id, { itemOffset: offsetOf(other.id) + 1 }],
    ["a byte of the index", item.id, { itemOffset: 3 }],
    ["a byte beyond the data", item.id, { itemOffset: 2 ** 53 - 1 }],
    ["a path through an item that is not a bundle", item.id, { path: [other.id] }],
    ["a path through what is not there", item.id, { path: [away] }],
    ["a path that goes on too long to what is not there", away, { path: [nested.id, nested.id] }],
  ];
  test.each(table)("%s finds nothing, after few reads", async (_name, id, hint) => {
    const data = wholeData(bundle);
    const walked = await walkToItem(data, id, { ...toRoot, ...hint });
    expect(walked.kind).toBe("not there");
    expect(data.counted.reads).toBeLessThanOrEqual(6);
  });

  test("data that is not a bundle contains no item", async () => {
    const huge = new Uint8Array(200).fill(255);
    const many = writeBundleHeader([]).fill(1, 0, 1);
    for (const data of [new Uint8Array(0), new Uint8Array(31), new Uint8Array(32), huge, many])
      expect((await walkToItem(wholeData(data), item.id, toRoot)).kind).toBe("not there");
  });

  test("an entry with the item's id before another item's bytes finds nothing", async () => {
    const header = writeBundleHeader([{ id: item.id, size: other.bytes.length }]);
    const staged = Buffer.concat([header, other.bytes]);
    expect((await walkToItem(wholeData(staged), item.id, toRoot)).kind).toBe("not there");
  });

  test("an item with a forged payload is found: only its signature can reject it", async () => {
    const forged = bundleOf([forgedItem(item)]);
    expect((await walkToItem(wholeData(forged), item.id, toRoot)).kind).toBe("found");
  });
});

describe("a search limit", () => {
  test("an index of 1,200,000 entries is given up after 64 reads", async () => {
    const count = 1_200_000;
    const header = new Uint8Array(bundleCountSize);
    new DataView(header.buffer).setUint32(0, count, true);
    const data = dataOf(bundleCountSize + count * bundleEntrySize + 10_000, [[0, header]]);
    expect(await walkToItem(data, madeId(3), toRoot)).toMatchObject({ kind: "too far" });
    expect(data.counted.reads).toBe(walkReadsMax);
  });

  test("a bundle of 1,000 bundles is given up after 64 reads without a hint", async () => {
    const inner = Array.from({ length: 100 }, () => makeNested([makeItem(1)]));
    const items = Array.from({ length: 1_000 }, (_, index) => inner[index % 100] ?? makeItem(1));
    const data = wholeData(bundleOf(items));
    expect(await walkToItem(data, madeId(3), toRoot)).toMatchObject({ kind: "too far" });
    expect(data.counted.reads).toBeLessThanOrEqual(walkReadsMax);
  });

  test("headers that announce 1 MiB of tags take two reads each", async () => {
    const item = makeItem(10, bundleTags);
    const bytes = Buffer.alloc(3 * 2 ** 20);
    bytes.set(item.bytes);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    view.setBigUint64(2 + 64 + 32 + 2 + 8, 1_048_576n, true); // the size of the tags
    const header = writeBundleHeader([{ id: madeId(8), size: bytes.length }]);
    const data = wholeData(Buffer.concat([header, bytes]));
    expect((await walkToItem(data, madeId(3), toRoot)).kind).toBe("not there");
    expect(data.counted.reads).toBeLessThanOrEqual(3);
  });

  test("damaged bundles end with a reason, never with an error or another item", async () => {
    const chance = createChance(mutationSeed);
    console.log(`seed ${mutationSeed}`);
    const item = makeItem(200);
    const samples = [1, 2, 3].map((levels) => nest(item, levels));
    for (let round = 0; round < 2_000; round += 1) {
      const bytes = mutateBytes(samples, chance);
      const data = wholeData(bytes);
      const hint = {
        ...toRoot,
        itemOffset: chance.below(2) === 0 ? undefined : chance.below(bytes.length + 1),
      };
      const walked = await walkToItem(data, item.id, hint);
      expect(data.counted.reads).toBeLessThanOrEqual(walkReadsMax);
      if (walked.kind !== "found") continue;
      expect(walked.item.header.id).toBe(item.id);
      expect(walked.item.itemOffset + walked.item.itemSize).toBeLessThanOrEqual(bytes.length);
    }
  });
});

/** Ids by the hundred thousand. */
function madeIdFast(number: number): Id {
  const bytes = new Uint8Array(32);
  new DataView(bytes.buffer).setUint32(0, number + 1);
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true }) as Id;
}
