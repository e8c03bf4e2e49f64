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
  "isBlockedId" | "isBlockedDigest" | "isBlockedWithin" | "hasBlockedDigests" | "has" | "version"
>;

/** All of one content, as a decision about it needs it. */
export type CheckedContent = Readonly<{
  /** The content, and the nested bundles around it that the index does not have. */
  ids: readonly Id[];
  rootId: Id;
  /** As of `checkSpan`. */
  place: Place | undefined;
  /** Of the root's data. */
  span: ByteSpan;
  /** Bytes of the root's data. */
  rootSize: number;
}>;

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
  /**
   * Decides whether no byte of a content is blocked, without a wait. A decision is reused until the block list, the
   * index, or a known hash changes: an index row or a hash may show that a byte belongs to blocked content.
   *
   * @returns A function of the hashes, if known, of the content and of the root's data around it (of a root: the same
   * hash). It returns false also for content whose decision needs more: then `checkId` and `checkSpan` decide.
   */
  clearance: (
    content: CheckedContent,
  ) => (digest: Uint8Array | undefined, rootDigest: Uint8Array | undefined) => boolean;
}>;

/** A decision, and what it was made of. */
type Decision = Readonly<{
  list: number;
  index: number;
  digest: Uint8Array | undefined;
  rootDigest: Uint8Array | undefined;
  isClear: boolean;
}>;

/** Items read in one query; it takes about 2 ms. */
const itemsPerLook = 1_000;

/** Larger content of unknown hash is served unhashed: hashing would delay the response for seconds. */
const hashedBytesMax = 64 * 2 ** 20;

export function createBlockGuard(
  reader: Pick<IndexReader, "itemsWithin" | "version">,
  blockList: ContentBlockList,
): BlockGuard {
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

  const activity = { version: Number.NaN, isActive: false };
  const isActiveAt = (version: number): boolean => {
    if (version !== activity.version) {
      activity.isActive = blockList.has("id") || blockList.has("hash");
      activity.version = version;
    }
    return activity.isActive;
  };
  const isActive = () => isActiveAt(blockList.version());
  const mustHash = (size: number) => size <= hashedBytesMax && blockList.hasBlockedDigests();

  /** Whether no part of a content is blocked; false also when a hash or more than one query is needed to tell. */
  function isClear(content: CheckedContent, digest: Uint8Array | undefined, rootDigest: Uint8Array | undefined) {
    const { ids, rootId, rootSize } = content;
    const mayHaveBlockedHash =
      (digest === undefined && blockList.hasBlockedDigests()) || (rootDigest === undefined && mustHash(rootSize));
    if (mayHaveBlockedHash || isBlocked({ id: rootId, digest: rootDigest })) return false;
    return !ids.some((id) => isBlocked({ id, digest })) && isSpanClear(content);
  }

  function isSpanClear({ rootId, place, span }: CheckedContent): boolean {
    const { start, end } = span;
    if (start >= end) return true;
    if (blockList.isBlockedWithin(rootId, start, end)) return false;
    if (place === undefined) return true;
    const items = reader.itemsWithin(rootPlace(place), start, end, itemsPerLook);
    return items.length < itemsPerLook && !items.some(isBlocked);
  }

  return {
    isActive,
    clearance(content) {
      let decided: Decision | undefined;
      return (digest, rootDigest) => {
        const list = blockList.version();
        if (!isActiveAt(list)) return true;
        // Read before the decision: a change meanwhile makes it outdated.
        const index = reader.version();
        if (decided?.list === list && decided.index === index) {
          if (decided.digest === digest && decided.rootDigest === rootDigest) return decided.isClear;
        }
        decided = { list, index, digest, rootDigest, isClear: isClear(content, digest, rootDigest) };
        return decided.isClear;
      };
    },
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
    mustHash,
  };
}
