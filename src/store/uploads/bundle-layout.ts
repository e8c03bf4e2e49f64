/**
 * The layout of a bundle, kept in a file beside the items: its header, where the bytes behind it lie, and the hashes of
 * its chunks. With it any chunk is made, and proven, without looking at another one.
 *
 * The file can be made again from the items; one that is damaged is taken for none.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { concatBytes, equalBytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";

/** Bytes of the bundle from `start` on, up to the start of the next run, which lie together in a file. */
export type LayoutRun = Readonly<{
  start: number;
  /** Below the folder of uploads. */
  file: string;
  offset: number;
}>;

/** A layout. */
export type BundleLayout = Readonly<{
  header: Uint8Array;
  /** In order; together they cover what is behind the header. */
  runs: readonly LayoutRun[];
  /** Of the whole bundle. Bytes. */
  dataSize: number;
  /** SHA-256 of each chunk, the empty one at the end included. */
  hashes: Uint8Array;
}>;

/** Folder of layouts, below that of uploads. */
export const layoutFolder = "bundles";

/** Changes with the form of the file. */
const magic = 0x43_42_4c_31;

/** The magic number, four counts, and the size of the data. */
const prefixSize = 5 * 4 + 8;
const runSize = 4 + 8 + 8;
const checksumSize = 32;

/**
 * Joins runs that lie behind one another in a file.
 *
 * @param items - In their order in the bundle.
 * @param headerSize - Of the bundle. Bytes.
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

/** Writes a layout as its file has it. */
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

/** Reads the file of a layout; `undefined` for one that is damaged, or of another form. */
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

/** The runs that touch a span of the bundle, with what of the span each has; all offsets in the bundle. */
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

/** The last run that begins at or before a byte; 0 when none does. */
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
