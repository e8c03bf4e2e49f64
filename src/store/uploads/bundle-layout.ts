/**
 * The layout of a bundle, stored in a file beside the items: the bundle's header, the locations of the items' bytes,
 * and the hashes of the chunks. Any chunk can be read and proven from the layout alone.
 *
 * A missing or damaged file is built again from the items.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { concatBytes, equalBytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";

/** Bytes of the bundle, from `start` to the start of the next run, that are contiguous in a file. */
type LayoutRun = Readonly<{
  start: number;
  /** Path below the folder of uploads. */
  file: string;
  offset: number;
}>;

/** The contents of a layout file. */
export type BundleLayout = Readonly<{
  header: Uint8Array;
  /** In order; together they cover all bytes after the header. */
  runs: readonly LayoutRun[];
  /** Size of the complete bundle, bytes. */
  dataSize: number;
  /** SHA-256 of each chunk, including the empty chunk at the end. */
  hashes: Uint8Array;
}>;

/** Name of the layouts' folder in the folder of uploads. */
export const layoutFolder = "bundles";

/** Identifies the version of the file format. */
const magic = 0x43_42_4c_31;

/** The magic number, four counts, and the size of the data. */
const prefixSize = 5 * 4 + 8;
const runSize = 4 + 8 + 8;
const checksumSize = 32;

/**
 * Joins items that are contiguous in a file into runs.
 *
 * @param items - In their order in the bundle.
 * @param headerSize - Size of the bundle's header, bytes.
 */
export function runsOf(
  items: readonly Readonly<{ file: string; offset: number; size: number }>[],
  headerSize: number,
): LayoutRun[] {
  const runs: LayoutRun[] = [];
  let start = headerSize;
  for (const { file, offset, size } of items) {
    const last = runs.at(-1);
    const follows = last?.file === file && last.offset + start - last.start === offset;
    if (!follows) runs.push({ start, file, offset });
    start += size;
  }
  return runs;
}

/** Serializes a layout. */
export function writeLayout({ header, runs, dataSize, hashes }: BundleLayout): Uint8Array {
  const files = [...new Set(runs.map(({ file }) => file))];
  const indexes = new Map(files.map((file, index) => [file, index]));
  const names = new TextEncoder().encode(files.join("\n"));
  const prefix = new DataView(new ArrayBuffer(prefixSize));
  for (const [index, count] of [magic, header.length, runs.length, names.length, hashes.length].entries())
    prefix.setUint32(index * 4, count);
  prefix.setFloat64(20, dataSize);
  const places = new DataView(new ArrayBuffer(runs.length * runSize));
  for (const [index, { start, file, offset }] of runs.entries()) {
    places.setUint32(index * runSize, indexes.get(file) ?? 0);
    places.setFloat64(index * runSize + 4, start);
    places.setFloat64(index * runSize + 12, offset);
  }
  const parts = [new Uint8Array(prefix.buffer), header, new Uint8Array(places.buffer), names, hashes];
  const body = concatBytes(parts);
  return concatBytes([body, sha256(body)]);
}

/** Parses a layout file; `undefined` when it is damaged or has another version. */
export function readLayout(bytes: Uint8Array): BundleLayout | undefined {
  if (bytes.length < prefixSize + checksumSize) return undefined;
  const body = bytes.subarray(0, bytes.length - checksumSize);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0) !== magic || !equalBytes(sha256(body), bytes.subarray(body.length))) return undefined;
  const [headerSize, runCount, namesSize, hashesSize] = [4, 8, 12, 16].map((at) => view.getUint32(at));
  assert(headerSize !== undefined && runCount !== undefined, "a layout's counts were read");
  let at = prefixSize;
  const next = (size: number): Uint8Array => {
    at += size;
    return body.subarray(at - size, at);
  };
  const header = next(headerSize);
  const places = next(runCount * runSize);
  const names = new TextDecoder().decode(next(namesSize ?? 0)).split("\n");
  return {
    header,
    runs: readRuns(places, names),
    dataSize: view.getFloat64(20),
    hashes: next(hashesSize ?? 0),
  };
}

function readRuns(places: Uint8Array, names: readonly string[]): LayoutRun[] {
  const view = new DataView(places.buffer, places.byteOffset, places.byteLength);
  return Array.from({ length: places.length / runSize }, (_, index) => ({
    file: names[view.getUint32(index * runSize)] ?? "",
    start: view.getFloat64(index * runSize + 4),
    offset: view.getFloat64(index * runSize + 12),
  }));
}

/** The runs that overlap a span, each cut to the span; all offsets are offsets in the bundle. */
export function* runsWithin(
  { runs, dataSize }: BundleLayout,
  start: number,
  end: number,
): Generator<LayoutRun & Readonly<{ end: number }>> {
  for (let index = lastRunBefore(runs, start); index < runs.length; index += 1) {
    const run = runs[index];
    if (run === undefined || run.start >= end) return;
    const from = Math.max(start, run.start);
    const to = Math.min(end, runs[index + 1]?.start ?? dataSize);
    if (from < to) yield { start: from, end: to, file: run.file, offset: run.offset + from - run.start };
  }
}

/** Index of the last run that begins at or before a byte; else 0. */
function lastRunBefore(runs: readonly LayoutRun[], byte: number): number {
  let low = 0;
  let high = runs.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((runs[middle]?.start ?? 0) <= byte) low = middle;
    else high = middle - 1;
  }
  return low;
}
