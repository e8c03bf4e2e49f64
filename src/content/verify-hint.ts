/**
 * Verifies a hint of a data item's position, for items that the index does not have: walks to the bytes that the hint
 * names, and checks them against the item's id. A found item is served as any item of the index: as a slice of its
 * root's data.
 *
 * A small item is found only when its signature is valid over the whole payload. Of a larger item only the header is
 * checked, so that a range of it needs only its chunks. With a client's hint the payload is checked too, since anyone
 * can put another's signature before other bytes.
 * Source: docs/reference/gateway.md#items-on-demand; docs/reference/gateway.md#verification.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { CheckedItemPayload, CheckItemJob } from "../../workers/verify.ts";
import type { Id } from "../arweave/id.ts";
import type { Hint } from "../chain/hint.ts";
import type { NodeResponse } from "../chain/node.ts";
import { Failure } from "../failures.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import { fault, faultFrom } from "../lib/http-client.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { type Walked, type WalkedItem, walkToItem } from "./bundle-walk.ts";
import { likelyChunk } from "./fetch-to-cache.ts";
import { headerTag } from "./header-tag.ts";
import { type ReadParts, readWhole } from "./root-reads.ts";
import type { RootTransaction, RootTransactions } from "./root-transactions.ts";

/** An item that was found in the data of a transaction. Bytes of the root's data, unless said otherwise. */
export type FoundItem = Readonly<{
  root: RootTransaction;
  /** Where the header begins. */
  itemOffset: number;
  /** Bytes of the header, and of header and payload. */
  headerSize: number;
  itemSize: number;
  /** Where the payload of the bundle around it begins. */
  parentStart: number;
  /** Nested bundles around it, the outermost first. */
  parents: readonly Id[];
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256 of the payload, once the signature was checked over all of it. */
  digest: Uint8Array | undefined;
}>;

/** Source of a hint: one that the operator chose, or anyone. */
export type HintGiver = "chosen" | "anyone";

/** Checks the signature of a complete item, in a thread. */
export type CheckItem = (job: CheckItemJob, signal: AbortSignal) => Promise<CheckedItemPayload>;

export type HintVerifier = Readonly<{
  /**
   * Finds the item at the position that a hint names.
   *
   * @returns The item; fault `wrong` when the hint is wrong, another fault when it could not be verified; `absent`
   *   when the named root is not on the chain, as far as nodes know.
   */
  verify: (id: Id, hint: Hint, giver: HintGiver, signal: AbortSignal) => Promise<NodeResponse<FoundItem>>;
  /** Records that the bytes at a place are not the item: a later hint to this place is wrong. */
  markWrong: (id: Id, item: FoundItem) => void;
}>;

export type HintVerifierParts = ReadParts & Readonly<{ roots: RootTransactions; checkItem: CheckItem }>;

/** Items up to this size are checked whole when they are found: five chunks. Bytes of header and payload. */
const checkedBytesMax = 2 ** 20;

/** The same for hints of anyone; the search for larger items ignores such hints. */
const checkedForAnyoneBytesMax = 16 * 2 ** 20;

/** Walks at once, and those that wait: a walk reads up to 64 MiB. */
const walksMax = 16;
const walksWaitingMax = 256;

/** Places that do not hold the item that a hint named. */
const wrongPlacesMax = 10_000;

export function createHintVerifier(parts: HintVerifierParts): HintVerifier {
  const { roots, checkItem } = parts;
  const semaphore = createSemaphore(walksMax, walksWaitingMax);
  const wrongPlaces = new LRUCache<string, true>(entryLimit(wrongPlacesMax));

  async function verifyInOrder(
    id: Id,
    hint: Hint,
    giver: HintGiver,
    signal: AbortSignal,
  ): Promise<NodeResponse<FoundItem>> {
    const root = await roots.find(hint.rootId, signal);
    if (root.kind === "no bundle") return fault("wrong", `${hint.rootId} is not a bundle`);
    // A wrong response of a node does not make the hint wrong.
    if (root.kind === "fault" && root.reason === "wrong") return fault("status", root.detail);
    if (root.kind !== "ok") return root;
    const walked = await walk(root.value, id, hint, signal);
    if (walked.kind === "not there") return fault("wrong", walked.reason);
    if (walked.kind === "too far") return fault("too_large", walked.reason);
    return await checked(id, root.value, walked.item, giver, signal);
  }

  function walk({ spec }: RootTransaction, id: Id, hint: Hint, signal: AbortSignal): Promise<Walked> {
    const data = {
      size: spec.size,
      read: (span: { start: number; end: number }) => readWhole(parts, spec, span, signal),
      pieceEnd: (at: number) => likelyChunk(spec.size, at).end,
    };
    return walkToItem(data, id, hint);
  }

  async function checked(
    id: Id,
    root: RootTransaction,
    walked: WalkedItem,
    giver: HintGiver,
    signal: AbortSignal,
  ): Promise<NodeResponse<FoundItem>> {
    const item = foundItem(root, walked);
    if (wrongPlaces.has(placeKey(id, item))) return fault("wrong", `${id} is not where it is said to be`);
    const { itemOffset, itemSize } = item;
    const sizeMax = giver === "anyone" ? checkedForAnyoneBytesMax : checkedBytesMax;
    if (itemSize > sizeMax) return giver === "anyone" ? { kind: "absent" } : { kind: "ok", value: item };
    const span = { start: itemOffset, end: itemOffset + itemSize };
    const bytes = await readWhole(parts, root.spec, span, signal);
    const verdict = await checkItem({ id, bytes }, signal);
    if (verdict.kind === "valid") return { kind: "ok", value: { ...item, digest: verdict.digest } };
    wrongPlaces.set(placeKey(id, item), true);
    return fault("wrong", `${id}: ${verdict.reason}`);
  }

  return {
    async verify(id, hint, giver, signal) {
      if (hint.rootId === id) return { kind: "absent" }; // a transaction, which was requested from nodes
      const permit = semaphore.take(signal);
      if (permit === undefined) return fault("busy", `${walksWaitingMax} walks wait already`);
      const release = await permit;
      try {
        return await verifyInOrder(id, hint, giver, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof Failure) return faultFrom(error);
        throw error;
      } finally {
        release();
      }
    },
    markWrong: (id, item) => wrongPlaces.set(placeKey(id, item), true),
  };
}

/** The part of an item that stays in memory: the header itself may be a mebibyte of tags. */
function foundItem(root: RootTransaction, { header, ...walked }: WalkedItem): FoundItem {
  const tagged = (name: string) => headerTag(header.tags.find((tag) => tag.name.toLowerCase() === name)?.value);
  return {
    root,
    itemOffset: walked.itemOffset,
    headerSize: header.headerSize,
    itemSize: walked.itemSize,
    parentStart: walked.parentStart,
    parents: walked.parents,
    contentType: tagged("content-type"),
    contentEncoding: tagged("content-encoding"),
    digest: undefined,
  };
}

function placeKey(id: Id, { root, itemOffset, itemSize }: FoundItem): string {
  return `${id} ${root.spec.id} ${itemOffset} ${itemSize}`;
}
