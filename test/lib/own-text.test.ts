/**
 * Texts that share no memory with the longer ones that they were cut from.
 * @module
 */
import { expect, test } from "bun:test";
import { ownText, partOf } from "../../src/lib/own-text.ts";
import { memoryOfEach } from "../support/heap.ts";

/** Memory of each of the texts that a cut returns, from texts of 16 KB. Bytes. */
const memoryOf = (cut: (text: string) => string) =>
  memoryOfEach(500, (number) => cut(String(number).padStart(16_000, "x")));

test("a part of a text has all of it in memory, its copy has not", () => {
  expect(memoryOf((text) => text.slice(-43))).toBeGreaterThan(12_000);
  expect(memoryOf((text) => ownText(text.slice(-43)))).toBeLessThan(1_000);
  expect(memoryOf((text) => partOf(text, text.slice(-43)))).toBeLessThan(1_000);
});

test.each(["", "a", "ü€😀", "A".repeat(43), "\0\n"])("a copy of %j is the same text", (text) => {
  expect(ownText(text)).toBe(text);
  expect(partOf(text.repeat(400), text)).toBe(text);
  expect(partOf(text, text)).toBe(text);
});
