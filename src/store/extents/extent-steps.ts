/**
 * Which steps of one root's data are on disk, and the checksum of each: what is known, without touching a file.
 *
 * A step is present exactly when it has a checksum. Checksums are stored by pages: little is loaded and written.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { ByteSpan } from "../../lib/range.ts";

/**
 * Bytes of a step, the least that is marked present and the least that is compared with a checksum.
 * A quarter of a chunk: a range of 64 KiB reads at most two of them, and 8 bytes of checksum a step are 0.012 %.
 */
export const stepBytes = 64 * 1024;

/** Steps of a page: 16 MiB of data, 2 KiB of checksums. */
export const stepsPerPage = 256;

/** Steps of one root. Numbers of steps and pages are 0-based; spans are bytes, half-open, within the root. */
export type Steps = Readonly<{
  /** Parts of a span that are not present: disjoint, ascending, widened to whole steps. */
  missing: (span: ByteSpan) => ByteSpan[];
  /** Parts of a span that were not compared since the last `clearChecked`; as `missing`. */
  unchecked: (span: ByteSpan) => ByteSpan[];
  /** Whether a step's bytes are the ones it was marked present with. */
  matches: (step: number, bytes: Uint8Array) => boolean;
  /** Marks a step present. @returns bytes that are now present and were not. */
  add: (step: number, checksum: bigint) => number;
  /** Marks a step absent. @returns bytes that were present and are not any more. */
  drop: (step: number) => number;
  setChecked: (step: number) => void;
  /** Forgets which steps were compared: the file may have changed. */
  clearChecked: () => void;
  /** Takes the pages that changed since the last call, as copies to be written. */
  takeDirty: () => readonly DirtyPage[];
  /** Puts pages back whose writing failed. */
  returnDirty: (pages: readonly DirtyPage[]) => void;
  isDirty: () => boolean;
  /** Pages in memory. */
  pagesLoaded: () => number;
}>;

/** A page to be written: its checksums, 8 bytes a step, little-endian, 0 for an absent step. */
export type DirtyPage = Readonly<{ page: number; sums: Uint8Array }>;

type Page = {
  readonly sums: BigUint64Array;
  readonly checked: Uint8Array; // one byte a step
  present: number;
  checkedCount: number;
};

/**
 * The checksum of a step's bytes; never 0. Not cryptographic: it finds what a disk or a hand on it did to bytes that
 * were proven when they were stored, with a chance of 2^-64 to miss it, at 1 µs a step (SHA-256: 38 µs).
 */
export function checksumOf(bytes: Uint8Array): bigint {
  return Bun.hash.xxHash3(bytes) || 1n;
}

/** The span of a step in a root of `size` bytes. */
export function stepSpan(step: number, size: number): ByteSpan {
  return { start: step * stepBytes, end: Math.min(size, (step + 1) * stepBytes) };
}

/** What a step takes of a disk whose blocks have 4 KiB. */
export function stepCost(step: number, size: number): number {
  const { start, end } = stepSpan(step, size);
  return Math.ceil((end - start) / 4_096) * 4_096;
}

/**
 * Makes the steps of one root.
 *
 * @param size - Bytes of the root's data, 1 or more.
 * @param written - The pages that were ever written; no other has a step that is present.
 * @param load - Gives a page's checksums as they were last written.
 */
export function createSteps(
  size: number,
  written: ReadonlySet<number>,
  load: (page: number) => Uint8Array | undefined,
): Steps {
  assert(size > 0, "a root with steps has data");
  const pages = new Map<number, Page>();
  const dirty = new Set<number>();

  /** A page to look at; one that nothing is known of is not made for that. */
  function lookAt(number: number): Page {
    return pages.get(number) ?? (written.has(number) ? pageAt(number) : absentPage);
  }

  function pageAt(number: number): Page {
    const known = pages.get(number);
    if (known !== undefined) return known;
    const page = readPage(written.has(number) ? load(number) : undefined);
    pages.set(number, page);
    return page;
  }

  /** Sets a step's checksum, 0 for absent. @returns whether it was present before. */
  function put(step: number, checksum: bigint): boolean {
    const number = Math.floor(step / stepsPerPage);
    const page = pageAt(number);
    const index = step % stepsPerPage;
    const wasPresent = page.sums[index] !== 0n;
    page.present += (checksum === 0n ? 0 : 1) - (wasPresent ? 1 : 0);
    page.checkedCount -= page.checked[index] ?? 0;
    page.checked[index] = 0;
    page.sums[index] = checksum;
    dirty.add(number);
    return wasPresent;
  }

  return {
    missing: (span) =>
      gather(
        lookAt,
        size,
        span,
        (page) => page.present,
        (page, index) => page.sums[index] !== 0n,
      ),
    unchecked: (span) =>
      gather(
        lookAt,
        size,
        span,
        (page) => page.checkedCount,
        (page, index) => page.checked[index] === 1,
      ),
    matches: (step, bytes) => lookAt(Math.floor(step / stepsPerPage)).sums[step % stepsPerPage] === checksumOf(bytes),
    add: (step, checksum) => (put(step, checksum) ? 0 : stepCost(step, size)),
    drop: (step) => (put(step, 0n) ? stepCost(step, size) : 0),
    setChecked(step) {
      const page = pageAt(Math.floor(step / stepsPerPage));
      const index = step % stepsPerPage;
      page.checkedCount += 1 - (page.checked[index] ?? 0);
      page.checked[index] = 1;
    },
    clearChecked() {
      for (const page of pages.values()) {
        page.checked.fill(0);
        page.checkedCount = 0;
      }
    },
    takeDirty() {
      const taken = [...dirty].map((page) => ({
        page,
        sums: new Uint8Array(pageAt(page).sums.slice().buffer),
      }));
      dirty.clear();
      return taken;
    },
    returnDirty(returned) {
      for (const { page } of returned) dirty.add(page);
    },
    isDirty: () => dirty.size > 0,
    pagesLoaded: () => pages.size,
  };
}

/**
 * Walks the steps of a span and gathers those for which `isDone` does not hold. Pages whose steps all are
 * done, or none,
 * by `doneCount`, are taken whole, so that a root of 10 GiB costs 640 looks.
 */
function gather(
  pageAt: (number: number) => Page,
  size: number,
  span: ByteSpan,
  doneCount: (page: Page) => number,
  isDone: (page: Page, index: number) => boolean,
): ByteSpan[] {
  assert(span.start >= 0 && span.end <= size, "a span is within its root");
  const found: { start: number; end: number }[] = [];
  const last = Math.ceil(span.end / stepBytes);
  const stepCount = Math.ceil(size / stepBytes);
  let step = span.start < span.end ? Math.floor(span.start / stepBytes) : last;
  while (step < last) {
    const number = Math.floor(step / stepsPerPage);
    const pageEnd = Math.min(stepCount, (number + 1) * stepsPerPage);
    const page = pageAt(number);
    const done = doneCount(page);
    const end = Math.min(last, pageEnd);
    if (done === 0) append(found, { start: stepSpan(step, size).start, end: stepSpan(end - 1, size).end });
    else if (done < pageEnd - number * stepsPerPage) {
      for (let at = step; at < end; at++) {
        if (!isDone(page, at % stepsPerPage)) append(found, stepSpan(at, size));
      }
    }
    step = pageEnd;
  }
  return found;
}

/** Which steps of a stored page are present, 0-based in the page. */
export function presentSteps(stored: Uint8Array): number[] {
  const { sums } = readPage(stored);
  return [...sums.keys()].filter((index) => sums[index] !== 0n);
}

/** Looked at, never changed. */
const absentPage: Page = readPage(undefined);

function readPage(stored: Uint8Array | undefined): Page {
  const sums = new BigUint64Array(stepsPerPage);
  if (stored !== undefined) new Uint8Array(sums.buffer).set(stored.subarray(0, sums.byteLength));
  let present = 0;
  for (const sum of sums) if (sum !== 0n) present += 1;
  return { sums, checked: new Uint8Array(stepsPerPage), present, checkedCount: 0 };
}

function append(spans: { start: number; end: number }[], span: ByteSpan): void {
  const last = spans.at(-1);
  if (last !== undefined && last.end === span.start) last.end = span.end;
  else spans.push({ ...span });
}
