/**
 * Range headers: the table is the specification.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { contentRange, mergeOverlaps, rangesPerRequestMax, readRange } from "../../src/lib/range.ts";

function meaningOf(header: string | null, size: number): string {
  const meaning = readRange(header, size);
  if (meaning.kind !== "spans") return meaning.kind;
  return meaning.spans.map((span) => contentRange(span, size)).join(", ");
}

const elevenBytes: readonly (readonly [string | null, string])[] = [
  [null, "whole"],
  ["bytes=0-0", "bytes 0-0/11"],
  ["bytes=0-10", "bytes 0-10/11"],
  ["bytes=0-11", "bytes 0-10/11"],
  ["bytes=3-", "bytes 3-10/11"],
  ["bytes=10-", "bytes 10-10/11"],
  ["bytes=11-", "unsatisfiable"],
  ["bytes=50-", "unsatisfiable"],
  ["bytes=-1", "bytes 10-10/11"],
  ["bytes=-11", "bytes 0-10/11"],
  ["bytes=-50", "bytes 0-10/11"],
  ["bytes=-0", "unsatisfiable"],
  ["bytes=0-99999999999999999999999", "bytes 0-10/11"],
  ["bytes=99999999999999999999999-", "unsatisfiable"],
  ["bytes=-99999999999999999999999", "bytes 0-10/11"],
  ["bytes=5-2", "whole"],
  ["bytes=99999999999999999999-2", "whole"],
  ["bytes=-", "whole"],
  ["bytes=", "whole"],
  ["bytes", "whole"],
  ["bytes=a-b", "whole"],
  ["bytes=1-2-3", "whole"],
  ["bytes=0x1-2", "whole"],
  ["bytes=+1-2", "whole"],
  ["bytes=1.5-2", "whole"],
  ["bytes=/-2", "whole"],
  ["bytes=0-:", "whole"],
  ["bytes=٠-2", "whole"],
  ["bytes=2-999999999999999", "bytes 2-10/11"],
  ["bytes=2-1000000000000000", "bytes 2-10/11"],
  ["bytes=999999999999999-1000000000000000", "unsatisfiable"],
  ["bytes = 0-1", "whole"],
  ["items=0-1", "whole"],
  ["foobar", "whole"],
  ["", "whole"],
  ["Bytes=0-1", "bytes 0-1/11"],
  ["bytes= 0-1 ", "bytes 0-1/11"],
  ["bytes=0-1,5-6", "bytes 0-1/11, bytes 5-6/11"],
  ["bytes=5-6,0-1", "bytes 5-6/11, bytes 0-1/11"],
  ["bytes=0-1 , 5-6", "bytes 0-1/11, bytes 5-6/11"],
  ["bytes=0-1,,5-6", "whole"],
  ["bytes=0-1,", "whole"],
  [",bytes=0-1", "whole"],
  ["bytes=0-1,5-2", "whole"],
  ["bytes=0-1,50-60", "bytes 0-1/11"],
  ["bytes=50-60,70-", "unsatisfiable"],
  ["bytes=0-3,2-5", "bytes 0-5/11"],
  ["bytes=2-5,0-3", "bytes 0-5/11"],
  ["bytes=0-1,2-3", "bytes 0-1/11, bytes 2-3/11"],
  ["bytes=0-0,0-0,0-0", "bytes 0-0/11"],
  ["bytes=8-9,0-1,1-8", "bytes 0-9/11"],
  ["bytes=0-,-3", "bytes 0-10/11"],
];

describe("readRange", () => {
  test.each(elevenBytes)("of 11 bytes, %p means %p", (header, meaning) => {
    expect(meaningOf(header, 11)).toBe(meaning);
  });

  test.each([
    [1, "bytes 0-0/11"],
    [rangesPerRequestMax, "bytes 0-0/11"],
    [rangesPerRequestMax + 1, "unsatisfiable"],
    [1_300, "unsatisfiable"],
  ] as const)("%p times the same range means %p", (count, meaning) => {
    expect(meaningOf(`bytes=${Array(count).fill("0-0").join(",")}`, 11)).toBe(meaning);
  });

  test.each([
    ["bytes=0-0", 0, "unsatisfiable"],
    ["bytes=-5", 0, "unsatisfiable"],
    [null, 0, "whole"],
    ["bytes=9007199254740980-", 2 ** 53 - 1, "bytes 9007199254740980-9007199254740990/9007199254740991"],
    ["bytes=-1", 2 ** 33, "bytes 8589934591-8589934591/8589934592"],
  ] as const)("%p of %p bytes means %p", (header, size, meaning) => {
    expect(meaningOf(header, size)).toBe(meaning);
  });
});

describe("R2: readRange", () => {
  test("reads one range with both numbers as it reads any other spelling of it", () => {
    const offset = fc.oneof(fc.nat(20), fc.bigInt(0n, 10n ** 17n));
    fc.assert(
      fc.property(offset, offset, fc.nat(20), (first, last, size) => {
        expect(readRange(`bytes=${first}-${last}`, size)).toEqual(readRange(`bytes= ${first}-${last}`, size));
      }),
    );
  });

  const number = fc.oneof(fc.constant(""), fc.integer({ min: 0, max: 70 }).map(String));
  const part = fc.tuple(number, number).map(([first, last]) => `${first}-${last}`);
  const broken = fc.constantFrom("", "x", "1", "1-2-3", "--1", "1-x", "0x1-2");
  const parts = fc.array(fc.oneof({ weight: 30, arbitrary: part }, { weight: 1, arbitrary: broken }), {
    minLength: 1,
    maxLength: 20,
  });

  /** The bytes of a range, one by one, by RFC 9110; `undefined` for an invalid range. */
  function bytesOf(text: string, size: number): number[] | undefined {
    const [, first, last] = /^(\d*)-(\d*)$/.exec(text) ?? [];
    if (first === undefined || last === undefined || (first === "" && last === "")) return undefined;
    if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
    const isMeant = (byte: number) =>
      first === "" ? byte >= size - Number(last) : byte >= Number(first) && (last === "" || byte <= Number(last));
    return Array.from({ length: size }, (_, byte) => byte).filter(isMeant);
  }

  test("agrees with a parser that counts single bytes", () => {
    fc.assert(
      fc.property(parts, fc.integer({ min: 0, max: 60 }), (texts, size) => {
        const meaning = readRange(`bytes=${texts.join(",")}`, size);
        const each = texts.map((text) => bytesOf(text, size));
        if (each.includes(undefined)) return expect(meaning.kind).toBe("whole");
        const wanted = new Set(each.flatMap((bytes) => bytes ?? []));
        if (texts.length > rangesPerRequestMax || wanted.size === 0) return expect(meaning.kind).toBe("unsatisfiable");
        const spans = meaning.kind === "spans" ? meaning.spans : [];
        const given = spans.flatMap(({ start, end }) =>
          Array.from({ length: end - start }, (_, index) => start + index),
        );
        expect(given).toHaveLength(wanted.size); // each byte once
        expect(new Set(given)).toEqual(wanted);
        // The first byte of the first requested range is sent first.
        const firstPart = each.find((bytes) => bytes !== undefined && bytes.length > 0)?.[0] ?? -1;
        return expect(spans[0] !== undefined && spans[0].start <= firstPart && firstPart < spans[0].end).toBe(true);
      }),
      { numRuns: Number(process.env["RUNS"] ?? 2_000) },
    );
  });
});

describe("mergeOverlaps", () => {
  test("of 2,000 random lists, the spans are disjoint, cover the same bytes, and are in the requested order", () => {
    let state = 12_345;
    const below = (limit: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * limit);
    };
    for (let round = 0; round < 2_000; round++) {
      const spans = Array.from({ length: 1 + below(8) }, () => {
        const start = below(30);
        return { start, end: start + 1 + below(8) };
      });
      const merged = mergeOverlaps(spans);
      const cover = (list: typeof merged) => {
        const bytes = new Set<number>();
        for (const { start, end } of list) for (let at = start; at < end; at++) bytes.add(at);
        return bytes;
      };
      expect(cover(merged)).toEqual(cover(spans));
      expect(merged.reduce((sum, { start, end }) => sum + end - start, 0)).toBe(cover(spans).size);
      const firstOf = (part: (typeof merged)[number]) =>
        spans.findIndex(({ start, end }) => part.start <= start && end <= part.end);
      const order = merged.map(firstOf);
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }
  });
});
