/**
 * Damaged inputs from sound ones, by a seed: what parsers are held against.
 *
 * Each mutation is one small change or a few: bits, bytes, integers at their edges, parts cut, doubled, moved or
 * taken from another sample. The same seed always gives the same inputs.
 * @module
 */
import { seedOr } from "./seed.ts";

/** Whole numbers by chance, repeatable. */
export type Chance = Readonly<{
  /** From 0 to `below` − 1. */
  below(below: number): number;
}>;

const { MUTATIONS } = process.env;

/** How many damaged inputs each parser gets. The slow tier sets 1,000,000. */
export const mutationCount = Number(MUTATIONS ?? 100_000);

/** The seed of a run. */
export const mutationSeed = seedOr(20_251_121);

/** Chance from a seed (xorshift of 32 bits). */
export function createChance(seed: number): Chance {
  let state = seed | 0 || 1;
  return {
    below(below) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state >>> 0) % below;
    },
  };
}

/** Damages bytes; the samples are left alone. */
export function mutateBytes(samples: readonly Uint8Array[], chance: Chance): Uint8Array {
  let bytes = new Uint8Array(pick(samples, chance));
  for (let count = 1 + chance.below(3); count > 0; count--) bytes = damage(bytes, samples, chance);
  return bytes;
}

/** Fragments that hurt JSON readers. */
const fragments: readonly string[] = [
  "null",
  "-1",
  "0",
  "1e999",
  "9007199254740993",
  "99999999999999999999999999999999",
  '""',
  "[]",
  "{}",
  "[[[[[[[[",
  '{"a":',
  "\\u0000",
  "\ud800",
  "true",
  '"A"',
  '"=="',
  '"-_-_"',
  "\u0141",
];

/** Damages text, mostly in ways that leave JSON readable so that the reader behind the parser is reached. */
export function mutateText(samples: readonly string[], chance: Chance): string {
  let text = pick(samples, chance);
  for (let count = 1 + chance.below(3); count > 0; count--) text = damageText(text, samples, chance);
  return text;
}

function damage(
  bytes: Uint8Array<ArrayBuffer>,
  samples: readonly Uint8Array[],
  chance: Chance,
): Uint8Array<ArrayBuffer> {
  if (bytes.length === 0) return new Uint8Array(chance.below(64));
  const at = chance.below(bytes.length);
  const size = 1 + chance.below(Math.min(64, bytes.length - at));
  switch (chance.below(8)) {
    case 0:
      bytes[at] = (bytes[at] ?? 0) ^ (1 << chance.below(8));
      return bytes;
    case 1:
      bytes[at] = chance.below(256);
      return bytes;
    case 2:
      return bytes.fill(chance.below(2) === 0 ? 0 : 255, at, at + size);
    case 3:
      return bytes.slice(0, at);
    case 4:
      return joined(bytes.subarray(0, at), bytes.subarray(at + size));
    case 5:
      return joined(bytes.subarray(0, at), bytes.subarray(at, at + size), bytes.subarray(at));
    case 6: {
      const other = pick(samples, chance);
      return joined(bytes.subarray(0, at), other.subarray(chance.below(other.length + 1)));
    }
    default:
      bytes.copyWithin(chance.below(bytes.length), at, at + size);
      return bytes;
  }
}

function damageText(text: string, samples: readonly string[], chance: Chance): string {
  const at = chance.below(text.length + 1);
  const size = 1 + chance.below(24);
  switch (chance.below(8)) {
    case 0:
      return text.slice(0, at) + String.fromCharCode(32 + chance.below(95)) + text.slice(at + 1);
    case 1:
      return text.slice(0, at);
    case 2:
      return text.slice(0, at) + text.slice(at + size);
    case 3:
      return text.slice(0, at) + text.slice(at, at + size) + text.slice(at);
    case 4: {
      const other = pick(samples, chance);
      return text.slice(0, at) + other.slice(chance.below(other.length + 1));
    }
    case 5:
      return text.slice(0, at) + pick(fragments, chance) + text.slice(at);
    default:
      return replaceValue(text, at, chance);
  }
}

/** Puts another value in the place of one that begins behind a colon, so that the text stays JSON. */
function replaceValue(text: string, from: number, chance: Chance): string {
  const colon = text.indexOf(":", from);
  if (colon === -1) return text;
  const rest = text.slice(colon + 1);
  const value = /^(?:"[^"]*"|[^,"{}[\]]+|\[\]|\{\})/.exec(rest)?.[0] ?? "";
  return text.slice(0, colon + 1) + pick(fragments, chance) + rest.slice(value.length);
}

function pick<Item>(items: readonly Item[], chance: Chance): Item {
  const item = items[chance.below(items.length)];
  if (item === undefined) throw new Error("there is at least one sample");
  return item;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(parts));
}
