/**
 * The block guard alone: each of its checks rejects by itself.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { type Id, readId } from "../../src/arweave/id.ts";
import { type ContentBlockList, createBlockGuard } from "../../src/content/block-guard.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import type { ItemSpan } from "../../src/store/index/index-types.ts";

const idOf = (name: string): Id => {
  const id = readId(encodeBase64url(sha256(new TextEncoder().encode(name))));
  if (id === undefined) throw new Error("a hash is an id");
  return id;
};
const [item, root, other] = [idOf("item"), idOf("root"), idOf("other")];
const digest = sha256(new TextEncoder().encode("payload"));

const nothing: ContentBlockList = {
  isBlockedId: () => false,
  isBlockedDigest: () => false,
  isBlockedWithin: () => false,
  hasBlockedDigests: () => false,
  has: (kind) => kind === "id",
  version: () => 0,
};
const guardOf = (blocks: Partial<ContentBlockList>) =>
  createBlockGuard({ itemsWithin: () => [], version: () => 0 }, { ...nothing, ...blocks });

describe("P1: items of a rejected root", () => {
  test.each([
    ["the item", (id: Id) => id === item, true],
    ["its root, of which no place is known", (id: Id) => id === root, true],
    ["another transaction", (id: Id) => id === other, false],
  ] as const)("%s is blocked", (_, isBlockedId, rejects) => {
    const check = () => guardOf({ isBlockedId }).checkId(item, root, undefined);
    if (rejects) expect(check).toThrow("Blocked by this gateway's content policy");
    else expect(check).not.toThrow();
  });

  test("the hash of the item is blocked", () => {
    const isBlockedDigest = (bytes: Uint8Array) => Buffer.compare(bytes, digest) === 0;
    expect(() => guardOf({ isBlockedDigest }).checkId(item, root, digest)).toThrow();
    expect(() => guardOf({ isBlockedDigest }).checkId(item, root, undefined)).not.toThrow();
  });

  test("a span that contains known blocked bytes is blocked, also without index rows", async () => {
    const isBlockedWithin = (id: Id, start: number, end: number) => id === root && start < 20 && end > 10;
    const guard = guardOf({ isBlockedWithin });
    await expect(guard.checkSpan(root, undefined, { start: 19, end: 30 })).rejects.toMatchObject({
      code: "blocked",
    });
    await guard.checkSpan(root, undefined, { start: 20, end: 30 });
    await guard.checkSpan(other, undefined, { start: 0, end: 30 });
  });
});

describe("P1: a decision about all of a content", () => {
  const parent = idOf("bundle around it");
  const [own, around] = [digest, sha256(new TextEncoder().encode("root's data"))];
  const place = { height: 1, txIndex: 0, offset: 5 };
  const span = { start: 10, end: 20 };
  const content = { ids: [item, parent], rootId: root, place, span, rootSize: 1_000 };
  const blocksId = (blocked: Id) => ({ isBlockedId: (id: Id) => id === blocked });
  const blocksHash = (blocked: Uint8Array) => ({
    isBlockedDigest: (bytes: Uint8Array) => Buffer.compare(bytes, blocked) === 0,
    hasBlockedDigests: () => true,
  });
  const within = (count: number, id = other): ItemSpan[] =>
    Array.from({ length: count }, () => ({ id, digest: undefined, ...span }) as unknown as ItemSpan);

  test.each([
    ["nothing of it is blocked", blocksId(idOf("unrelated")), [], own, around, true],
    ["its id", blocksId(item), [], own, around, false],
    ["a bundle around it", blocksId(parent), [], own, around, false],
    ["its root", blocksId(root), [], own, around, false],
    ["its hash", blocksHash(own), [], own, around, false],
    ["the hash of its root", blocksHash(around), [], own, around, false],
    ["another hash", blocksHash(idBytesOf("x")), [], own, around, true],
    ["another hash, its own unknown", blocksHash(idBytesOf("x")), [], undefined, around, false],
    ["another hash, that of its root unknown", blocksHash(idBytesOf("x")), [], own, undefined, false],
    ["an id, no hash known", blocksId(idOf("unrelated")), [], undefined, undefined, true],
    ["a place within it", { isBlockedWithin: () => true }, [], own, around, false],
    ["an item within it", blocksId(other), within(1), own, around, false],
    ["an id, few items within it", blocksId(idOf("unrelated")), within(999), own, around, true],
    ["an id, more items than one query returns", blocksId(idOf("unrelated")), within(1_000), own, around, false],
  ] as const)("blocked is %s", (_, blocks, items, contentHash, rootHash, isClear) => {
    const guard = createBlockGuard(
      { itemsWithin: (_root, _start, _end, limit) => items.slice(0, limit), version: () => 0 },
      { ...nothing, ...blocks },
    );
    expect(guard.clearance(content)(contentHash, rootHash)).toBe(isClear);
  });

  test("is reused until the block list, the index or a hash changes", () => {
    const state = { list: 1, index: 1, blocked: new Set<Id>(), items: within(0), looks: 0 };
    const guard = createBlockGuard(
      {
        itemsWithin: () => {
          state.looks += 1;
          return state.items;
        },
        version: () => state.index,
      },
      { ...nothing, isBlockedId: (id) => state.blocked.has(id), version: () => state.list },
    );
    const isClear = guard.clearance(content);
    const expectLook = (expected: boolean, hash: Uint8Array | undefined = own) => {
      const { looks } = state;
      expect([isClear(hash, around), isClear(hash, around), state.looks - looks]).toEqual([expected, expected, 1]);
    };
    expectLook(true);
    state.items = within(1);
    state.index += 1;
    expectLook(true);
    state.blocked.add(other);
    state.list += 1;
    expectLook(false);
    state.blocked.clear();
    state.list += 1;
    expectLook(true);
    expectLook(true, around);
    state.blocked.add(item);
    state.list += 1;
    expect(isClear(around, around)).toBe(false);
  });
});

function idBytesOf(name: string): Uint8Array {
  return sha256(new TextEncoder().encode(name));
}
