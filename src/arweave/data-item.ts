/**
 * ANS-104 data items: the header read within bounds and before anything is allocated, and the signature checked.
 *
 * On the wire: type (2 bytes, little-endian), signature, owner, a flag and 32 bytes of target, a flag and 32 bytes
 * of anchor, the count of tags and the size of their section (8 bytes each, little-endian), the section, the
 * payload. An item's id is the hash of its signature.
 *
 * What a data item's signature signs, computed in one walk over the payload together with its SHA-256.
 *
 * The message is the deep hash of ["dataitem", "1", type, owner, target, anchor, tags, data]. What is the same for
 * every item of a type is hashed once.
 *
 * Making data items: the header written around a payload that is at hand or streams by, and signed.
 *
 * What is written here passes the strict rules of `data-item.ts`.
 * Source: ANS-104 §2; `avro.ts` for the tags, `signature.ts` for the types; ANS-104 §3.
 * @module
 */

import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { concatBytes, utf8Bytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import { beginDeepHash, createBlobHash, deepHashBlob, extendDeepHash } from "./deep-hash.ts";
import { type Address, addressOf, type Id, idBytes, idFromBytes, idOfSignature, readId } from "./id.ts";
import { signatureLayout, signatureSchemes } from "./signature.ts";
import { invalid, type SignatureScheme, type Signer, type Verdict } from "./signers/scheme.ts";
import { type ItemRules, readAvroTags, type Tag, tagLimits, tagsFault, writeAvroTags } from "./tags.ts";

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
  if (scheme === undefined) return invalidItem(`signature type ${type} is unknown`);

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
  if (tagCount > limits.tags) return invalidItem(`more than ${limits.tags} tags are declared`);
  if (tagsSize > limits.sectionSize) return invalidItem(`more than ${limits.sectionSize} tag bytes are declared`);
  if (tagsOffset + tagsSize > itemSize) return invalidItem("the tags are cut short");
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
 * @param bytes - The item from its first byte on; the header holds views of it.
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
  if (typeof tags === "string") return invalidItem(tags);

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
 * Reads and checks a whole item in memory.
 *
 * @param bytes - Exactly the item.
 * @returns The item with a valid signature, or why it is none. Never throws.
 */
export function checkItem(bytes: Uint8Array, rules: ItemRules): CheckedItem | InvalidItem {
  const read = readItemHeader(bytes, rules, bytes.length);
  if (read.kind === "need") return invalidItem("the item is cut short");
  if (read.kind === "invalid") return read;
  const { header } = read;
  const data = bytes.subarray(header.headerSize);
  const digests = hashItem(header, data);
  const verdict = verifyItem(header, digests.message);
  if (!verdict.valid) return invalidItem(verdict.reason);
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
  return flag === undefined ? need(offset + 1, itemSize) : invalidItem(`the ${part} flag is ${flag}, not 0 or 1`);
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
  return bytes > itemSize ? invalidItem("the item is cut short") : { kind: "need", bytes };
}

function invalidItem(reason: string): InvalidItem {
  return { kind: "invalid", reason };
}

/** What of an item is signed besides its payload; an absent target or anchor is empty. */
export type SignedFields = Readonly<{
  signatureType: number;
  owner: Uint8Array;
  targetBytes: Uint8Array;
  anchorBytes: Uint8Array;
  /** The tag section in its wire form. */
  rawTags: Uint8Array;
}>;

/** The two hashes of an item: the 48-byte message that is signed, the payload's 32-byte SHA-256. */
export type ItemDigests = Readonly<{ message: Uint8Array; digest: Uint8Array }>;

/** A payload on its way through both hashes. */
export type ItemHash = Readonly<{
  update(piece: Uint8Array): void;
  /** Ends the walk. The pieces must have come to exactly the size that was said, if one was. */
  finish(): ItemDigests;
}>;

const digestSize = 32;

/** Parts of the message. */
const itemPartsCount = 8;

/** The running hash of the list after its first three elements, by signature type. */
const heads = new Map<number, Uint8Array>(signatureSchemes.map(({ type }) => [type, headOf(type)]));

/**
 * Begins the walk over an item's payload.
 *
 * @param fields - Of a known signature type.
 * @param dataSize - The payload's size in bytes; absent where only its end will tell.
 */
export function createItemHash(fields: SignedFields, dataSize?: number): ItemHash {
  const message = createMessageHash(fields, dataSize);
  const content = createContentHash();
  return {
    update: (piece) => {
      message.update(piece);
      content.update(piece);
    },
    finish: () => ({ message: message.finish(), digest: content.finish() }),
  };
}

/** A payload on its way through one of the two hashes; they may be computed in two threads. */
export type PayloadHash = Readonly<{ update(piece: Uint8Array): void; finish(): Uint8Array }>;

/** Begins the walk of the message that is signed. Parameters as `createItemHash`. */
export function createMessageHash(fields: SignedFields, dataSize?: number): PayloadHash {
  const signed = createBlobHash(dataSize);
  return { update: signed.update, finish: () => messageOf(fields, signed.digest()) };
}

/** Begins the walk of the payload's SHA-256. */
export function createContentHash(): PayloadHash {
  const content = new Bun.SHA256();
  return {
    update: (piece) => {
      content.update(piece);
    },
    finish: () => {
      const digest = new Uint8Array(digestSize);
      content.digest(digest);
      return digest;
    },
  };
}

/** Hashes an item whose payload is at hand. */
export function hashItem(fields: SignedFields, data: Uint8Array): ItemDigests {
  return { message: messageOf(fields, deepHashBlob(data)), digest: sha256(data) };
}

function messageOf(fields: SignedFields, dataLeaf: Uint8Array): Uint8Array {
  const head = heads.get(fields.signatureType);
  assert(head !== undefined, "only items of a known signature type are hashed");
  let running = extendDeepHash(head, deepHashBlob(fields.owner));
  running = extendDeepHash(running, deepHashBlob(fields.targetBytes));
  running = extendDeepHash(running, deepHashBlob(fields.anchorBytes));
  running = extendDeepHash(running, deepHashBlob(fields.rawTags));
  return extendDeepHash(running, dataLeaf);
}

function headOf(type: number): Uint8Array {
  const first = ["dataitem", "1", String(type)].map((text) => deepHashBlob(utf8Bytes(text)));
  return first.reduce(extendDeepHash, beginDeepHash(itemPartsCount));
}

/** What an item says besides its payload. */
export type ItemFields = Readonly<{
  tags?: readonly Tag[];
  /** The recipient's address, 43 characters, or "" for none. */
  target?: string;
  /** 32 bytes of the maker's choice as base64url, 43 characters, or "" for none. */
  anchor?: string;
}>;

/** The header of a signed item, and the two names of its content. */
export type SignedHeader = Readonly<{ id: Id; header: Uint8Array; digest: Uint8Array }>;

/** An item with a streamed payload; the header precedes the payload but is known only after it. */
export type ItemSigning = Readonly<{ update(piece: Uint8Array): void; finish(): SignedHeader }>;

/**
 * Makes a signed data item.
 *
 * @param fields - Within the limits of ANS-104; text payloads are written as UTF-8.
 * @throws Failure `malformed_input` when tags, target or anchor break the format.
 */
export function createDataItem(
  fields: ItemFields & Readonly<{ data: Uint8Array | string }>,
  signer: Signer,
): Uint8Array {
  const data = typeof fields.data === "string" ? utf8Bytes(fields.data) : fields.data;
  const signing = createItemSigning(fields, data.length, signer);
  signing.update(data);
  return concatBytes([signing.finish().header, data]);
}

/**
 * Begins to sign an item whose payload is fed in pieces.
 *
 * @param dataSize - The payload's size in bytes; the pieces must come to exactly that.
 * @throws Failure `malformed_input` when tags, target or anchor break the format.
 */
export function createItemSigning(fields: ItemFields, dataSize: number, signer: Signer): ItemSigning {
  const signed = readFields(fields, signer);
  const hash = createItemHash(signed, dataSize);
  return {
    update: hash.update,
    finish: () => {
      const { message, digest } = hash.finish();
      const signature = signer.sign(message);
      assert(signature.length === signer.scheme.signatureSize, "a signature has its scheme's size");
      const header = writeHeader(signed, signature, fields.tags?.length ?? 0);
      return { id: idOfSignature(signature), header, digest };
    },
  };
}

/**
 * The size of the header that an item will have, before it is signed.
 *
 * @throws Failure `malformed_input` when tags, target or anchor break the format.
 */
export function signedHeaderSize(fields: ItemFields, signer: Pick<Signer, "scheme" | "owner">): number {
  const signed = readFields(fields, signer);
  return writeHeader(signed, new Uint8Array(signer.scheme.signatureSize), fields.tags?.length ?? 0).length;
}

function readFields(fields: ItemFields, signer: Pick<Signer, "scheme" | "owner">): SignedFields {
  const tags = fields.tags ?? [];
  const fault = tagsFault(tags);
  if (fault !== undefined) throw new Failure("malformed_input", { reason: fault });
  return {
    signatureType: signer.scheme.type,
    owner: signer.owner,
    targetBytes: referenceBytes(fields.target ?? "", "target"),
    anchorBytes: referenceBytes(fields.anchor ?? "", "anchor"),
    rawTags: writeAvroTags(tags),
  };
}

function referenceBytes(text: string, part: string): Uint8Array {
  if (text === "") return new Uint8Array(0);
  const id = readId(text);
  if (id === undefined) throw new Failure("malformed_input", { reason: `the ${part} is not 32 bytes` });
  return idBytes(id);
}

function writeHeader(signed: SignedFields, signature: Uint8Array, tagCount: number): Uint8Array {
  const type = new Uint8Array([signed.signatureType & 0xff, signed.signatureType >> 8]);
  const counts = new DataView(new ArrayBuffer(16));
  counts.setBigUint64(0, BigInt(tagCount), true);
  counts.setBigUint64(8, BigInt(signed.rawTags.length), true);
  return concatBytes([
    type,
    signature,
    signed.owner,
    ...flagged(signed.targetBytes),
    ...flagged(signed.anchorBytes),
    new Uint8Array(counts.buffer),
    signed.rawTags,
  ]);
}

function flagged(bytes: Uint8Array): readonly Uint8Array[] {
  return [new Uint8Array([bytes.length === 0 ? 0 : 1]), bytes];
}
