/**
 * Which steps of a root's data are on disk, and the checksum of each, without access to a file.
 *
 * A step is present exactly when it has a checksum. Checksums are loaded and written in pages. Chunks need not end at
 * step boundaries: verified parts of incomplete steps wait in memory.
 * @module
 */
import { LRUCache } from "lru-cache";
import { assert } from "../../lib/assert.ts";
import type { ByteSpan } from "../../lib/range.ts";

/**
 * Size of a step, the unit of presence and of verification, in bytes.
 * A quarter of a chunk: a range of 64 KiB reads at most two steps, and 8 bytes of checksum a step are 0.012 %.
 */
export const stepBytes = 64 * 1024;

/** Steps of a page: 16 MiB of data, 2 KiB of checksums. */
export const stepsPerPage = 256;

/**
 * Steps of one root: data without functions of its own, because thousands are in memory. Numbers of steps and pages are
 * 0-based; spans are bytes, half-open, within the root.
 */
export type Steps = {
  readonly size: number;
  readonly written: ReadonlySet<number>; // the pages that have rows; only they can have present steps
  readonly load: (page: number) => Uint8Array | undefined;
  readonly pages: (Page | undefined)[]; // by number, with holes: a Map would take as much memory as all else
  pagesLoaded: number;
  dirtyPages: number;
};

/** A changed page: its checksums, 8 bytes a step, little-endian, 0 for an absent step. */
type DirtyPage = Readonly<{ page: number; sums: Uint8Array }>;

type Page = {
  readonly sums: BigUint64Array;
  readonly checked: Uint8Array; // one byte a step
  present: number;
  checkedCount: number;
  isDirty: boolean; // changed since `takeDirty`
};

/**
 * The checksum of a step's bytes; never 0. Not cryptographic: it detects damage of bytes that were verified before they
 * were stored, with a chance of 2^-64 to miss it, at 1 µs a step (SHA-256: 38 µs).
 */
export function checksumOf(bytes: Uint8Array): bigint {
  return Bun.hash.xxHash3(bytes) || 1n;
}

/** The span of a step in a root of `size` bytes. */
export function stepSpan(step: number, size: number): ByteSpan {
  return { start: step * stepBytes, end: Math.min(size, (step + 1) * stepBytes) };
}

/** Disk space of a step on a file system with blocks of 4 KiB. */
export function stepCost(step: number, size: number): number {
  const { start, end } = stepSpan(step, size);
  return Math.ceil((end - start) / 4_096) * 4_096;
}

/**
 * Creates the steps of one root.
 *
 * @param size - Bytes of the root's data, 1 or more.
 * @param written - The pages that have rows.
 * @param load - Returns the stored checksums of a page.
 */
export function createSteps(size: number, written: readonly number[], load: Steps["load"]): Steps {
  assert(size > 0, "a root with steps has data");
  const pages = written.length === 0 ? noPages : new Set(written);
  return { size, written: pages, load, pages: [], pagesLoaded: 0, dirtyPages: 0 };
}

/** Absent parts of a span: disjoint, ascending, widened to complete steps. */
export function missingSpans(steps: Steps, span: ByteSpan): ByteSpan[] {
  return gather(
    steps,
    span,
    (page) => page.present,
    (page, index) => page.sums[index] !== 0n,
  );
}

/** Parts of a span that were not verified since the last `clearChecked`; as `missingSpans`. */
export function uncheckedSpans(steps: Steps, span: ByteSpan): ByteSpan[] {
  return gather(
    steps,
    span,
    (page) => page.checkedCount,
    (page, index) => page.checked[index] === 1,
  );
}

/** Whether a span has no absent part. */
export function hasSpan(steps: Steps, span: ByteSpan): boolean {
  return missingSpans(steps, span).length === 0;
}

/** Whether bytes match the stored checksum of a step. */
export function matchesStep(steps: Steps, step: number, bytes: Uint8Array): boolean {
  return readablePage(steps, Math.floor(step / stepsPerPage)).sums[step % stepsPerPage] === checksumOf(bytes);
}

/** Marks a step present. @returns Disk space of the step; 0 when it was present before. */
export function addStep(steps: Steps, step: number, checksum: bigint): number {
  return putSum(steps, step, checksum) ? 0 : stepCost(step, steps.size);
}

/** Marks a step absent. @returns Disk space of the step; 0 when it was absent before. */
export function dropStep(steps: Steps, step: number): number {
  return putSum(steps, step, 0n) ? stepCost(step, steps.size) : 0;
}

export function setChecked(steps: Steps, step: number): void {
  const page = pageAt(steps, Math.floor(step / stepsPerPage));
  const index = step % stepsPerPage;
  page.checkedCount += 1 - (page.checked[index] ?? 0);
  page.checked[index] = 1;
}

/** Marks all steps as not verified, because the file may have changed. */
export function clearChecked(steps: Steps): void {
  for (const page of steps.pages) {
    if (page === undefined) continue;
    page.checked.fill(0);
    page.checkedCount = 0;
  }
}

/** Takes copies of the pages that changed since the last call. */
export function takeDirty(steps: Steps): readonly DirtyPage[] {
  const taken: DirtyPage[] = [];
  for (const [number, page] of steps.pages.entries()) {
    if (!page?.isDirty) continue;
    page.isDirty = false;
    taken.push({ page: number, sums: storedSums(page) });
  }
  steps.dirtyPages = 0;
  return taken;
}

/** Marks pages as changed again after a failed write. */
export function returnDirty(steps: Steps, returned: readonly DirtyPage[]): void {
  for (const { page } of returned) setDirty(steps, pageAt(steps, page));
}

/** A page for reading; does not allocate an unknown page. */
function readablePage(steps: Steps, number: number): Page {
  return steps.pages[number] ?? (steps.written.has(number) ? pageAt(steps, number) : absentPage);
}

function pageAt(steps: Steps, number: number): Page {
  const known = steps.pages[number];
  if (known !== undefined) return known;
  // Most roots have few steps.
  const count = Math.min(stepsPerPage, Math.ceil(steps.size / stepBytes) - number * stepsPerPage);
  const page = readPage(steps.written.has(number) ? steps.load(number) : undefined, count);
  steps.pages[number] = page;
  steps.pagesLoaded += 1;
  return page;
}

/** Sets a step's checksum, 0 for absent. @returns Whether the step was present before. */
function putSum(steps: Steps, step: number, checksum: bigint): boolean {
  const page = pageAt(steps, Math.floor(step / stepsPerPage));
  const index = step % stepsPerPage;
  const wasPresent = page.sums[index] !== 0n;
  page.present += (checksum === 0n ? 0 : 1) - (wasPresent ? 1 : 0);
  page.checkedCount -= page.checked[index] ?? 0;
  page.checked[index] = 0;
  page.sums[index] = checksum;
  setDirty(steps, page);
  return wasPresent;
}

function setDirty(steps: Steps, page: Page): void {
  if (page.isDirty) return;
  page.isDirty = true;
  steps.dirtyPages += 1;
}

/**
 * Collects the steps of a span for which `isDone` is false. `doneCount` lets a page be skipped or taken completely, so
 * that a root of 10 GiB costs 640 look-ups.
 */
function gather(
  steps: Steps,
  span: ByteSpan,
  doneCount: (page: Page) => number,
  isDone: (page: Page, index: number) => boolean,
): ByteSpan[] {
  const { size } = steps;
  assert(span.start >= 0 && span.end <= size, "a span is within its root");
  const found: { start: number; end: number }[] = [];
  const last = Math.ceil(span.end / stepBytes);
  const stepCount = Math.ceil(size / stepBytes);
  let step = span.start < span.end ? Math.floor(span.start / stepBytes) : last;
  while (step < last) {
    const number = Math.floor(step / stepsPerPage);
    const pageEnd = Math.min(stepCount, (number + 1) * stepsPerPage);
    const page = readablePage(steps, number);
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

/** Present steps of a stored page, 0-based in the page. */
export function presentSteps(stored: Uint8Array): number[] {
  const { sums } = readPage(stored, stepsPerPage);
  return [...sums.keys()].filter((index) => sums[index] !== 0n);
}

/** Shared and never changed. */
const noPages: ReadonlySet<number> = new Set();
const absentPage: Page = emptyPage(stepsPerPage);

function emptyPage(steps: number): Page {
  return {
    sums: new BigUint64Array(steps),
    checked: new Uint8Array(steps),
    present: 0,
    checkedCount: 0,
    isDirty: false,
  };
}

/** The checksums as they are stored: those of a whole page. */
function storedSums({ sums }: Page): Uint8Array {
  const stored = new BigUint64Array(stepsPerPage);
  stored.set(sums);
  return new Uint8Array(stored.buffer);
}

function readPage(stored: Uint8Array | undefined, steps: number): Page {
  const page = emptyPage(steps);
  if (stored === undefined) return page;
  new Uint8Array(page.sums.buffer).set(stored.subarray(0, page.sums.byteLength));
  for (const sum of page.sums) if (sum !== 0n) page.present += 1;
  return page;
}

function append(spans: { start: number; end: number }[], span: ByteSpan): void {
  const last = spans.at(-1);
  if (last !== undefined && last.end === span.start) last.end = span.end;
  else spans.push({ ...span });
}

/** Parts of incomplete steps. Memory is bounded; a dropped part costs another fetch. */
export type Fragments = Readonly<{
  /**
   * Adds verified bytes of one step.
   * @param root - The record of the root: parts that were added with a former record are in a removed file.
   * @param start - Offset of the bytes within the root.
   * @returns The complete step once all its bytes were added, else undefined.
   */
  add: (root: FragmentRoot, step: number, start: number, bytes: Uint8Array) => Uint8Array | undefined;
  /** Drops the parts of a root, whose file was removed. */
  forget: (root: FragmentRoot) => void;
}>;

type FragmentRoot = Readonly<{ name: string; size: number }>;

/** Limit of incomplete steps: 16 MiB of memory. */
const fragmentsMax = 256;

type Fragment = { readonly root: FragmentRoot; readonly bytes: Uint8Array; covered: ByteSpan[] };

export function createFragments(): Fragments {
  const waiting = new LRUCache<string, Fragment>({ max: fragmentsMax });
  return {
    add(root, step, start, bytes) {
      const span = stepSpan(step, root.size);
      const key = `${root.name}:${step}`;
      const known = waiting.get(key);
      const fragment =
        known?.root === root ? known : { root, bytes: new Uint8Array(span.end - span.start), covered: [] };
      fragment.bytes.set(bytes, start - span.start);
      fragment.covered = cover(fragment.covered, { start, end: start + bytes.length });
      const [first] = fragment.covered;
      if (first !== undefined && first.start === span.start && first.end === span.end) {
        waiting.delete(key);
        return fragment.bytes;
      }
      waiting.set(key, fragment);
      return undefined;
    },
    forget(root) {
      for (const [key, fragment] of [...waiting.entries()]) if (fragment.root === root) waiting.delete(key);
    },
  };
}

/** Splits `[start, start + length)` at step boundaries. */
export function splitSteps(
  size: number,
  start: number,
  length: number,
): readonly Readonly<{ step: number; span: ByteSpan; isComplete: boolean }>[] {
  const end = start + length;
  const parts: { step: number; span: ByteSpan; isComplete: boolean }[] = [];
  for (let step = Math.floor(start / stepBytes); step * stepBytes < end; step++) {
    const whole = stepSpan(step, size);
    const span = { start: Math.max(start, whole.start), end: Math.min(end, whole.end) };
    parts.push({ step, span, isComplete: span.start === whole.start && span.end === whole.end });
  }
  return parts;
}

/** Merges a span into ascending, disjoint spans; adjacent spans become one. */
function cover(spans: readonly ByteSpan[], added: ByteSpan): ByteSpan[] {
  let { start, end } = added;
  const apart: ByteSpan[] = [];
  for (const span of spans) {
    if (span.end < start || span.start > end) apart.push(span);
    else {
      start = Math.min(start, span.start);
      end = Math.max(end, span.end);
    }
  }
  return [...apart, { start, end }].sort((a, b) => a.start - b.start);
}
