/**
 * Bundles: headers are read in steps of any size, and no number in them is believed before it is checked.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type BundleEntry,
  bundleEntrySize,
  type EntryPlace,
  firstEntry,
  isBundleTags,
  readBundleCount,
  readBundleEntries,
  writeBundle,
  writeBundleHeader,
} from "../../src/arweave/bundle.ts";
import { checkItem, createDataItem } from "../../src/arweave/data-item.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import { signers, testKey } from "../support/signers.ts";

const items = signers.map((signer, index) => createDataItem({ data: "x".repeat(index) }, signer));
const bundle = writeBundle(items);
const id = idFromBytes(testKey(1));

describe("writeBundle", () => {
  test("stores items so that each is found and valid where its entry says", () => {
    const entries = readAll(bundle, 1);
    expect(entries.length).toBe(items.length);
    entries.forEach(({ id, offset, size }, index) => {
      const checked = checkItem(bundle.subarray(offset, offset + size), "strict");
      if (checked.kind === "invalid") throw new Error(checked.reason);
      expect(checked.header.id).toBe(id);
      expect(bundle.subarray(offset, offset + size)).toEqual(items[index] ?? new Uint8Array(0));
    });
    expect(entries.at(-1)).toMatchObject({ index: items.length - 1 });
  });

  test("writes a bundle of nothing as a count of zero", () => {
    const empty = writeBundle([]);
    expect(empty).toEqual(new Uint8Array(32));
    expect(readBundleCount(empty, 32)).toEqual({ kind: "count", count: 0, headerSize: 32 });
  });
});

describe("B1: readBundleCount", () => {
  const countOf = (value: bigint) => {
    const bytes = new Uint8Array(32);
    bytes.set(Uint8Array.fromHex(value.toString(16).padStart(64, "0")).reverse());
    return bytes;
  };

  test.each([
    [0n, 32, 0],
    [1n, 32 + 64, 1],
    [1_000_000n, 32 + 64_000_000, 1_000_000],
    [300n, 2 ** 53 - 1, 300],
  ])("takes a count of %p in %p bytes", (count, bundleSize, expected) => {
    expect(readBundleCount(countOf(count), bundleSize)).toMatchObject({ kind: "count", count: expected });
  });

  test.each([
    [1n, 32 + 63],
    [2n, 32 + 127],
    [2n ** 32n, 1_000_000],
    [2n ** 53n, 2 ** 53 - 1],
    [2n ** 53n + 1n, 2 ** 53 - 1],
    [2n ** 64n, 2 ** 53 - 1],
    [2n ** 255n, 2 ** 53 - 1],
    [2n ** 256n - 1n, 2 ** 53 - 1],
  ])("rejects a count of %p in %p bytes", (count, bundleSize) => {
    const read = readBundleCount(countOf(count), bundleSize);
    expect(read).toMatchObject({ kind: "invalid", reason: expect.stringContaining("beyond the") });
  });

  test("rejects fewer than 32 bytes", () => {
    expect(readBundleCount(new Uint8Array(31), 31).kind).toBe("invalid");
    expect(readBundleCount(new Uint8Array(0), 0).kind).toBe("invalid");
  });
});

describe("B1: readBundleEntries", () => {
  test("gives the same entries in steps of any size", () => {
    const whole = readAll(bundle, items.length);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 63 }), (perStep, rest) => {
        expect(readAll(bundle, perStep, rest)).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  test("walks a million entries in pieces of 64 KiB, remembering a place only", () => {
    const count = 1_000_000;
    const piece = writeBundleHeader(Array(1_024).fill({ id, size: 1 })).subarray(32);
    const bundleSize = 32 + count * (bundleEntrySize + 1);
    let place = firstEntry(count);
    while (place.index < count) {
      const step = readBundleEntries(piece, place, count, bundleSize);
      expect(step.fault).toBeUndefined();
      place = step.next;
    }
    expect(place).toEqual({ index: count, offset: bundleSize });
  });

  const header = writeBundleHeader([
    { id, size: 10 },
    { id, size: 20 },
    { id, size: 30 },
  ]);
  const bundleSize = header.length + 60;
  const withSize = (index: number, value: bigint) => {
    const changed = header.slice();
    changed.set(Uint8Array.fromHex(value.toString(16).padStart(64, "0")).reverse(), 32 + index * 64);
    return changed.subarray(32);
  };

  test.each([
    [0, 61n, 0],
    [1, 51n, 1],
    [2, 31n, 2],
    [1, 2n ** 53n, 1],
    [1, 2n ** 64n, 1],
    [2, 2n ** 255n, 2],
    [0, 2n ** 256n - 1n, 0],
  ])("ends at entry %p when its size is %p, and keeps the %p before it", (index, size, stored) => {
    const step = readBundleEntries(withSize(index, size), firstEntry(3), 3, bundleSize);
    expect(step.entries.length).toBe(stored);
    expect(step.next.index).toBe(index);
    expect(step.fault).toBe(`entry ${index} reaches beyond the bundle's ${bundleSize} bytes`);
  });

  test("shows bytes that belong to no item as the distance to the bundle's end", () => {
    const step = readBundleEntries(header.subarray(32), firstEntry(3), 3, bundleSize + 7);
    expect(step.fault).toBeUndefined();
    expect(bundleSize + 7 - step.next.offset).toBe(7);
  });

  test("reads sizes of zero: it is the item that is invalid then, not its siblings", () => {
    const step = readBundleEntries(withSize(1, 0n), firstEntry(3), 3, bundleSize);
    expect(step.entries.map(({ size }) => size)).toEqual([10, 0, 30]);
    expect(checkItem(new Uint8Array(0), "lenient").kind).toBe("invalid");
  });

  test("reads nothing beyond the count, whatever follows", () => {
    const step = readBundleEntries(header.subarray(32), firstEntry(2), 2, bundleSize);
    expect(step.entries.length).toBe(2);
  });
});

describe("isBundleTags", () => {
  const format = { name: "Bundle-Format", value: "binary" };
  const version = { name: "Bundle-Version", value: "2.0.0" };
  test.each([
    ["format and version", [format, version], true],
    ["version before format", [version, format], true],
    ["version 2.1.3", [format, { name: "Bundle-Version", value: "2.1.3" }], true],
    ["version 1.0.0", [format, { name: "Bundle-Version", value: "1.0.0" }], false],
    ["version 20", [format, { name: "Bundle-Version", value: "20" }], false],
    ["format json", [{ name: "Bundle-Format", value: "json" }, version], false],
    ["a name in lower case", [{ name: "bundle-format", value: "binary" }, version], false],
    ["no version", [format], false],
    ["no tags", [], false],
  ])("of %s is right", (_name, tags, expected) => {
    expect(isBundleTags(tags)).toBe(expected);
  });
});

/** Reads every entry, so many a step, with some bytes of the next entry behind them. */
function readAll(bytes: Uint8Array, perStep: number, rest = 0): BundleEntry[] {
  const head = readBundleCount(bytes, bytes.length);
  if (head.kind === "invalid") throw new Error(head.reason);
  const entries: BundleEntry[] = [];
  let place: EntryPlace = firstEntry(head.count);
  while (place.index < head.count) {
    const start = 32 + place.index * bundleEntrySize;
    const piece = bytes.subarray(start, start + perStep * bundleEntrySize + rest);
    const step = readBundleEntries(piece, place, head.count, bytes.length);
    if (step.fault !== undefined) throw new Error(step.fault);
    entries.push(...step.entries);
    place = step.next;
  }
  expect(place.offset).toBe(bytes.length);
  return entries;
}
