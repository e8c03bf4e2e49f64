/**
 * Texts that share no memory with the longer ones that they were cut from.
 * @module
 */
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { ownText, partOf } from "../../src/lib/own-text.ts";

/** Memory of each of the texts that a cut returns, from texts of 16 KB. Bytes. */
function memoryOfEach(cut: (text: string) => string): number {
  const count = 500;
  const made = () => Array.from({ length: count }, (_, number) => cut(String(number).padStart(16_000, "x")));
  made();
  Bun.gc(true);
  const before = heapStats().heapSize;
  const texts = made();
  Bun.gc(true);
  const taken = (heapStats().heapSize - before) / count;
  expect(texts).toHaveLength(count);
  return taken;
}

test("a part of a text has all of it in memory, its copy has not", () => {
  expect(memoryOfEach((text) => text.slice(-43))).toBeGreaterThan(15_000);
  expect(memoryOfEach((text) => ownText(text.slice(-43)))).toBeLessThan(1_000);
  expect(memoryOfEach((text) => partOf(text, text.slice(-43)))).toBeLessThan(1_000);
});

test.each(["", "a", "ü€😀", "A".repeat(43), "\0\n"])("a copy of %j is the same text", (text) => {
  expect(ownText(text)).toBe(text);
  expect(partOf(text.repeat(400), text)).toBe(text);
  expect(partOf(text, text)).toBe(text);
});
