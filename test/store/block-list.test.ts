/**
 * The block list: entries are visible to every connection and survive a restart.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readId } from "../../src/arweave/id.ts";
import { assert } from "../../src/lib/assert.ts";
import { isContentHash, openBlockList } from "../../src/store/block-list.ts";
import { idOf } from "../support/memory-content.ts";
import { temporaryFolder } from "./folder.ts";

const id = readId("A".repeat(43));
assert(id !== undefined, "the test's id is an id");

describe("block list", () => {
  test("another connection sees an entry at once, also after the first one closed", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/moderation.sqlite`;
    const first = openBlockList(path, () => 1_700_000_000_000);
    const second = openBlockList(path, () => 1_700_000_000_000);
    expect(second.isBlockedId(id)).toBe(false);
    first.block("id", id, { source: "court", notes: "order 5" });
    expect(second.isBlockedId(id)).toBe(true);
    first.close();
    second.close();

    const third = openBlockList(path, () => 0);
    expect(third.list(10)).toEqual([
      { kind: "id", value: id, source: "court", notes: "order 5", blockedAt: 1_700_000_000 },
    ]);
    third.close();
  });

  test("ids, hashes and names are separate", () => {
    using folder = temporaryFolder();
    const blockList = openBlockList(`${folder.path}/moderation.sqlite`, () => 0);
    const digest = new Uint8Array(32);
    blockList.block("hash", "A".repeat(43), {});
    expect([blockList.isBlockedId(id), blockList.isBlockedDigest(digest)]).toEqual([false, true]);
    expect([blockList.hasBlockedDigests(), blockList.has("name")]).toEqual([true, false]);
    blockList.block("name", "ardrive", {});
    expect(blockList.isBlockedName("ardrive")).toBe(true);
    expect(blockList.isBlockedName("arDrive")).toBe(false);
    blockList.close();
  });

  test("a removed entry is not blocked any more, and each change has a new version", () => {
    using folder = temporaryFolder();
    const blockList = openBlockList(`${folder.path}/moderation.sqlite`, () => 0);
    const versions = [blockList.version()];
    blockList.block("name", "a", {});
    versions.push(blockList.version());
    blockList.block("name", "a", { notes: "said twice" });
    expect(blockList.list(10).length).toBe(1);
    expect(blockList.unblock("name", "a")).toBe(true);
    versions.push(blockList.version());
    expect(blockList.unblock("name", "a")).toBe(false);
    expect(blockList.isBlockedName("a")).toBe(false);
    expect(new Set(versions).size).toBe(3);
    blockList.close();
  });

  test("a place, and each change of another connection, has a new version", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/moderation.sqlite`;
    const [first, second] = [openBlockList(path, () => 0), openBlockList(path, () => 0)];
    const versions = [first.version()];
    second.block("id", id, {});
    versions.push(first.version());
    second.place(id, { rootId: idOf("root"), dataRoot: "", start: 0, end: 10 });
    versions.push(first.version());
    second.unblock("id", id);
    versions.push(first.version());
    expect(new Set(versions).size).toBe(4);
    first.close();
    second.close();
  });

  test("the place of a blocked id is stored until the id is unblocked, also after a restart", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/moderation.sqlite`;
    const [rootId, other] = [idOf("root"), idOf("other root")];
    const [dataRoot, otherData] = [idOf("data root"), idOf("other data root")];
    const first = openBlockList(path, () => 0);
    first.place(id, { rootId, dataRoot, start: 100, end: 200 }); // it is not blocked
    expect(first.isBlockedWithin(rootId, 0, 1_000)).toBe(false);
    first.block("id", id, {});
    first.place(id, { rootId, dataRoot, start: 100, end: 200 });
    first.block("id", other, {});
    first.place(other, { rootId: other, dataRoot: "", start: 0, end: 50 });
    first.block("id", id, { notes: "said twice" });
    first.close();

    const blockList = openBlockList(path, () => 0);
    const rows: readonly (readonly [number, number, boolean])[] = [
      [0, 100, false],
      [0, 101, true],
      [150, 160, true],
      [199, 300, true],
      [200, 300, false],
      [0, 1_000, true],
    ];
    for (const [start, end, expected] of rows) {
      expect([start, end, blockList.isBlockedWithin(rootId, start, end)]).toEqual([start, end, expected]);
      expect([start, end, blockList.isBlockedUnder(dataRoot, start, end)]).toEqual([start, end, expected]);
    }
    expect(blockList.isBlockedWithin(other, 0, 10)).toBe(true);
    expect(blockList.isBlockedUnder(otherData, 0, 1_000)).toBe(false);
    expect(blockList.isBlockedUnder("", 0, 1_000)).toBe(false);
    blockList.unblock("id", id);
    expect(blockList.isBlockedWithin(rootId, 0, 1_000)).toBe(false);
    blockList.close();
  });

  test("the list continues after any position", () => {
    using folder = temporaryFolder();
    let now = 0;
    const blockList = openBlockList(`${folder.path}/moderation.sqlite`, () => now);
    for (let index = 0; index < 10; index++) {
      now = Math.floor(index / 3) * 1_000;
      blockList.block(index % 2 === 0 ? "name" : "id", `value ${index}`, {});
    }
    const whole = blockList.list(100);
    expect(whole.map(({ blockedAt }) => blockedAt)).toEqual([3, 2, 2, 2, 1, 1, 1, 0, 0, 0]);
    for (const [index, row] of whole.entries()) expect(blockList.list(100, row)).toEqual(whole.slice(index + 1));
    blockList.close();
  });

  test.each([
    ["A".repeat(43), true],
    [`${"A".repeat(42)}B`, false], // bits set that the canonical spelling leaves zero
    ["A".repeat(42), false],
    ["", false],
    [`${"A".repeat(43)}=`, false],
  ])("%p is a content hash: %p", (text, expected) => {
    expect(isContentHash(text)).toBe(expected);
  });
});
