/**
 * Progress: a bar on a terminal, lines elsewhere, with a clock that the test sets.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createProgress } from "../../src/cli/terminal.ts";
import { bytesText, countText, durationText, readBytes, sizeText, wincText } from "../../src/lib/quantity-text.ts";

const mebibyte = 2 ** 20;

function begin(isTerminal: boolean, columns = 100, bytesTotal = 100 * mebibyte, filesTotal = 1) {
  const written: string[] = [];
  const clock = { now: 1_000_000 };
  const screen = { write: (text: string) => void written.push(text), isTerminal, columns };
  const total = { bytesTotal, filesTotal };
  const progress = createProgress({ screen, clock: () => clock.now, verb: "uploading", ...total });
  return { written, clock, progress };
}

describe("on a terminal", () => {
  test("a bar shows share, size, rate and remaining time, and overwrites itself", () => {
    const { written, clock, progress } = begin(true, 120);
    clock.now += 2_000;
    progress.add(50 * mebibyte);
    expect(written).toEqual([
      `\r\x1b[K[${"#".repeat(20)}${"-".repeat(20)}] uploading 50 %, 50.0 MiB of 100.0 MiB, 25.0 MiB/s, 2 s left`,
    ]);
    progress.end();
    expect(written.at(-1)).toBe("\r\x1b[K");
  });

  test("it is updated at most ten times a second, and is never wider than the terminal", () => {
    for (const columns of [20, 60, 80, 200]) {
      const { written, clock, progress } = begin(true, columns);
      for (let step = 0; step < 1_000; step += 1) {
        clock.now += 1;
        progress.add(100_000);
      }
      expect(written.length).toBeLessThanOrEqual(11);
      for (const text of written) expect(text.replace("\r\x1b[K", "").length).toBeLessThan(columns);
    }
  });

  test("existing bytes count as done, but not for the rate", () => {
    const { written, clock, progress } = begin(true, 120);
    progress.pass(90 * mebibyte);
    clock.now += 1_000;
    progress.add(5 * mebibyte);
    expect(written.at(-1)).toContain("95 %, 95.0 MiB of 100.0 MiB, 5.0 MiB/s, 1 s left");
  });

  test("a message in between gets its own line", () => {
    const { written, progress } = begin(true);
    progress.say("again in 1 s");
    expect(written).toEqual(["\r\x1b[Kagain in 1 s\n"]);
  });
});

describe("elsewhere", () => {
  test("a line is written every five seconds at most, and nothing at the end", () => {
    const { written, clock, progress } = begin(false);
    for (let second = 1; second <= 12; second += 1) {
      clock.now += 1_000;
      progress.add(mebibyte);
    }
    progress.end();
    expect(written).toEqual([
      "uploading 5 %, 5.0 MiB of 100.0 MiB, 1.0 MiB/s, 1 min 35 s left\n",
      "uploading 10 %, 10.0 MiB of 100.0 MiB, 1.0 MiB/s, 1 min 30 s left\n",
    ]);
  });

  test("for several files it shows the number of finished files", () => {
    const { written, clock, progress } = begin(false, 80, 100 * mebibyte, 300);
    progress.count();
    clock.now += 5_000;
    progress.add(mebibyte);
    clock.now += 5_000;
    progress.count();
    expect(written).toEqual([
      "uploading 1 %, 1 of 300 files, 1.0 MiB of 100.0 MiB, 204.8 KiB/s, 8 min 15 s left\n",
      "uploading 1 %, 2 of 300 files, 1.0 MiB of 100.0 MiB, 102.4 KiB/s, 16 min 30 s left\n",
    ]);
  });

  test("the share is at most 100 %, also of an empty upload", () => {
    for (const total of [0, mebibyte]) {
      const { written, clock, progress } = begin(false, 80, total);
      clock.now += 10_000;
      progress.add(2 * mebibyte);
      expect(written[0]).toStartWith(`uploading 100 %, ${bytesText(total)} of ${bytesText(total)}`);
      expect(written[0]).toEndWith("0 s left\n");
    }
  });
});

test.each([
  [bytesText(0), "0 B"],
  [bytesText(1_023), "1023 B"],
  [bytesText(1_024), "1.0 KiB"],
  [bytesText(10 * 2 ** 30), "10.0 GiB"],
  [bytesText(2 ** 60), "1024.0 PiB"],
  [durationText(0), "0 s"],
  [durationText(59_001), "1 min 0 s"],
  [durationText(3_600_000), "1 h 0 min"],
  [wincText(0n), "0 winc"],
  [wincText(999n), "999 winc"],
  [wincText(1_094_285_714_286n), "1,094,285,714,286 winc"],
  [countText(1, "file"), "1 file"],
  [countText(0, "file"), "0 files"],
])("%s is printed for %s", (text, wanted) => {
  expect(text).toBe(wanted);
});

test.each([
  [0, "0"],
  [1_023, "1023"],
  [1_024, "1KiB"],
  [1_025, "1025"],
  [1.5 * 2 ** 40, "1536GiB"],
  [10 * 2 ** 30, "10GiB"],
  [2 ** 52, "4PiB"],
  [Number.MAX_SAFE_INTEGER, "9007199254740991"],
])("%d bytes are printed exactly as %p, which is read back", (bytes, text) => {
  expect([sizeText(bytes), readBytes(text)]).toEqual([text, bytes]);
});

test.each([
  ["0", 0],
  ["1048576", 2 ** 20],
  ["17B", 17],
  ["10GiB", 10 * 2 ** 30],
  ["1.5 MiB", 1.5 * 2 ** 20],
  ["7PiB", 7 * 2 ** 50],
  ["9007199254740991", Number.MAX_SAFE_INTEGER],
  ["9007199254740992", undefined],
  ["0.3KiB", undefined], // not a whole number of bytes
  ["10GB", undefined],
  ["-1", undefined],
  ["GiB", undefined],
  ["", undefined],
])("the size %p is %p bytes", (text, bytes) => {
  expect(readBytes(text)).toBe(bytes);
});
