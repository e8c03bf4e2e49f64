/**
 * Exports: allowed folders, one at a time, and their reported status.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/failures.ts";
import { findExportFolder } from "../../src/gateway/administration/export-folder.ts";
import { type ExportOptions, type ExportsOptions, openExports } from "../../src/gateway/administration/exports.ts";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openAdministration } from "../../src/store/administration-database.ts";
import { createRecordingLog } from "../support/recording-log.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-exports-"));
const root = join(folder, "root");
const outside = join(folder, "outside");

beforeAll(() => {
  mkdirSync(join(root, "inside/deep"), { recursive: true });
  mkdirSync(outside);
  mkdirSync(join(folder, "root-too"));
  writeFileSync(join(root, "file"), "x");
  symlinkSync(outside, join(root, "out"));
  symlinkSync(join(root, "inside"), join(root, "in"));
  symlinkSync(join(outside, "nothing"), join(root, "dangling"));
  symlinkSync(join(root, "round"), join(root, "round"));
  symlinkSync(root, join(folder, "alias"));
});
afterAll(() => removeFolder(folder));

describe("F1: a folder to export to", () => {
  test.each([
    ["a", "a"],
    ["a/b/c", "a/b/c"],
    ["inside", "inside"],
    ["inside/new", "inside/new"],
    ["in/new", "inside/new"],
    [".", ""],
    ["a/../b", "b"],
    ["./a/./b/", "a/b"],
    ["..a", "..a"],
    ["a b", "a b"],
  ])("%p is %p below the root", async (outputDir, expected) => {
    expect(await findExportFolder(root, outputDir)).toBe(join(root, expected));
  });

  test("the path of the root and a link to it are accepted", async () => {
    expect(await findExportFolder(root, join(root, "a"))).toBe(join(root, "a"));
    expect(await findExportFolder(root, join(folder, "alias", "a"))).toBe(join(root, "a"));
    expect(await findExportFolder(join(folder, "alias"), "a")).toBe(join(root, "a"));
    expect(await findExportFolder(join(folder, "made"), "a")).toBe(join(folder, "made", "a"));
  });

  test.each([
    "",
    "..",
    "../../etc",
    "a/../../x",
    "/etc/cron.d",
    "/",
    join(folder, "root-too"),
    outside,
    "out",
    "out/a",
    "in/../../outside/../../etc",
    "dangling",
    "dangling/a",
    "round",
    "round/a",
    "file",
    "file/a",
    "~",
    "~root",
    "a\0b",
    "\0",
    "x".repeat(5_000),
    `a/${"x".repeat(256)}`,
    "x/".repeat(1_000),
  ])("%p is rejected", async (outputDir) => {
    expect(await findExportFolder(root, outputDir)).toBeUndefined();
  });
});

const options: ExportOptions = {
  outputDir: "a",
  startHeight: 0,
  endHeight: 5,
  maxFileRows: 0,
  heightPartitionSize: 1_000,
  skipL1Transactions: true,
  skipL1Tags: true,
};

/** Exports with a writer that the test ends. */
function openHarness(path: string) {
  const time = { now: 1_700_000_000_000 };
  const administration = openAdministration(path, () => time.now);
  let writing = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const write: ExportsOptions["write"] = (_request, signal) => {
    writing = Promise.withResolvers<void>();
    signals.push(signal);
    signal.addEventListener("abort", () => writing.reject(signal.reason), { once: true });
    return writing.promise;
  };
  const writer = {
    resolve: () => writing.resolve(),
    reject: (error: unknown) => writing.reject(error),
  };
  const exports = openExports({ records: administration.exports, root, write, log: silentLog });
  return { exports, writer, time, signals, close: administration.close };
}

const codeOf = (error: unknown) => (error instanceof Failure ? error.code : String(error));

describe("F1: an export", () => {
  test("runs alone, and reports its duration", async () => {
    const { exports, writer, time, close } = openHarness(join(folder, "one.sqlite"));
    expect(exports.status()).toEqual({ status: "not_started" });
    await exports.start(options);
    expect(exports.status()).toEqual({ status: "running", ...options });
    expect(await exports.start({ ...options, outputDir: "b" }).catch(codeOf)).toBe("export_running");
    expect(await exports.start({ ...options, outputDir: ".." }).catch(codeOf)).toBe("export_rejected");
    time.now += 12_345;
    writer.resolve();
    await yieldToEventLoop();
    expect(exports.status()).toEqual({
      status: "completed",
      ...options,
      durationInSeconds: 12.345,
      endTime: "2023-11-14T22:13:32.345Z",
      endTimestamp: 1_700_000_012_345,
    });
    await exports.start({ ...options, outputDir: "b" });
    expect(exports.status()).toMatchObject({ status: "running", outputDir: "b" });
    writer.reject(new Error("the disk is full"));
    await yieldToEventLoop();
    expect(exports.status()).toMatchObject({ status: "errored", error: "the disk is full" });
    close();
  });

  test("of two concurrent requests, one runs", async () => {
    const { exports, writer, close } = openHarness(join(folder, "two.sqlite"));
    const outcomes = await Promise.all(
      ["a", "b"].map((outputDir) =>
        exports.start({ ...options, outputDir }).then(
          () => "started",
          (error: unknown) => codeOf(error),
        ),
      ),
    );
    expect(outcomes.toSorted()).toEqual(["export_running", "started"]);
    writer.resolve();
    await yieldToEventLoop();
    close();
  });

  test("that runs when the gateway stops is interrupted, and its writer is aborted", async () => {
    const path = join(folder, "three.sqlite");
    const { exports, signals, close } = openHarness(path);
    await exports.start(options);
    await exports.close();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(exports.status()).toMatchObject({ status: "interrupted", endTimestamp: 1_700_000_000_000 });
    close();
    const again = openHarness(path);
    expect(again.exports.status()).toMatchObject({ status: "interrupted", ...options });
    again.close();
  });

  test("whose end cannot be recorded, as on the full disk that ended it, is interrupted, and the next one can start", async () => {
    const { exports: records, close } = openAdministration(join(folder, "four.sqlite"), () => 1_700_000_000_000);
    const full = () => {
      throw new Error("database or disk is full");
    };
    const { log, lines } = createRecordingLog(() => 0);
    const exports = openExports({ records: { ...records, end: full }, root, write: async () => full(), log });
    await exports.start(options);
    await yieldToEventLoop();
    expect(exports.status()).toMatchObject({ status: "interrupted", outputDir: "a" });
    expect(lines.map(({ level }) => level)).toEqual(["warn", "error"]);
    await exports.start({ ...options, outputDir: "b" });
    await exports.close();
    expect(exports.status()).toMatchObject({ status: "interrupted", outputDir: "b" });
    close();
  });
});
