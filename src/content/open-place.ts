/**
 * Opens content at its place: in the data of a root transaction, or at a trusted gateway. Every read is checked against
 * the block list.
 * @module
 */
import { type Id, ownId } from "../arweave/id.ts";
import type { GatewayContent, Gateways } from "../chain/gateways.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { Located } from "../store/index/index-types.ts";
import type { Place } from "../store/index/place.ts";
import type { RootSpec } from "../store/root-spec.ts";
import type { BlockGuard } from "./block-guard.ts";
import { isAbsence } from "./bodies.ts";
import {
  type BeginHash,
  beginItemHash,
  beginRootHash,
  createDigestRecorder,
  type ItemHashParts,
} from "./digest-recorder.ts";
import type { CacheFetcher } from "./fetch-to-cache.ts";
import { headerTag } from "./header-tag.ts";
import type { ContentDescription, HotContent, OpenContent } from "./opened-content.ts";
import { hashedLaterMin, type RootDigests } from "./root-digests.ts";
import { type ReadParts, readSpan, readWhole } from "./root-reads.ts";
import type { Found } from "./unindexed-lookup.ts";
import type { FoundItem } from "./verify-hint.ts";

export type OpenParts = ReadParts &
  Readonly<{
    guard: BlockGuard;
    rootDigests: Pick<RootDigests, "learn">;
    gateways: Gateways;
    /** SHA-256 of content from gateways. */
    digests: Pick<Map<Id, Uint8Array>, "get"> & Readonly<{ set: (id: Id, digest: Uint8Array) => unknown }>;
  }> &
  ItemHashParts;

/** Limit of `OpenContent.bytes`; a larger span is read as a stream. */
export const contentBufferBytesMax = 256 * 2 ** 20;

/** `bytes` and `file` do not hash larger content; a complete `read` does. */
const hashedBytesMax = 64 * 2 ** 20;

/** Content that is a slice of a root's data. */
type RootSlice = ContentDescription &
  Readonly<{
    root: RootSpec;
    place: Place | undefined; // in the index, of the content or of its root
    parents: readonly Id[]; // nested bundles around it that the index does not have
    beginHash: BeginHash | undefined; // hashes and checks a complete read
    hashesLater: boolean; // a complete read is hashed afterwards, from this disk
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
  const slice: RootSlice = {
    id,
    root,
    place: located.place,
    parents: [],
    beginHash: isWhole ? beginRootHash(parts.extents, root) : undefined,
    hashesLater: isWhole && rootSize > hashedLaterMin,
    dataOffset,
    size,
    contentType: headerTag(located.contentType),
    contentEncoding: headerTag(located.contentEncoding),
    digest: located.digest ?? (isWhole ? parts.extents.digest(root) : undefined),
    verified: located.verified && isProvable && !pending,
    stable: located.stable,
    trusted: true,
    ...(isWhole ? {} : { item: { itemOffset, headerSize, parentStart } }),
  };
  return openSlice(parts, slice, pending ? absenceIsNotFound(parts.fetcher) : parts.fetcher);
}

/** Fetches data of a pending transaction. No block says that the data exists: if no source has it, it is not found. */
function absenceIsNotFound(fetcher: CacheFetcher): CacheFetcher {
  const fetchAt: CacheFetcher["fetchAt"] = async (root, position, signal) => {
    try {
      return await fetcher.fetchAt(root, position, signal);
    } catch (error) {
      throw isAbsence(error) ? new Failure("not_found", { id: root.id }, error) : error;
    }
  };
  return { ...fetcher, fetchAt };
}

/** Opens content that was found outside of the index. */
export function openFound(parts: OpenParts, id: Id, found: Found): OpenContent {
  if (found.kind === "gateway") return openAtGateway(parts, id, found.content);
  if (found.kind === "item") return openItem(parts, id, found.item);
  const { root, contentType, contentEncoding } = found;
  return openSlice(parts, {
    id,
    root,
    place: undefined,
    parents: [],
    beginHash: beginRootHash(parts.extents, root),
    hashesLater: root.size > hashedLaterMin,
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
    beginHash: beginItemHash(parts, id, item), // checks the signature
    hashesLater: false,
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

function openSlice(parts: OpenParts, slice: RootSlice, source = parts.fetcher): OpenContent {
  const { extents, guard } = parts;
  const { readParts, hasFetched } = withFetchRecord(extents, source);
  const { root, place, parents, beginHash, hashesLater, ...description } = slice;
  const { id, dataOffset, size } = description;
  const isWholeRoot = size === root.size;
  const rootSpan = ({ start, end }: ByteSpan): ByteSpan => {
    assert(start >= 0 && start <= end && end <= size, "a span is within its content");
    return { start: start + dataOffset, end: end + dataOffset };
  };
  const inspect = (span: ByteSpan, signal: AbortSignal) => readSpan(readParts, root, rootSpan(span), signal);
  const recorder = createDigestRecorder(
    beginHash,
    () => slice.digest ?? (isWholeRoot ? extents.digest(root) : undefined),
    (signal) => inspect({ start: 0, end: size }, signal),
  );

  /** Rejects with Failure `blocked` unless the span may be served. */
  async function checkBlockList(span: ByteSpan, signal: AbortSignal): Promise<void> {
    if (!guard.isActive()) return;
    guard.checkId(id, root.id, recorder.digest());
    for (const parent of parents) guard.checkId(parent, root.id, undefined);
    await guard.checkSpan(root.id, place, rootSpan(span));
    if (recorder.digest() === undefined && guard.mustHash(size))
      guard.checkId(id, root.id, await recorder.readAll(signal));
    if (!isWholeRoot) guard.checkId(id, root.id, await rootDigest(guard, readParts, root, signal));
  }

  async function* read(span: ByteSpan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await checkBlockList(span, signal);
    let left = span.end - span.start;
    const isAll = left === size;
    const hash = isAll && !hashesLater ? await recorder.begin(signal) : undefined;
    for await (const piece of inspect(span, signal)) {
      hash?.update(piece);
      left -= piece.length;
      // Content that fails its check is never completed: the last piece is not sent.
      if (left === 0) await hash?.finish();
      yield piece;
    }
    if (isAll && hashesLater && recorder.digest() === undefined) parts.rootDigests.learn(root);
  }

  return {
    ...description,
    root,
    check: checkBlockList,
    cached: (span) => extents.present(root, rootSpan(span)),
    fetched: hasFetched,
    hot: hotContent(parts, slice, rootSpan, recorder.digest),
    read,
    inspect,
    async bytes(span, signal) {
      assert(span.end - span.start <= contentBufferBytesMax, "a buffer is bounded");
      await checkBlockList(span, signal);
      const bytes = await readWhole(readParts, root, rootSpan(span), signal);
      if (bytes.length === size && size <= hashedBytesMax) await recorder.hashBytes(bytes, signal);
      return bytes;
    },
    async file(span, signal) {
      await checkBlockList(span, signal);
      const within = rootSpan(span);
      if (!extents.present(root, within)) return undefined;
      const isAll = span.end - span.start === size && size <= hashedBytesMax;
      if (isAll && beginHash !== undefined && recorder.digest() === undefined) await recorder.readAll(signal);
      const path = await extents.file(root, within);
      return path === undefined ? undefined : { path, start: within.start };
    },
  };
}

/** The hash of the root's data around an item, if it is known or all of that data is on this disk. */
async function rootDigest(
  guard: BlockGuard,
  parts: ReadParts,
  root: RootSpec,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { extents } = parts;
  const known = extents.digest(root);
  const whole = { start: 0, end: root.size };
  if (known !== undefined || !guard.mustHash(root.size) || !extents.present(root, whole)) return known;
  const digest = await digestOf(readSpan(parts, root, whole, signal));
  extents.setDigest(root, digest);
  return digest;
}

/** The spans that can be sent without a wait, if the block list allows all of the content. */
function hotContent(
  { extents, guard }: OpenParts,
  { id, root, place, parents, size }: RootSlice,
  rootSpan: (span: ByteSpan) => ByteSpan,
  digestOf: () => Uint8Array | undefined,
): HotContent {
  const span = rootSpan({ start: 0, end: size });
  const isClearBy = guard.clearance({ ids: [id, ...parents], rootId: root.id, place, span, rootSize: root.size });
  const isClear = (): boolean => {
    if (!guard.isActive()) return true; // before the hashes are looked up
    const digest = digestOf();
    return isClearBy(digest, size === root.size ? digest : extents.digest(root));
  };
  return {
    isClear,
    bytes: (part) => (isClear() ? extents.hot(root, rootSpan(part)) : undefined),
    file(part) {
      const within = rootSpan(part);
      const path = isClear() ? extents.hotFile(root, within) : undefined;
      return path === undefined ? undefined : { path, start: within.start };
    },
  };
}

/** Records whether anything is fetched. */
function withFetchRecord(extents: Extents, source: CacheFetcher) {
  let hasFetched = false;
  const fetchAt: CacheFetcher["fetchAt"] = (root, position, signal) => {
    hasFetched = true;
    return source.fetchAt(root, position, signal);
  };
  const readParts: ReadParts = { extents, fetcher: { ...source, fetchAt } };
  return { readParts, hasFetched: () => hasFetched };
}

/** Unproven content of a gateway: passed through, never stored, never verified. */
function openAtGateway(parts: OpenParts, id: Id, content: GatewayContent): OpenContent {
  const { gateways, guard, digests } = parts;
  const { size, contentType, contentEncoding } = content;

  async function hashContent(signal: AbortSignal): Promise<Uint8Array> {
    const digest = await digestOf(gateways.read(id, content, { start: 0, end: size }, signal));
    digests.set(ownId(id), digest);
    return digest;
  }

  /** Rejects with Failure `blocked` unless the content may be served. */
  async function checkBlockList(signal: AbortSignal): Promise<void> {
    if (!guard.isActive()) return;
    guard.checkId(id, id, undefined);
    if (size > 0 && guard.mustHash(size)) guard.checkId(id, id, digests.get(id) ?? (await hashContent(signal)));
  }

  async function* read(span: ByteSpan, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await checkBlockList(signal);
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
    check: (_span, signal) => checkBlockList(signal),
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
