/**
 * Pages of an index of which the system has nothing in memory, beside as many reads of the same disk at random places.
 *
 * Such a page waits for the disk: how long, depends on the number of reads, and on the disk.
 * @module
 */
import { closeSync, openSync, readFileSync, readSync, statSync, writeFileSync } from "node:fs";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import type { IndexReader } from "../../src/store/index/index-types.ts";
import { pageBytes } from "../../src/store/sqlite.ts";
import { median, percentile } from "../harness.ts";

/** Reads one page, and returns its milliseconds. */
export type ReadPage = (reader: IndexReader) => number;

/**
 * Reads pages one after another; only before the first one, the system drops its cache.
 *
 * @returns Latencies; undefined without pages, or where the cache cannot be dropped.
 */
export function measureCold(path: string, pages: readonly ReadPage[]): string | undefined {
  if (pages.length === 0 || !dropCaches()) return undefined;
  const reader = openIndexReader(path);
  const read = pages.map((page) => {
    const before = bytesRead();
    const milliseconds = page(reader);
    return { milliseconds, reads: Math.ceil((bytesRead() - before) / pageBytes) };
  });
  reader.close();
  dropCaches();
  const counts = read.map(({ reads }) => reads);
  const times = read.map(({ milliseconds }) => milliseconds);
  return `${spread(times)} (as many reads at random places: ${spread(timesOfReads(path, counts))})`;
}

/** Milliseconds of groups of reads, each of a page at a random place. @param counts - Reads of each group. */
function timesOfReads(path: string, counts: readonly number[]): readonly number[] {
  const pagesInFile = BigInt(Math.floor(statSync(path).size / pageBytes));
  const file = openSync(path, "r");
  const buffer = new Uint8Array(pageBytes);
  let next = 0;
  const times = counts.map((count) => {
    const places = Array.from({ length: count }, () => Number(Bun.hash.xxHash64(String(next++)) % pagesInFile));
    const start = Bun.nanoseconds();
    for (const place of places) readSync(file, buffer, 0, pageBytes, place * pageBytes);
    return (Bun.nanoseconds() - start) / 1e6;
  });
  closeSync(file);
  return times;
}

function spread(times: readonly number[]): string {
  const text = (milliseconds: number) => milliseconds.toFixed(1);
  return `p50 ${text(median(times))} ms, p99 ${text(percentile(times, 0.99))}, slowest ${text(Math.max(...times))}`;
}

/** Bytes that this process had read from the disk. */
function bytesRead(): number {
  return Number(/^read_bytes: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

/** Drops the system's cache of files. @returns False where it is not permitted. */
function dropCaches(): boolean {
  try {
    Bun.spawnSync(["sync"]);
    writeFileSync("/proc/sys/vm/drop_caches", "1");
    return true;
  } catch {
    return false; // not Linux, or not root
  }
}
