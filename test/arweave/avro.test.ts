/**
 * Tag sections: every limit at its edge, and what differs between strict and lenient rules.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readAvroTags, type Tag, tagLimits, tagsFault, writeAvroTags } from "../../src/arweave/tags.ts";

const ab: Tag = { name: "a", value: "b" };
const abHex = "02610262"; // One tag without its block's count.

/** A section in hexadecimal, the declared count, what strict rules say, what lenient rules say. */
const rows: readonly (readonly [string, string, number, number | string, number | string])[] = [
  ["no bytes", "", 0, 0, 0],
  ["the empty array", "00", 0, 0, 0],
  ["one block", `02${abHex}00`, 1, 1, 1],
  ["two blocks", `02${abHex}02${abHex}00`, 2, 2, 2],
  ["a negative count and its size", `0108${abHex}00`, 1, 1, 1],
  ["a number longer than it need be", `8200${abHex}00`, 1, 1, 1],
  ["no terminator", `02${abHex}`, 1, "a tag block has no readable count", 1],
  ["bytes after the terminator", `02${abHex}00ff`, 1, "bytes after the last tag", 1],
  ["a count above the tags", `02${abHex}00`, 2, "1 tags where 2 are declared", "1 tags where 2 are declared"],
  ["a count below the tags", `04${abHex}${abHex}00`, 1, "2 tags where 1 are declared", "2 tags where 1 are declared"],
  ["tags where none are declared", `02${abHex}00`, 0, "tag bytes without tags", 0],
  ["no tags where one is declared", "", 1, "a tag block has no readable count", "0 tags where 1 are declared"],
  ["an empty name", "0200026200", 1, 1, 1],
  ["an empty value", "0202610000", 1, 1, 1],
  ["an empty name and an empty value, twice", "040000000000", 2, 2, 2],
  ["more empty tags than bytes", "040000", 2, "tag 1 is cut short", "tag 1 is cut short"],
  ["a value that takes in the terminator", "020261046200", 1, "a tag block has no readable count", 1],
  ["a value one byte beyond the section", "020261066200", 1, "tag 0 is cut short", "tag 0 is cut short"],
  ["a negative size", "02016102620000", 1, "tag 0 is cut short", "tag 0 is cut short"],
  ["a count of 2^31", `8080808010${abHex}00`, 1, "more than 128 tags", "more than 2048 tags"],
  [
    "a count of six bytes",
    `828080808000${abHex}00`,
    1,
    "a tag block has no readable count",
    "a tag block has no readable count",
  ],
  [
    "a count that never ends",
    "ffffffffffffffffffffff",
    1,
    "a tag block has no readable count",
    "a tag block has no readable count",
  ],
];

describe("B3: readAvroTags", () => {
  test.each(rows)("reads %s", (_name, hex, declared, strict, lenient) => {
    const section = Uint8Array.fromHex(hex);
    expect(outcome(readAvroTags(section, declared, "strict"))).toBe(strict);
    expect(outcome(readAvroTags(section, declared, "lenient"))).toBe(lenient);
  });

  test.each([
    ["a name of 1024 bytes", [{ name: "n".repeat(1_024), value: "v" }], 1],
    ["a name of 1025 bytes", [{ name: "n".repeat(1_025), value: "v" }], "a tag name of 1025 bytes exceeds 1024"],
    ["a value of 3072 bytes", [{ name: "n", value: "v".repeat(3_072) }], 1],
    ["a value of 3073 bytes", [{ name: "n", value: "v".repeat(3_073) }], "a tag value of 3073 bytes exceeds 3072"],
    [
      "sizes in bytes, not characters",
      [{ name: "ä".repeat(513), value: "v" }],
      "a tag name of 1026 bytes exceeds 1024",
    ],
    ["128 tags", Array<Tag>(128).fill(ab), 128],
    ["129 tags", Array<Tag>(129).fill(ab), "more than 128 tags"],
  ])("holds strict items to %s, the chain's to nothing", (_name, tags, strict) => {
    const section = writeAvroTags(tags);
    expect(outcome(readAvroTags(section, tags.length, "strict"))).toBe(strict);
    expect(outcome(readAvroTags(section, tags.length, "lenient"))).toBe(tags.length);
    expect(tagsFault(tags)).toBe(typeof strict === "string" ? strict : undefined);
  });

  test("keeps a byte order mark, and shows bytes that are not UTF-8 as U+FFFD", () => {
    const section = Uint8Array.fromHex("0208efbbbf6104ff6200");
    expect(readAvroTags(section, 1, "strict")).toEqual([{ name: "\ufeffa", value: "\ufffdb" }]);
  });

  test("reads what it writes, whatever the tags say", () => {
    const text = fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter((made) => made.isWellFormed());
    const tags = fc.array(fc.record({ name: text, value: text }), { maxLength: 40 });
    fc.assert(
      fc.property(tags, (made) => {
        fc.pre(tagsFault(made) === undefined);
        const section = writeAvroTags(made);
        expect(readAvroTags(section, made.length, "strict")).toEqual(made);
        expect(readAvroTags(section, made.length, "lenient")).toEqual(made);
      }),
      { numRuns: 300 },
    );
  });
});

describe("B3: tagsFault", () => {
  test("allows a section of 4096 bytes and not one more", () => {
    const full = [
      { name: "n", value: "v".repeat(3_072) },
      { name: "m", value: "w".repeat(4_096 - 3_072 - 10) },
    ];
    expect(writeAvroTags(full).length).toBe(tagLimits.strict.sectionSize);
    expect(tagsFault(full)).toBeUndefined();
    const more = full.map((tag, index) => (index === 1 ? { ...tag, value: `${tag.value}w` } : tag));
    expect(tagsFault(more)).toBe("4097 tag bytes exceed 4096");
  });
});

function outcome(read: readonly Tag[] | string): number | string {
  return typeof read === "string" ? read : read.length;
}
