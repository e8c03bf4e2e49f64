/**
 * Sorted runs of postings in a temporary file, and their merge into one sorted sequence.
 *
 * The postings of a partition do not fit memory, and one file for each run would make a reader of one key decode a row
 * group of each.
 * @module
 */
import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { assert } from "../lib/assert.ts";
import type { Posting } from "./posting-list.ts";

/** Runs in a file. Memory: one buffer, and a smaller one for each run while they are merged. */
export type PostingRuns = Readonly<{
  /** Whether no run was added. */
  isEmpty: () => boolean;
  /**
   * Adds a run. Its rows must come after those of earlier runs.
   *
   * @param postings - Sorted by key, then by place.
   */
  add: (postings: Iterable<Posting>) => void;
  /** Returns all postings, sorted by key, then by place. The object is reused for each of them. */
  merged: () => Generator<Posting>;
  /** Removes the file. */
  close: () => void;
}>;

/** A posting in the file: the key as a double, then both halves of the place as 32-bit integers. Bytes. */
const entryBytes = 16;

/** Entries of a write, and of the read buffer of one run. */
const writtenEntries = 2 ** 16;
const readEntries = 2 ** 12;

/** @param path - Of the temporary file, which must not exist. */
export function createPostingRuns(path: string): PostingRuns {
  const runs: { start: number; end: number }[] = [];
  let file: number | undefined;

  return {
    isEmpty: () => runs.length === 0,
    add: (postings) => {
      file ??= openSync(path, "wx+", 0o600);
      const start = runs.at(-1)?.end ?? 0;
      const end = start + writeRun(file, start, postings);
      runs.push({ start, end });
    },
    merged: function* () {
      if (file !== undefined) yield* mergeRuns(runs.map((run) => createRunReader(file as number, run)));
    },
    close: () => {
      if (file === undefined) return;
      closeSync(file);
      file = undefined;
      rmSync(path, { force: true });
    },
  };
}

/** Entries in memory, as the numbers of which they consist. */
type Entries = Readonly<{ bytes: Uint8Array; doubles: Float64Array; integers: Uint32Array }>;

function createEntries(count: number): Entries {
  const buffer = new ArrayBuffer(count * entryBytes);
  return { bytes: new Uint8Array(buffer), doubles: new Float64Array(buffer), integers: new Uint32Array(buffer) };
}

/** @returns The bytes that were written at `start`. */
function writeRun(file: number, start: number, postings: Iterable<Posting>): number {
  const { bytes, doubles, integers } = createEntries(writtenEntries);
  let size = 0;
  let count = 0;
  const flush = (): void => {
    const part = bytes.subarray(0, count * entryBytes);
    for (let at = 0; at < part.length; ) at += writeSync(file, part, at, part.length - at, start + size + at);
    size += part.length;
    count = 0;
  };
  for (const { key, high, low } of postings) {
    doubles[count * 2] = key;
    integers[count * 4 + 2] = high;
    integers[count * 4 + 3] = low;
    count += 1;
    if (count === writtenEntries) flush();
  }
  flush();
  return size;
}

/** The first entry of a run that was not taken. */
type RunReader = {
  key: number;
  high: number;
  low: number;
  /** Reads the next entry; the key is infinite after the last one. */
  next: () => void;
};

function createRunReader(file: number, { start, end }: Readonly<{ start: number; end: number }>): RunReader {
  const { bytes, doubles, integers } = createEntries(readEntries);
  let position = start;
  let count = 0;
  let at = 0;
  const fill = (): void => {
    const size = Math.min(bytes.length, end - position);
    for (let read = 0; read < size; ) {
      const more = readSync(file, bytes, read, size - read, position + read);
      assert(more > 0, "a run is as long as it was written");
      read += more;
    }
    position += size;
    count = size / entryBytes;
    at = 0;
  };
  const reader: RunReader = {
    key: Number.POSITIVE_INFINITY,
    high: 0,
    low: 0,
    next: () => {
      if (at === count) fill();
      if (at === count) {
        reader.key = Number.POSITIVE_INFINITY;
        return;
      }
      reader.key = doubles[at * 2] ?? 0;
      reader.high = integers[at * 4 + 2] ?? 0;
      reader.low = integers[at * 4 + 3] ?? 0;
      at += 1;
    },
  };
  reader.next();
  return reader;
}

/** Takes the postings of the lowest key from each run in turn: places of a later run are higher. */
function* mergeRuns(readers: readonly RunReader[]): Generator<Posting> {
  for (;;) {
    let lowest = Number.POSITIVE_INFINITY;
    for (const { key } of readers) if (key < lowest) lowest = key;
    if (lowest === Number.POSITIVE_INFINITY) return;
    for (const reader of readers) {
      while (reader.key === lowest) {
        yield reader;
        reader.next();
      }
    }
  }
}
