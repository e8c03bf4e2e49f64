/**
 * Opens content at its place: checks what may be served, and reads the bytes.
 * @module
 */
import { type Id, ownId } from "../arweave/id.ts";
import type { GatewayContent, Gateways } from "../chain/gateways.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { Located } from "../store/index/index-types.ts";
import type { Place } from "../store/index/place.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { BlockGuard } from "./block-guard.ts";
import { isAbsence } from "./bodies.ts";
import type { CacheFetcher } from "./fetch-to-cache.ts";
import { headerTag } from "./header-tag.ts";
import type { HotContent, OpenContent } from "./opened-content.ts";
import { hashedLaterMin, type RootDigests } from "./root-digests.ts";
import { type ReadParts, readSpan, readWhole } from "./root-reads.ts";
import type { Found } from "./unindexed-lookup.ts";
import type { FoundItem } from "./verify-hint.ts";
import { type BeginWhole, beginItem, beginRoot, createLearning, type ItemWholeParts } from "./whole.ts";

/** What opening needs. */
export type OpenParts = ReadParts &
  Readonly<{
    guard: BlockGuard;
    rootDigests: Pick<RootDigests, "learn">;
    gateways: Gateways;
    /** SHA-256 of what gateways gave. */
    digests: Pick<Map<Id, Uint8Array>, "get"> & Readonly<{ set: (id: Id, digest: Uint8Array) => unknown }>;
  }> &
  ItemWholeParts;

/** `bytes` gives no more: a caller that wants more reads it as it comes. */
export const contentBufferBytesMax = 256 * 2 ** 20;

/** The hash of larger content is learnt only from a reader that takes all of it. */
const learntBytesMax = 64 * 2 ** 20;

/** A slice of a root's data, and what is known of it. */
type Slice = Omit<
  OpenContent,
  "check" | "cached" | "fetched" | "hot" | "read" | "inspect" | "bytes" | "file" | "root"
> &
  Readonly<{
    root: RootSpec;
    place: Place | undefined; // where the index has it, or its root
    parents: readonly Id[]; // nested bundles around it, where the index does not know them
    beginWhole: BeginWhole | undefined; // what to learn when all of it goes by
    learnsLater: boolean; // whether its hash is learnt from this disk instead, after all of it went by
  }>;

/** Opens content of the index; undefined when the index does not know which data contains the bytes. */
export function openLocated(parts: OpenParts, located: Located): OpenContent | undefined {
  const { id, rootId, kind, size, dataOffset, rootSize, weaveStart, dataRoot, pending } = located;
  const { itemOffset, headerSize, parentStart = 0 } = located;
  // An uploaded or announced item has no root yet.
  if (dataOffset + size > rootSize || (pending && kind === "item")) return undefined;
  const root: RootSpec = {
    id: rootId,
    dataRoot,
    size: rootSize,
    ...(weaveStart === undefined ? {} : { weaveStart }),
  };
  const isWhole = kind === "transaction";
  // Format 1 is proven by its signature, no data needs no proof.
  const isProvable = rootSize === 0 || dataRoot !== "" || located.rootFormat === 1;
  return openSlice(pending ? withAbsence(parts) : parts, {
    id,
    root,
    place: located.place,
    parents: [],
    beginWhole: isWhole ? beginRoot(parts.extents, root) : undefined,
    learnsLater: isWhole && rootSize > hashedLaterMin,
    dataOffset,
    size,
    contentType: headerTag(located.contentType),
    contentEncoding: headerTag(located.contentEncoding),
    digest: located.digest ?? (isWhole ? parts.extents.digest(root) : undefined),
    verified: located.verified && isProvable && !pending,
    stable: located.stable,
    trusted: true,
    ...(isWhole ? {} : { item: { itemOffset, headerSize, parentStart } }),
  });
}

/** No block says that the data of a pending transaction exists: what no source has is not found. */
function withAbsence(parts: OpenParts): OpenParts {
  const fetchAt: CacheFetcher["fetchAt"] = async (root, position, signal) => {
    try {
      return await parts.fetcher.fetchAt(root, position, signal);
    } catch (error) {
      throw isAbsence(error) ? new Failure("not_found", { id: root.id }, error) : error;
    }
  };
  return { ...parts, fetcher: { ...parts.fetcher, fetchAt } };
}

/** Opens what was found elsewhere. */
export function openFound(parts: OpenParts, id: Id, found: Found): OpenContent {
  if (found.kind === "gateway") return openAtGateway(parts, id, found.content);
  if (found.kind === "item") return openItem(parts, id, found.item);
  const { root, contentType, contentEncoding } = found;
  return openSlice(parts, {
    id,
    root,
    place: undefined,
    parents: [],
    beginWhole: beginRoot(parts.extents, root),
    learnsLater: root.size > hashedLaterMin,
    dataOffset: 0,
    size: root.size,
    contentType,
    contentEncoding,
    digest: parts.extents.digest(root),
    verified: false, // its bytes are proven, but the block it is in was not accepted here
    stable: false,
    trusted: true,
  });
}

/** Opens an item that was found in a transaction's data. */
function openItem(parts: OpenParts, id: Id, item: FoundItem): OpenContent {
  const { root, itemOffset, headerSize, itemSize, parentStart, digest } = item;
  return openSlice(parts, {
    id,
    root: root.spec,
    place: root.place,
    parents: item.parents,
    beginWhole: beginItem(parts, id, item), // says whether it is the item
    learnsLater: false,
    dataOffset: itemOffset + headerSize,
    size: itemSize - headerSize,
    contentType: item.contentType,
    contentEncoding: item.contentEncoding,
    digest,
    verified: root.isAccepted && digest !== undefined,
    stable: root.isStable,
    trusted: true,
    item: { itemOffset, headerSize, parentStart },
  });
}

function openSlice(given: OpenParts, slice: Slice): OpenContent {
  const { parts, fetched } = withFetchNote(given);
  const { extents, guard } = parts;
  const { root, place, parents, beginWhole, learnsLater, dataOffset, size, ...description } = slice;
  const isWholeRoot = size === root.size;
  const rootSpan = ({ start, end }: ByteSpan): ByteSpan => {
    assert(start >= 0 && start <= end && end <= size, "a span is within its content");
    return { start: start + dataOffset, end: end + dataOffset };
  };
  const all = (signal: AbortSignal) => readSpan(parts, root, rootSpan({ start: 0, end: size }), signal);
  const learning = createLearning(
    beginWhole,
    () => slice.digest ?? (isWholeRoot ? extents.digest(root) : undefined),
    all,
  );

  /** Rejects with Failure `blocked` unless the span may leave. */
  async function mayLeave(span: ByteSpan, signal: AbortSignal): Promise<void> {
    if (!guard.isActive()) return;
    guard.checkId(slice.id, root.id, learning.digest());
    for (const parent of parents) guard.checkId(parent, root.id, undefined);
    await guard.checkSpan(root.id, place, rootSpan(span));
    if (learning.digest() === undefined && guard.mustHash(size))
      guard.checkId(slice.id, root.id, await learning.readAll(signal));
    if (!isWholeRoot) guard.checkId(slice.id, root.id, await rootDigest(parts, root, signal));
  }

  async function* read(span: ByteSpan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await mayLeave(span, signal);
    let left = span.end - span.start;
    const isAll = left === size;
    const hash = isAll && !learnsLater ? await learning.begin(signal) : undefined;
    for await (const piece of readSpan(parts, root, rootSpan(span), signal)) {
      hash?.update(piece);
      left -= piece.length;
      // Content that fails its check is never completed: the last piece is not sent.
      if (left === 0) await hash?.finish();
      yield piece;
    }
    if (isAll && learnsLater && learning.digest() === undefined) parts.rootDigests.learn(root);
  }

  return {
    ...description,
    root,
    dataOffset,
    size,
    check: mayLeave,
    cached: (span) => extents.present(root, rootSpan(span)),
    fetched,
    hot: hotContent(parts, slice, rootSpan, learning.digest),
    read,
    inspect: (span, signal) => readSpan(parts, root, rootSpan(span), signal),
    async bytes(span, signal) {
      assert(span.end - span.start <= contentBufferBytesMax, "a buffer is bounded");
      await mayLeave(span, signal);
      const bytes = await readWhole(parts, root, rootSpan(span), signal);
      if (bytes.length === size && size <= learntBytesMax) await learning.take(bytes, signal);
      return bytes;
    },
    async file(span, signal) {
      await mayLeave(span, signal);
      const within = rootSpan(span);
      if (!extents.present(root, within)) return undefined;
      const isAll = span.end - span.start === size && size <= learntBytesMax;
      if (isAll && beginWhole !== undefined && learning.digest() === undefined) await learning.readAll(signal);
      const path = await extents.file(root, within);
      return path === undefined ? undefined : { path, start: within.start };
    },
  };
}

/** The hash of the root's data around an item, if it is known or all of that data is here. */
async function rootDigest(parts: OpenParts, root: RootSpec, signal: AbortSignal): Promise<Uint8Array | undefined> {
  const { extents, guard } = parts;
  const known = extents.digest(root);
  const whole = { start: 0, end: root.size };
  if (known !== undefined || !guard.mustHash(root.size) || !extents.present(root, whole)) return known;
  const digest = await digestOf(readSpan(parts, root, whole, signal));
  extents.setDigest(root, digest);
  return digest;
}

/** What can be sent at once: what the block list allows by a decision about all of the content. */
function hotContent(
  { extents, guard }: OpenParts,
  { id, root, place, parents, size }: Slice,
  rootSpan: (span: ByteSpan) => ByteSpan,
  digestOf: () => Uint8Array | undefined,
): HotContent {
  const span = rootSpan({ start: 0, end: size });
  const isClearBy = guard.clearance({ ids: [id, ...parents], rootId: root.id, place, span, rootSize: root.size });
  const isClear = (): boolean => {
    const digest = digestOf();
    return isClearBy(digest, size === root.size ? digest : extents.digest(root));
  };
  return {
    bytes: (part) => (isClear() ? extents.hot(root, rootSpan(part)) : undefined),
    file(part) {
      const within = rootSpan(part);
      const path = isClear() ? extents.hotFile(root, within) : undefined;
      return path === undefined ? undefined : { path, start: within.start };
    },
  };
}

/** Notes whether anything is fetched. */
function withFetchNote(parts: OpenParts): Readonly<{ parts: OpenParts; fetched: () => boolean }> {
  let hasFetched = false;
  const fetchAt: CacheFetcher["fetchAt"] = (...asked) => {
    hasFetched = true;
    return parts.fetcher.fetchAt(...asked);
  };
  return { parts: { ...parts, fetcher: { ...parts.fetcher, fetchAt } }, fetched: () => hasFetched };
}

/** Unproven content of a gateway: passed through, never stored, never verified. */
function openAtGateway(parts: OpenParts, id: Id, content: GatewayContent): OpenContent {
  const { gateways, guard, digests } = parts;
  const { size, contentType, contentEncoding } = content;

  async function learnDigest(signal: AbortSignal): Promise<Uint8Array> {
    const digest = await digestOf(gateways.read(id, content, { start: 0, end: size }, signal));
    digests.set(ownId(id), digest);
    return digest;
  }

  /** Rejects with Failure `blocked` unless the content may leave. */
  async function mayLeave(signal: AbortSignal): Promise<void> {
    if (!guard.isActive()) return;
    guard.checkId(id, id, undefined);
    if (size > 0 && guard.mustHash(size)) guard.checkId(id, id, digests.get(id) ?? (await learnDigest(signal)));
  }

  async function* read(span: ByteSpan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await mayLeave(signal);
    if (span.start < span.end) yield* gateways.read(id, content, span, signal);
  }

  return {
    id,
    root: undefined,
    dataOffset: 0,
    size,
    contentType,
    contentEncoding,
    digest: undefined,
    verified: false,
    stable: false,
    trusted: content.trusted,
    check: (_span, signal) => mayLeave(signal),
    cached: ({ start, end }) => start === end,
    fetched: () => size > 0,
    read,
    inspect: (span, signal) => gateways.read(id, content, span, signal),
    async bytes(span, signal) {
      assert(span.end - span.start <= contentBufferBytesMax, "a buffer is bounded");
      const bytes = new Uint8Array(span.end - span.start);
      let at = 0;
      for await (const piece of read(span, signal)) {
        bytes.set(piece, at);
        at += piece.length;
      }
      return bytes;
    },
    file: async () => undefined,
  };
}

async function digestOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const piece of pieces) hasher.update(piece);
  return new Uint8Array(hasher.digest());
}
