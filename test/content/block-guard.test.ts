/**
 * The block guard alone: each of its checks rejects by itself.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { type Id, readId } from "../../src/arweave/id.ts";
import { type ContentBlockList, createBlockGuard } from "../../src/content/block-guard.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";

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
};
const guardOf = (blocks: Partial<ContentBlockList>) =>
  createBlockGuard({ itemsWithin: () => [] }, { ...nothing, ...blocks });

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
