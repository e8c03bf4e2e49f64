/**
 * Reads of cached content. Each read verifies the stored checksums. The path of a file is returned, for the kernel to
 * send, only while the requested span is verified and the file is unchanged since.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { ByteSpan } from "../../lib/range.ts";
import type { ExtentFiles, FileIdentity } from "./extent-files.ts";
import type { ExtentMap } from "./extent-map.ts";
import type { Root, Roots } from "./extent-roots.ts";
import {
  clearChecked,
  hasSpan,
  matchesStep,
  presentSteps,
  setChecked,
  stepBytes,
  stepSpan,
  stepsPerPage,
  uncheckedSpans,
} from "./extent-steps.ts";
import { createHotSteps, hotSpanMax } from "./hot-steps.ts";

/** Limit of one read or write: its bytes are hashed at once on the calling thread. */
export const extentCallBytesMax = 2 ** 20;

/** Limit of a span that is read at once: by a thread, it takes four to six times the CPU (measured). Bytes. */
const readNowBytesMax = 2 ** 18;

/** Reads bytes and verifies their checksums. */
type VerifiedReads = Readonly<{
  /** Reads a span, at most 1 MiB; undefined when part of it is absent, unreadable, or damaged (then dropped). */
  read: (root: Root, span: ByteSpan) => Promise<Uint8Array<ArrayBuffer> | undefined>;
  /**
   * Returns a span at once: one of at most 16 KiB if its steps are in memory, one of at most 256 KiB if its file is
   * open. Undefined also when part of it is absent, unreadable or damaged, which {@link VerifiedReads.read} finds.
   */
  hot: (root: Root, span: ByteSpan) => Uint8Array<ArrayBuffer> | undefined;
  stats: () => Readonly<{ damagedSteps: number; lostFiles: number }>;
}>;

export function createVerifiedReads(parts: { roots: Roots; files: ExtentFiles; log: Log }): VerifiedReads {
  const { roots, files, log } = parts;
  const hotSteps = createHotSteps();
  let damagedSteps = 0;
  let lostFiles = 0;

  async function lose(root: Root): Promise<void> {
    if (root.isGone) return;
    lostFiles += 1;
    log.warn("a content file was missing or replaced and has been dropped", { file: root.name });
    roots.forget(root.name);
    await files.remove(root.name);
  }

  async function damage(root: Root, steps: readonly number[]): Promise<void> {
    if (root.isGone) return;
    damagedSteps += steps.length;
    log.warn("cached content was damaged and has been dropped", { file: root.name, steps: steps.length });
    // A replaced file is lost completely: writes must not reach it, because it may be another root's file.
    if ((await files.identity(root.name)) === undefined) await lose(root);
    else for (const step of steps) roots.drop(root, step);
  }

  async function readVerified(root: Root, span: ByteSpan): Promise<Uint8Array<ArrayBuffer> | undefined> {
    assert(span.end - span.start <= extentCallBytesMax, "a read is at most 1 MiB");
    const from = Math.floor(span.start / stepBytes) * stepBytes;
    const to = Math.min(root.size, Math.ceil(span.end / stepBytes) * stepBytes);
    const result = await files.read(root.name, from, to - from);
    if (root.isGone || !hasSpan(root.steps, span)) return undefined;
    switch (result.kind) {
      case "lost":
        await lose(root);
        return undefined;
      case "full":
      case "fault":
        log.error("cached content could not be read", { file: root.name, ...result });
        if (result.kind === "fault" && result.code === "EIO") await damage(root, stepsOf(span));
        return undefined;
      case "bytes": {
        const wrong = stepsOf(span).filter((step) => !isRight(root, step, result.bytes, from));
        if (wrong.length === 0) {
          heat(root, span, result.bytes, from);
          return result.bytes.subarray(span.start - from, span.end - from);
        }
        await damage(root, wrong);
        return undefined;
      }
    }
  }

  /** Puts the verified steps of a small span into memory: of a large one each step would be read once. */
  function heat(root: Root, span: ByteSpan, bytes: Uint8Array<ArrayBuffer>, from: number): void {
    if (span.end - span.start > hotSpanMax) return;
    for (let at = 0; at < bytes.length; at += stepBytes) {
      const step = bytes.length <= stepBytes ? bytes : bytes.slice(at, at + stepBytes);
      hotSteps.put(root.hotSteps, (from + at) / stepBytes, step);
    }
  }

  /** The steps of a span that is read at once: it is complete before the next one begins. */
  const stepsRead = new Uint8Array(readNowBytesMax + 2 * stepBytes);

  function readNow(root: Root, span: ByteSpan): Uint8Array<ArrayBuffer> | undefined {
    const { start: from } = stepSpan(Math.floor(span.start / stepBytes), root.size);
    const { end: to } = stepSpan(Math.ceil(span.end / stepBytes) - 1, root.size);
    if (!hasSpan(root.steps, span)) return undefined;
    const bytes = stepsRead.subarray(0, to - from);
    if (!files.readNow(root.name, from, bytes)) return undefined;
    if (!stepsOf(span).every((step) => isRight(root, step, bytes, from))) return undefined;
    return bytes.slice(span.start - from, span.end - from);
  }

  return {
    read: readVerified,
    hot: (root, span) => {
      const length = span.end - span.start;
      if (length <= hotSpanMax) return hotSteps.slice(root.hotSteps, span);
      return length <= readNowBytesMax ? readNow(root, span) : undefined;
    },
    stats: () => ({ damagedSteps, lostFiles }),
  };
}

/** Verifies up to `count` steps, chosen at random among the steps that the rows list as present. */
export async function sampleSteps(
  parts: { map: ExtentMap; roots: Roots; reads: VerifiedReads },
  count: number,
  random: () => number,
): Promise<Readonly<{ compared: number; damaged: number }>> {
  const { map, roots, reads } = parts;
  let compared = 0;
  let damaged = 0;
  for (const { name, size, step } of chooseSteps(map, count, random)) {
    const root = roots.open(name, size);
    const span = stepSpan(step, size);
    if (!hasSpan(root.steps, span)) continue; // dropped since its row was written
    const end = roots.use(root);
    const bytes = await reads.read(root, span).finally(end);
    compared += 1;
    if (bytes === undefined) damaged += 1;
  }
  return { compared, damaged };
}

/** The steps that overlap a span, ascending. */
function stepsOf({ start, end }: ByteSpan): number[] {
  const first = Math.floor(start / stepBytes);
  return Array.from({ length: Math.ceil(end / stepBytes) - first }, (_, index) => first + index);
}

function isRight(root: Root, step: number, bytes: Uint8Array, from: number): boolean {
  const { start, end } = stepSpan(step, root.size);
  return matchesStep(root.steps, step, bytes.subarray(start - from, end - from));
}

/** Chooses a root by a random name, then a page and a step of it. */
function* chooseSteps(
  map: ExtentMap,
  count: number,
  random: () => number,
): Generator<Readonly<{ name: string; size: number; step: number }>> {
  for (let chosen = 0; chosen < count; chosen++) {
    const start = Math.floor(random() * 2 ** 32).toString(16);
    const name = map.names(start.padStart(8, "0"), 1)[0] ?? map.names("", 1)[0];
    const row = name === undefined ? undefined : map.root(name);
    if (row === undefined) return;
    const page = pick(map.pages(row.root), random);
    const stored = page === undefined ? undefined : map.page(row.root, page);
    const step = stored === undefined ? undefined : pick(presentSteps(stored), random);
    if (page === undefined || step === undefined) continue;
    yield { name: row.name, size: row.size, step: page * stepsPerPage + step };
  }
}

function pick<Value>(values: readonly Value[], random: () => number): Value | undefined {
  return values[Math.floor(random() * values.length)];
}

/** Limit of the bytes that one call verifies: about 40 ms when the system has them in memory. */
export const comparedBytesMax = 64 * 2 ** 20;

/**
 * A file that changed less than this long ago may change again within the same tick of its change time, unnoticed.
 * Its steps are verified again next time. Kernels tick every 1 to 10 ms.
 */
const settledAfterMs = 50;

/** Paths of roots' files. */
export type Paths = Readonly<{
  /** Undefined when the span is absent, is being written, or is too large to be verified now. */
  verified: (root: Root, span: ByteSpan) => Promise<string | undefined>;
  /** At once: undefined unless every step of the span was verified before, and the file has not changed since. */
  hot: (root: Root, span: ByteSpan) => string | undefined;
}>;

export function createPaths(parts: { files: ExtentFiles; reads: VerifiedReads; clock: Clock }): Paths {
  const { files, reads, clock } = parts;

  /** Verifies spans of an unchanged file. @returns Whether all of them are intact. */
  async function verifyAll(root: Root, spans: readonly ByteSpan[], identity: FileIdentity): Promise<boolean> {
    for (const piece of spans.flatMap(callsOf)) {
      if ((await reads.read(root, piece)) === undefined) return false;
      if (root.identity !== identity) return false; // the file changed, and another call verifies the new state
      for (const step of stepsOf(piece)) setChecked(root.steps, step);
    }
    const after = await files.identity(root.name);
    return !root.isGone && after !== undefined && isSame(identity, after);
  }

  return {
    async verified(root, span) {
      if (!hasSpan(root.steps, span)) return undefined;
      const found = await files.identity(root.name);
      if (found === undefined) {
        await reads.read(root, { start: span.start, end: span.start + 1 }); // detects a lost or replaced file
        return undefined;
      }
      const identity = settleIdentity(root, found);
      const rest = uncheckedSpans(root.steps, span);
      if (rest.reduce((sum, { start, end }) => sum + end - start, 0) > comparedBytesMax) return undefined;
      if (rest.length > 0 && !(await verifyAll(root, rest, identity))) return undefined;
      if (clock() - Number(identity.changedNs / 1_000_000n) < settledAfterMs) root.isUnsettled = true;
      root.pathReturnedAt = clock();
      return files.path(root.name);
    },
    hot(root, span) {
      const { identity, isUnsettled, steps } = root;
      if (identity === undefined || isUnsettled) return undefined;
      if (!hasSpan(steps, span) || uncheckedSpans(steps, span).length > 0) return undefined;
      const found = files.identityOfPath(root.name);
      if (found === undefined || !isSame(identity, found)) return undefined;
      root.pathReturnedAt = clock();
      return files.path(root.name);
    },
  };
}

/** Stores the file's identity; clears the verified steps when it has changed. */
function settleIdentity(root: Root, found: FileIdentity): FileIdentity {
  if (root.identity !== undefined && !root.isUnsettled && isSame(root.identity, found)) return root.identity;
  clearChecked(root.steps);
  root.identity = found;
  root.isUnsettled = false;
  return found;
}

function callsOf({ start, end }: ByteSpan): ByteSpan[] {
  const count = Math.ceil((end - start) / extentCallBytesMax);
  return Array.from({ length: count }, (_, index) => ({
    start: start + index * extentCallBytesMax,
    end: Math.min(end, start + (index + 1) * extentCallBytesMax),
  }));
}

function isSame(one: FileIdentity, other: FileIdentity): boolean {
  return one.inode === other.inode && one.size === other.size && one.changedNs === other.changedNs;
}
