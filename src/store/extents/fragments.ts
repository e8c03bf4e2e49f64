/**
 * Checked parts of steps whose other parts are still to come: chunks need not end where steps do.
 * They wait in memory, bounded; one that is dropped costs another fetch.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { ByteSpan } from "../../lib/range.ts";
import { stepBytes, stepSpan } from "./extent-steps.ts";

/** Parts that wait. */
export type Fragments = Readonly<{
  /**
   * Adds checked bytes of one step.
   * @param start - Of the bytes, within the root.
   * @returns The whole step once all of it was added, else undefined.
   */
  add: (name: string, size: number, step: number, start: number, bytes: Uint8Array) => Uint8Array | undefined;
}>;

/** Steps that wait at once: 16 MiB of memory. */
const fragmentsMax = 256;

type Fragment = { readonly bytes: Uint8Array; covered: ByteSpan[] };

export function createFragments(): Fragments {
  const waiting = new LRUCache<string, Fragment>({ max: fragmentsMax });
  return {
    add(name, size, step, start, bytes) {
      const span = stepSpan(step, size);
      const key = `${name}:${step}`;
      const fragment = waiting.get(key) ?? { bytes: new Uint8Array(span.end - span.start), covered: [] };
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
  };
}

/** The parts of `[start, start + length)` by step: which are whole, which are not. */
export function splitSteps(
  size: number,
  start: number,
  length: number,
): readonly Readonly<{ step: number; span: ByteSpan; isWhole: boolean }>[] {
  const end = start + length;
  const parts: { step: number; span: ByteSpan; isWhole: boolean }[] = [];
  for (let step = Math.floor(start / stepBytes); step * stepBytes < end; step++) {
    const whole = stepSpan(step, size);
    const span = { start: Math.max(start, whole.start), end: Math.min(end, whole.end) };
    parts.push({ step, span, isWhole: span.start === whole.start && span.end === whole.end });
  }
  return parts;
}

/** Joins a span to spans that are ascending and apart; spans that touch become one. */
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
