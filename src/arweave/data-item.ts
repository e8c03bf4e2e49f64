/**
 * ANS-104 data items: the header read within bounds and before anything is allocated, and the signature checked.
 *
 * On the wire: type (2 bytes, little-endian), signature, owner, a flag and 32 bytes of target, a flag and 32
 * bytes of anchor, the count of tags and the size of their section (8 bytes each, little-endian), the section,
 * the payload. An item's id is the hash of its signature.
 * Source: ANS-104 §2; `avro.ts` for the tags, `signature.ts` for the types.
 * @module
 */
import { sha256 } from "../lib/hash.ts";
import { type ItemRules, readAvroTags, tagLimits } from "./avro.ts";
import { type Address, addressOf, type Id, idFromBytes } from "./id.ts";
import { hashItem, type ItemDigests, type SignedFields } from "./item-hash.ts";
import { signatureLayout } from "./signature.ts";
import type { SignatureScheme } from "./signers/scheme.ts";
import type { Tag } from "./tags.ts";
import { invalid, type Verdict } from "./verdict.ts";

/** Where the parts of a header stand: byte offsets from the item's first byte, sizes in bytes. */
export type ItemFrame = Readonly<{
  kind: "frame";
  scheme: SignatureScheme;
  ownerOffset: number;
  /** −1 when there is none. */
  targetOffset: number;
  /** −1 when there is none. */
  anchorOffset: number;
  tagCount: number;
  tagsOffset: number;
  tagsSize: number;
  /** Where the payload begins. */
  headerSize: number;
}>;

/** An item's header, read but not yet verified (`verifyItem`). Byte fields are views of what was read. */
export type ItemHeader = SignedFields &
  Readonly<{
    id: Id;
    signature: Uint8Array;
    ownerAddress: Address;
    /** The recipient: an address, or "". */
    target: string;
    /** The 32 bytes of the anchor as base64url, or "". */
    anchor: string;
    tags: readonly Tag[];
    /** Where the payload begins, in bytes from the item's first byte. */
    headerSize: number;
    ownerOffset: number;
    signatureOffset: number;
  }>;

/** Reading can go on when `bytes` bytes, counted from the item's first, are there. */
export type NeedBytes = Readonly<{ kind: "need"; bytes: number }>;

/** What was read is no data item; the reason is one lower-case sentence for people. */
export type InvalidItem = Readonly<{ kind: "invalid"; reason: string }>;

/** A whole item with its payload, whose signature has been checked. */
export type CheckedItem = Readonly<{ kind: "item"; header: ItemHeader; data: Uint8Array }> & ItemDigests;

export const signatureOffset = 2;
const referenceSize = 32;
const countsSize = 16;
const nothing = new Uint8Array(0);

/** The smallest item that can exist: type 2 or 4, no target, no anchor, no tags, no payload. */
export const itemSizeMin = signatureOffset + 64 + 32 + 2 + countsSize;

/**
 * Finds the parts of an item's header and decodes none of them: no more work than the bounds need.
 *
 * @param bytes - The item from its first byte on; as many bytes as are at hand.
 * @param itemSize - The item's whole size where it is known: a header that would exceed it is invalid.
 */
export function readItemFrame(
  bytes: Uint8Array,
  rules: ItemRules,
  itemSize: number = Number.MAX_SAFE_INTEGER,
): ItemFrame | NeedBytes | InvalidItem {
  if (bytes.length < signatureOffset) return need(signatureOffset, itemSize);
  const type = (bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8);
  const scheme = signatureLayout(type);
  if (scheme === undefined) return refuse(`signature type ${type} is unknown`);

  const ownerOffset = signatureOffset + scheme.signatureSize;
  const targetFlag = ownerOffset + scheme.ownerSize;
  const target = readFlag(bytes, targetFlag, rules);
  if (target === undefined) return needOrFlag(bytes, targetFlag, itemSize, "target");
  const anchorFlag = targetFlag + 1 + (target ? referenceSize : 0);
  const anchor = readFlag(bytes, anchorFlag, rules);
  if (anchor === undefined) return needOrFlag(bytes, anchorFlag, itemSize, "anchor");

  const countsOffset = anchorFlag + 1 + (anchor ? referenceSize : 0);
  const tagsOffset = countsOffset + countsSize;
  if (bytes.length < tagsOffset) return need(tagsOffset, itemSize);
  const tagCount = readCount(bytes, countsOffset);
  const tagsSize = readCount(bytes, countsOffset + 8);
  const limits = tagLimits[rules];
  if (tagCount > limits.tags) return refuse(`more than ${limits.tags} tags are declared`);
  if (tagsSize > limits.sectionSize) return refuse(`more than ${limits.sectionSize} tag bytes are declared`);
  if (tagsOffset + tagsSize > itemSize) return refuse("the tags are cut short");
  return {
    kind: "frame",
    scheme,
    ownerOffset,
    targetOffset: target ? targetFlag + 1 : -1,
    anchorOffset: anchor ? anchorFlag + 1 : -1,
    tagCount,
    tagsOffset,
    tagsSize,
    headerSize: tagsOffset + tagsSize,
  };
}

/**
 * Reads an item's header.
 *
 * @param bytes - The item from its first byte on; views of it are kept in the header.
 * @param itemSize - The item's whole size where it is known: a header that would exceed it is invalid.
 * @returns The header; or how many bytes are needed to go on; or why this is no item. Never throws.
 */
export function readItemHeader(
  bytes: Uint8Array,
  rules: ItemRules,
  itemSize: number = Number.MAX_SAFE_INTEGER,
): Readonly<{ kind: "header"; header: ItemHeader }> | NeedBytes | InvalidItem {
  const frame = readItemFrame(bytes, rules, itemSize);
  if (frame.kind !== "frame") return frame;
  if (bytes.length < frame.headerSize) return need(frame.headerSize, itemSize);

  const rawTags = bytes.subarray(frame.tagsOffset, frame.headerSize);
  const tags = readAvroTags(rawTags, frame.tagCount, rules);
  if (typeof tags === "string") return refuse(tags);

  const owner = bytes.subarray(frame.ownerOffset, frame.ownerOffset + frame.scheme.ownerSize);
  const targetBytes = readReference(bytes, frame.targetOffset);
  const anchorBytes = readReference(bytes, frame.anchorOffset);
  const header: ItemHeader = {
    id: idFromBytes(itemIdBytes(bytes, frame)),
    signatureType: frame.scheme.type,
    signature: bytes.subarray(signatureOffset, frame.ownerOffset),
    owner,
    ownerAddress: addressOf(owner),
    target: targetBytes.length === 0 ? "" : idFromBytes(targetBytes),
    anchor: anchorBytes.length === 0 ? "" : idFromBytes(anchorBytes),
    targetBytes,
    anchorBytes,
    tags,
    rawTags,
    headerSize: frame.headerSize,
    ownerOffset: frame.ownerOffset,
    signatureOffset,
  };
  return { kind: "header", header };
}

/** The 32 bytes of the id of an item whose frame has been read. */
export function itemIdBytes(bytes: Uint8Array, frame: ItemFrame): Uint8Array {
  return sha256(bytes.subarray(signatureOffset, frame.ownerOffset));
}

/**
 * Checks an item's signature.
 *
 * @param message - The 48-byte deep hash of `createItemHash` or `hashItem`, over the whole payload.
 */
export function verifyItem(
  header: Pick<ItemHeader, "signatureType" | "owner" | "signature">,
  message: Uint8Array,
): Verdict {
  const scheme = signatureLayout(header.signatureType);
  if (scheme === undefined) return invalid(`signature type ${header.signatureType} is unknown`);
  return scheme.verify(message, header.owner, header.signature);
}

/**
 * Reads and checks an item that lies in memory as a whole.
 *
 * @param bytes - Exactly the item.
 * @returns The item with a valid signature, or why it is none. Never throws.
 */
export function checkItem(bytes: Uint8Array, rules: ItemRules): CheckedItem | InvalidItem {
  const read = readItemHeader(bytes, rules, bytes.length);
  if (read.kind === "need") return refuse("the item is cut short");
  if (read.kind === "invalid") return read;
  const { header } = read;
  const data = bytes.subarray(header.headerSize);
  const digests = hashItem(header, data);
  const verdict = verifyItem(header, digests.message);
  if (!verdict.valid) return refuse(verdict.reason);
  return { kind: "item", header, data, ...digests };
}

/** True and false as the flag says; `undefined` when it is not there or says neither. */
function readFlag(bytes: Uint8Array, offset: number, rules: ItemRules): boolean | undefined {
  const flag = bytes[offset];
  if (flag === 1) return true;
  if (flag === 0) return false;
  // Published readers take every other value for "absent"; items that are on the chain keep their ids.
  return flag !== undefined && rules === "lenient" ? false : undefined;
}

function needOrFlag(bytes: Uint8Array, offset: number, itemSize: number, part: string) {
  const flag = bytes[offset];
  return flag === undefined ? need(offset + 1, itemSize) : refuse(`the ${part} flag is ${flag}, not 0 or 1`);
}

function readReference(bytes: Uint8Array, offset: number): Uint8Array {
  return offset < 0 ? nothing : bytes.subarray(offset, offset + referenceSize);
}

/** Eight bytes, little-endian; what exceeds 2^53 loses digits but stays above every limit. */
function readCount(bytes: Uint8Array, offset: number): number {
  let count = 0;
  for (let index = 7; index >= 0; index -= 1) count = count * 256 + (bytes[offset + index] ?? 0);
  return count;
}

function need(bytes: number, itemSize: number): NeedBytes | InvalidItem {
  return bytes > itemSize ? refuse("the item is cut short") : { kind: "need", bytes };
}

function refuse(reason: string): InvalidItem {
  return { kind: "invalid", reason };
}
