/**
 * The signed fields of content: of its transaction, or of its data item's header.
 * @module
 */
import { readItemHeader } from "../arweave/data-item.ts";
import type { Address, Id } from "../arweave/id.ts";
import type { Tag } from "../arweave/tags.ts";
import { readTransactionHeader } from "../arweave/transaction.ts";
import type { Content } from "../content/content.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";
import type { IndexReader } from "../store/index/index-types.ts";

/** The fields; "" for absent ones. */
export type SignedContent = Readonly<{
  ownerAddress: Address;
  /** The public key, base64url. */
  owner: string;
  /** base64url. */
  signature: string;
  /** Number in ANS-104; undefined for types without one. */
  signatureType: number | undefined;
  target: string;
  anchor: string;
  tags: readonly Tag[];
}>;

export type SignedContentParts = Readonly<{
  reader: Pick<IndexReader, "transactionText">;
  content: Pick<Content, "open">;
}>;

/** Finds the fields of open content; undefined when they are not available in time. */
export type FindSignedContent = (content: OpenContent, signal: AbortSignal) => Promise<SignedContent | undefined>;

/** Longest wait of a content response for these fields. Milliseconds. */
const headerMsMax = 2_000;

/** Faults here never prevent the content from being served. */
export function createSignedContent({ reader, content }: SignedContentParts): FindSignedContent {
  const headerBytes = async (opened: OpenContent, signal: AbortSignal): Promise<Uint8Array | undefined> => {
    if (opened.header !== undefined) return await opened.header();
    const place = headerPlace(opened);
    if (place === undefined) return undefined;
    const root = await content.open(place.rootId, signal);
    return await root.bytes({ start: place.start, end: place.start + place.size }, signal);
  };

  return async (opened, signal) => {
    try {
      // An item has no text: its row is not looked up again.
      const isItem = opened.item !== undefined || opened.header !== undefined;
      const text = isItem ? undefined : reader.transactionText(opened.id)?.text;
      if (text !== undefined) return ofTransaction(text);
      const bytes = await withDeadline(signal, headerMsMax, (own) => headerBytes(opened, own));
      return bytes === undefined ? undefined : ofItem(opened.id, bytes);
    } catch (error) {
      // The content is still available: its response is sent without these headers.
      if (error instanceof Failure || isTimeout(error)) return undefined;
      throw error;
    }
  };
}

type HeaderPlace = Readonly<{ rootId: Id; start: number; size: number }>;

function headerPlace({ root, item }: OpenContent): HeaderPlace | undefined {
  if (root === undefined || item === undefined) return undefined;
  return { rootId: root.id, start: item.itemOffset, size: item.headerSize };
}

function ofItem(id: Id, bytes: Uint8Array): SignedContent | undefined {
  const read = readItemHeader(bytes, "lenient");
  if (read.kind !== "header" || read.header.id !== id) return undefined;
  const { ownerAddress, owner, signature, signatureType, target, anchor, tags } = read.header;
  const texts = { owner: encodeBase64url(owner), signature: encodeBase64url(signature) };
  return { ownerAddress, ...texts, signatureType, target, anchor, tags };
}

function ofTransaction(text: string): SignedContent {
  const { ownerAddress, owner, signature, signatureType, target, lastTx, tags } = readTransactionHeader(text);
  const type = signatureType === "rsa" ? 1 : undefined;
  return { ownerAddress, owner, signature, signatureType: type, target, anchor: lastTx, tags };
}
