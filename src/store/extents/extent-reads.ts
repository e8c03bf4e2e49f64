/**
 * Reading cached content: nothing is given back that has another checksum than when it was stored.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Log } from "../../lib/log.ts";
import type { ByteSpan } from "../../lib/range.ts";
import type { ExtentFiles } from "./extent-files.ts";
import type { ExtentMap } from "./extent-map.ts";
import type { Root, Roots } from "./extent-roots.ts";
import { presentSteps, stepBytes, stepSpan, stepsPerPage } from "./extent-steps.ts";

/** What one call reads or writes at most: it is hashed in one go on the calling thread. */
export const extentCallBytesMax = 2 ** 20;

/** Readings that compare. */
export type Reading = Readonly<{
  /** Reads a span, at most 1 MiB; undefined when any of it is absent, or unreadable, or damaged and now dropped. */
  compare: (root: Root, span: ByteSpan) => Promise<Uint8Array | undefined>;
  stats: () => Readonly<{ damagedSteps: number; lostFiles: number }>;
}>;

/** Makes the readings of a cache. */
export function createReading(parts: { roots: Roots; files: ExtentFiles; log: Log }): Reading {
  const { roots, files, log } = parts;
  let damagedSteps = 0;
  let lostFiles = 0;

  async function lose(root: Root): Promise<void> {
    if (root.isGone) return;
    lostFiles += 1;
    log.warn("a content file is missing or was replaced; it is dropped", { file: root.name });
    roots.forget(root.name);
    await files.remove(root.name);
  }

  async function damage(root: Root, steps: readonly number[]): Promise<void> {
    if (root.isGone) return;
    damagedSteps += steps.length;
    log.warn("cached content is damaged and dropped", { file: root.name, steps: steps.length });
    // Another file in its place would be written over with our bytes while it may be another root's, open elsewhere.
    if ((await files.identity(root.name)) === undefined) await lose(root);
    else for (const step of steps) roots.drop(root, step);
  }

  async function compare(root: Root, span: ByteSpan): Promise<Uint8Array | undefined> {
    assert(span.end - span.start <= extentCallBytesMax, "a reading is at most 1 MiB");
    const from = Math.floor(span.start / stepBytes) * stepBytes;
    const to = Math.min(root.size, Math.ceil(span.end / stepBytes) * stepBytes);
    const result = await files.read(root.name, from, to - from);
    if (root.isGone || root.steps.missing(span).length > 0) return undefined;
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
        if (wrong.length === 0) return result.bytes.subarray(span.start - from, span.end - from);
        await damage(root, wrong);
        return undefined;
      }
    }
  }

  return { compare, stats: () => ({ damagedSteps, lostFiles }) };
}

/** Compares up to `count` steps, chosen by chance among those that the rows say are present. */
export async function sampleSteps(
  parts: { map: ExtentMap; roots: Roots; reading: Reading },
  count: number,
  random: () => number,
): Promise<Readonly<{ compared: number; damaged: number }>> {
  const { map, roots, reading } = parts;
  let compared = 0;
  let damaged = 0;
  for (const { name, size, step } of chooseSteps(map, count, random)) {
    const root = roots.open(name, size);
    const span = stepSpan(step, size);
    if (root.steps.missing(span).length > 0) continue; // dropped since its row was written
    const end = roots.use(root);
    const bytes = await reading.compare(root, span).finally(end);
    compared += 1;
    if (bytes === undefined) damaged += 1;
  }
  return { compared, damaged };
}

/** The steps that a span touches, ascending. */
export function stepsOf({ start, end }: ByteSpan): number[] {
  const first = Math.floor(start / stepBytes);
  return Array.from({ length: Math.ceil(end / stepBytes) - first }, (_, index) => first + index);
}

function isRight(root: Root, step: number, bytes: Uint8Array, from: number): boolean {
  const { start, end } = stepSpan(step, root.size);
  return root.steps.matches(step, bytes.subarray(start - from, end - from));
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
