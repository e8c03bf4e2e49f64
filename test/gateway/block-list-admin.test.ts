/**
 * Changes of the block list: caches are dropped after each of them.
 * @module
 */
import { expect, test } from "bun:test";
import { createBlockListAdmin } from "../../src/gateway/administration/block-list-admin.ts";
import { openBlockList } from "../../src/store/block-list.ts";
import { temporaryFolder } from "../store/folder.ts";
import { idOf } from "../support/memory-content.ts";

test("content that was blocked by hash leaves the caches, although its operator left before its id was located", async () => {
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
  expect([blockList.hasBlockedDigests(), dropped]).toEqual([true, 1]);
  blockList.close();
});
