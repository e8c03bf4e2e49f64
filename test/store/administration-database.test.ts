/**
 * An operator's requests: staged ids and exports, stored across restarts.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { type ExportRequest, openAdministration, stagedMax } from "../../src/store/administration-database.ts";
import { idOf } from "../support/memory-content.ts";
import { temporaryFolder } from "./folder.ts";

const startMs = 1_700_000_000_000;

/** An open file with the test's clock. */
function openFile(path: string, time = { now: startMs }) {
  const opened = openAdministration(`${path}/administration.sqlite`, () => time.now);
  return { ...opened, time };
}

describe("staged ids", () => {
  test("are returned in the order of their due times, also after a restart, until they are removed", () => {
    using folder = temporaryFolder();
    const first = openFile(folder.path);
    expect(first.staged.nextDueAt()).toBeUndefined();
    for (const name of ["a", "b", "c"])
      expect(first.staged.add({ id: idOf(name), isBundle: name === "b", bypassFilter: name === "b" })).toBe(true);
    const [row] = first.staged.due(startMs, 10);
    if (row === undefined) throw new Error("one of them is due");
    first.staged.postpone(row, startMs + 5_000, "no node has it");
    first.close();

    const second = openFile(folder.path);
    expect(second.staged.count()).toBe(3);
    expect(second.staged.due(startMs, 10)).toHaveLength(2);
    const due = second.staged.due(startMs + 5_000, 10);
    expect(due.map(({ id }) => id).at(-1)).toBe(row.id);
    expect(due.at(-1)).toMatchObject({
      attempts: 1,
      reason: "no node has it",
      firstStagedAt: startMs / 1_000,
    });
    expect(second.staged.find(idOf("b"))).toMatchObject({ isBundle: true, bypassFilter: true });
    for (const each of due) second.staged.remove(each);
    expect([second.staged.count(), second.staged.nextDueAt()]).toEqual([0, undefined]);
    second.close();
  });

  test("a repeated request is merged, becomes due, and survives an attempt in progress", () => {
    using folder = temporaryFolder();
    const { staged, time, close } = openFile(folder.path);
    const id = idOf("again");
    staged.add({ id, isBundle: false, bypassFilter: false });
    const [before] = staged.due(startMs, 1);
    if (before === undefined) throw new Error("it is due");
    staged.postpone(before, startMs + 60_000, "pending");
    time.now += 1_000;
    staged.add({ id, isBundle: true, bypassFilter: true });
    expect(staged.due(startMs, 1)).toEqual([
      {
        id,
        isBundle: true,
        bypassFilter: true,
        attempts: 0,
        reason: "pending",
        revision: 1,
        isFound: false,
        firstStagedAt: startMs / 1_000,
        lastStagedAt: startMs / 1_000 + 1,
      },
    ]);
    staged.remove(before); // the attempt that began before
    staged.postpone(before, startMs + 60_000, "late");
    expect(staged.due(startMs, 1)).toHaveLength(1);
    staged.add({ id, isBundle: false, bypassFilter: false });
    expect(staged.find(id)).toMatchObject({ isBundle: true, bypassFilter: true, revision: 2 });
    close();
  });

  test(`more than ${stagedMax} are rejected, except for ids that are staged already`, () => {
    using folder = temporaryFolder();
    const { staged, close } = openFile(folder.path);
    const options = (name: string) => ({ id: idOf(name), isBundle: false, bypassFilter: false });
    for (let index = 0; index < stagedMax; index++) staged.add(options(`${index}`));
    expect(staged.count()).toBe(stagedMax);
    expect(staged.add(options("one more"))).toBe(false);
    expect(staged.add(options("7"))).toBe(true);
    const [row] = staged.due(startMs, 1);
    if (row !== undefined) staged.remove(row);
    expect(staged.add(options("one more"))).toBe(true);
    close();
  }, 120_000);
});

describe("exports", () => {
  const request: ExportRequest = {
    outputDir: "a",
    folder: "/exports/a",
    startHeight: 1,
    endHeight: 9,
    maxFileRows: 0,
    heightPartitionSize: 1_000,
    skipL1Transactions: true,
    skipL1Tags: true,
  };

  test("the newest one is returned, with its outcome and times", () => {
    using folder = temporaryFolder();
    const { exports, time, close } = openFile(folder.path);
    expect(exports.last()).toBeUndefined();
    exports.begin(request);
    const begun = { state: "running", request, startedAt: startMs, endedAt: null, error: null } as const;
    expect(exports.last()).toEqual(begun);
    time.now += 2_500;
    exports.end("errored", "the disk is full");
    const ended = {
      ...begun,
      state: "errored",
      endedAt: startMs + 2_500,
      error: "the disk is full",
    } as const;
    expect(exports.last()).toEqual(ended);
    exports.end("completed", null); // none runs
    expect(exports.last()).toEqual(ended);
    exports.begin({ ...request, outputDir: "b" });
    expect(exports.last()).toMatchObject({ state: "running", request: { outputDir: "b" } });
    close();
  });

  test("one that was running when the process ended is interrupted, without an end time", () => {
    using folder = temporaryFolder();
    const first = openFile(folder.path);
    first.exports.begin(request);
    first.close();
    const second = openFile(folder.path, { now: startMs + 60_000 });
    expect(second.exports.last()).toEqual({
      state: "interrupted",
      request,
      startedAt: startMs,
      endedAt: null,
      error: null,
    });
    second.close();
  });

  test("a thousand leave a bounded list", () => {
    using folder = temporaryFolder();
    const { exports, close } = openFile(folder.path);
    for (let index = 0; index < 300; index++) {
      exports.begin({ ...request, startHeight: index });
      exports.end("completed", null);
    }
    expect(exports.last()?.request.startHeight).toBe(299);
    close();
  });
});
