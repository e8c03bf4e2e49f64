/**
 * What may not be served: an id, content of a hash, and any answer that would carry a byte of either.
 * Source: docs/reference/gateway.md#block-list.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { ByteSpan } from "../lib/range.ts";
import { type Place, rootPlace } from "../store/index/place.ts";
import type { IndexReader, ItemSpan } from "../store/index/types.ts";
import type { Moderation } from "../store/moderation.ts";

/** What of the list of refusals is asked. */
export type Refusals = Pick<
  Moderation,
  "isBlockedId" | "isBlockedDigest" | "isBlockedWithin" | "hasBlockedDigests" | "has"
>;

/** Decides whether bytes may leave. */
export type Gate = Readonly<{
  /** @throws Failure `blocked` when the id, or the transaction that it lies in, or content of its hash is refused. */
  checkId: (id: Id, rootId: Id, digest: Uint8Array | undefined) => void;
  /**
   * Rejects with Failure `blocked` when refused content lies, wholly or in part, in a span of a root's data.
   *
   * @param place - The root's, or that of anything in it; undefined where the index does not know it.
   */
  checkSpan: (rootId: Id, place: Place | undefined, span: ByteSpan) => Promise<void>;
  /** Whether content whose hash is not known must be hashed before any of it leaves. */
  mustHash: (size: number) => boolean;
  /** Whether any id or hash is refused: while none is, nothing has to be asked. */
  refuses: () => boolean;
}>;

/** Items looked at in one query: a slice of about 2 ms. */
const itemsPerLook = 1_000;

/** Larger content of unknown hash is let through: hashing it would hold up its reader for seconds. */
const hashedBytesMax = 64 * 2 ** 20;

/** Makes the gate. */
export function createGate(reader: Pick<IndexReader, "itemsWithin">, refusals: Refusals): Gate {
  const isRefused = ({ id, digest }: Readonly<{ id: Id; digest?: Uint8Array | undefined }>) =>
    refusals.isBlockedId(id) || (digest !== undefined && refusals.isBlockedDigest(digest));

  /** Halves a span until the items of each half can be looked at in one query. */
  async function findRefused(root: Place, { start, end }: ByteSpan): Promise<ItemSpan | undefined> {
    const items = reader.itemsWithin(root, start, end, itemsPerLook);
    const found = items.find(isRefused);
    if (found !== undefined || items.length < itemsPerLook || end - start <= 1) return found;
    await new Promise<void>((resolve) => setImmediate(resolve));
    const middle = start + Math.floor((end - start) / 2);
    return (await findRefused(root, { start, end: middle })) ?? (await findRefused(root, { start: middle, end }));
  }

  const refuses = () => refusals.has("id") || refusals.has("hash");

  return {
    refuses,
    checkId(id, rootId, digest) {
      if (isRefused({ id, digest })) throw new Failure("blocked", { id });
      if (rootId !== id && refusals.isBlockedId(rootId)) throw new Failure("blocked", { id, rootId });
    },
    async checkSpan(rootId, place, span) {
      if (span.start >= span.end || !refuses()) return;
      if (refusals.isBlockedWithin(rootId, span.start, span.end)) throw new Failure("blocked", { rootId, span });
      if (place === undefined) return;
      const found = await findRefused(rootPlace(place), span);
      if (found !== undefined) throw new Failure("blocked", { id: found.id });
    },
    mustHash: (size) => size <= hashedBytesMax && refusals.hasBlockedDigests(),
  };
}
