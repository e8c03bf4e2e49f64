/**
 * Changes of the block list: caches are dropped after each of them.
 * @module
 */
import { expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { createBlockListAdmin } from "../../src/gateway/administration/block-list-admin.ts";
import { type BlockedPlace, openBlockList } from "../../src/store/block-list.ts";
import { temporaryFolder } from "../store/folder.ts";
import { idOf } from "../support/memory-content.ts";

test("content that is blocked leaves the caches, although its operator left before its id was located", async () => {
  using folder = temporaryFolder();
  const blockList = openBlockList(`${folder.path}/moderation.sqlite`, Date.now);
  let dropped = 0;
  const admin = createBlockListAdmin({
    blockList,
    locate: async (_id, signal) => {
      throw signal.reason;
    },
    onChange: () => {
      dropped += 1;
    },
  });
  const left = AbortSignal.abort(new Error("left"));
  const data = { id: idOf("a"), hash: idOf("hash") };
  await expect(admin.blockData(data, {}, left)).rejects.toThrow("left");
  expect([blockList.hasBlockedDigests(), dropped]).toEqual([true, 2]);
  blockList.close();
});

/** Blocks an id whose place is located later. */
async function withBlocking(
  check: (parts: {
    blockList: ReturnType<typeof openBlockList>;
    blocking: Promise<void>;
    found: ReturnType<typeof Promise.withResolvers<BlockedPlace | undefined>>;
    dropped: () => number;
  }) => Promise<void>,
): Promise<void> {
  using folder = temporaryFolder();
  const blockList = openBlockList(`${folder.path}/moderation.sqlite`, Date.now);
  const found = Promise.withResolvers<BlockedPlace | undefined>();
  let dropped = 0;
  const admin = createBlockListAdmin({
    blockList,
    // As content does, which does not return the place of a blocked id.
    locate: (id) => (blockList.isBlockedId(id) ? Promise.resolve(undefined) : found.promise),
    onChange: () => {
      dropped += 1;
    },
  });
  const blocking = admin.blockData({ id: slow, hash: undefined }, {}, new AbortController().signal);
  await check({ blockList, blocking, found, dropped: () => dropped });
  blockList.close();
}

const slow: Id = idOf("slow");

test("an id is blocked before it is located, and its place afterwards", async () => {
  await withBlocking(async ({ blockList, blocking, found, dropped }) => {
    expect([blockList.isBlockedId(slow), dropped()]).toEqual([true, 1]);
    found.resolve({ rootId: idOf("root"), dataRoot: "", start: 5, end: 9 });
    await blocking;
    expect([blockList.isBlockedWithin(idOf("root"), 8, 20), dropped()]).toEqual([true, 2]);
  });
});

test("an id stays blocked when it cannot be located", async () => {
  await withBlocking(async ({ blockList, blocking, found }) => {
    found.reject(new Error("left"));
    await expect(blocking).rejects.toThrow("left");
    expect(blockList.isBlockedId(slow)).toBe(true);
  });
});
