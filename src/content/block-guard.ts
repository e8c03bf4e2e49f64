/**
 * Checks content against the block list: blocked ids, blocked hashes, and responses that would contain their bytes.
 * Source: docs/reference/gateway.md#block-list.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { BlockList } from "../store/block-list.ts";
import type { IndexReader, ItemSpan } from "../store/index/index-types.ts";
import { type Place, rootPlace } from "../store/index/place.ts";

/** The queries on the block list that content needs. */
export type ContentBlockList = Pick<
  BlockList,
  "isBlockedId" | "isBlockedDigest" | "isBlockedWithin" | "hasBlockedDigests" | "has"
>;

/** Decides whether bytes may be served. */
export type BlockGuard = Readonly<{
  /** @throws Failure `blocked` when the id, its root transaction or the hash of its content is blocked. */
  checkId: (id: Id, rootId: Id, digest: Uint8Array | undefined) => void;
  /**
   * Rejects with Failure `blocked` when a span of a root's data overlaps blocked content.
   *
   * @param place - Place of the root or of an item in it; undefined if the index does not have it.
   */
  checkSpan: (rootId: Id, place: Place | undefined, span: ByteSpan) => Promise<void>;
  /** Whether content of unknown hash must be hashed before any of it is served. */
  mustHash: (size: number) => boolean;
  /** Whether any id or hash is blocked. While none is, no check is needed. */
  isActive: () => boolean;
}>;

/** Items read in one query; it takes about 2 ms. */
const itemsPerLook = 1_000;

/** Larger content of unknown hash is served unhashed: hashing would delay the response for seconds. */
const hashedBytesMax = 64 * 2 ** 20;

export function createBlockGuard(reader: Pick<IndexReader, "itemsWithin">, blockList: ContentBlockList): BlockGuard {
  const isBlocked = ({ id, digest }: Readonly<{ id: Id; digest?: Uint8Array | undefined }>) =>
    blockList.isBlockedId(id) || (digest !== undefined && blockList.isBlockedDigest(digest));

  /** Halves a span until one query reads all items of each half. */
  async function findBlocked(root: Place, { start, end }: ByteSpan): Promise<ItemSpan | undefined> {
    const items = reader.itemsWithin(root, start, end, itemsPerLook);
    const found = items.find(isBlocked);
    if (found !== undefined || items.length < itemsPerLook || end - start <= 1) return found;
    await new Promise<void>((resolve) => setImmediate(resolve));
    const middle = start + Math.floor((end - start) / 2);
    return (await findBlocked(root, { start, end: middle })) ?? (await findBlocked(root, { start: middle, end }));
  }

  const isActive = () => blockList.has("id") || blockList.has("hash");

  return {
    isActive: isActive,
    checkId(id, rootId, digest) {
      if (isBlocked({ id, digest })) throw new Failure("blocked", { id });
      if (rootId !== id && blockList.isBlockedId(rootId)) throw new Failure("blocked", { id, rootId });
    },
    async checkSpan(rootId, place, span) {
      if (span.start >= span.end || !isActive()) return;
      if (blockList.isBlockedWithin(rootId, span.start, span.end)) throw new Failure("blocked", { rootId, span });
      if (place === undefined) return;
      const found = await findBlocked(rootPlace(place), span);
      if (found !== undefined) throw new Failure("blocked", { id: found.id });
    },
    mustHash: (size) => size <= hashedBytesMax && blockList.hasBlockedDigests(),
  };
}
