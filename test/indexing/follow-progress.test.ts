/**
 * The lines that tell how far the index is: every 10 s while it is behind, and one when it has caught up.
 * @module
 */
import { expect, test } from "bun:test";
import { createProgress } from "../../src/indexing/follow.ts";
import { createRecordingLog } from "../support/recording-log.ts";

/** A report of blocks, at times, with the number of items so far. */
function report(blocks: readonly (readonly [at: number, height: number, tip: number | undefined, items: number])[]) {
  const { log, lines } = createRecordingLog();
  const now = { at: 0, items: 0 };
  const reader = { counts: () => ({ items: now.items }) as never };
  const onBlock = createProgress({ clock: () => now.at, reader, log });
  for (const [at, height, tip, items] of blocks) {
    Object.assign(now, { at, items });
    onBlock(height, tip);
  }
  return lines.map(({ time: _, ...line }): Record<string, unknown> => line);
}

const behind = "catching up with the chain";

test("a line every 10 s with rates since the last line and the time left", () => {
  const blocks = Array.from(
    { length: 25 },
    (_, second) => [second * 1_000, 100 + second * 5, 1_000, second * 70] as const,
  );
  expect(report(blocks)).toEqual([
    {
      level: "info",
      message: behind,
      height: 150,
      tip: 1_000,
      blocksPerSecond: 5,
      itemsPerSecond: 70,
      secondsLeft: 170,
    },
    {
      level: "info",
      message: behind,
      height: 200,
      tip: 1_000,
      blocksPerSecond: 5,
      itemsPerSecond: 70,
      secondsLeft: 160,
    },
  ]);
});

test("a line when it has caught up, if it was reported to be behind", () => {
  const lines = report([
    [0, 1, 500, 0],
    [10_000, 400, 500, 0],
    [12_000, 499, 500, 0],
    [13_000, 500, 500, 0],
    [14_000, 501, 501, 0],
  ]);
  expect(lines.map((line) => [line["message"], line["height"]])).toEqual([
    [behind, 400],
    ["caught up with the chain", 500],
  ]);
});

test.each([
  ["at the tip", 0],
  ["nine blocks behind", 9],
])("no line %s, however long", (_name, lag) => {
  expect(report(Array.from({ length: 50 }, (_, at) => [at * 60_000, at, at + lag, at] as const))).toEqual([]);
});

test("no line before the nodes' height is known", () => {
  expect(report(Array.from({ length: 50 }, (_, at) => [at * 60_000, at, undefined, at] as const))).toEqual([]);
});
