/**
 * ANS-104 data items: parses and verifies them, and creates signed ones. Sizes are checked before allocation.
 *
 * Format: type (2 bytes, little-endian), signature, owner, a flag and 32 bytes of target, a flag and 32 bytes of
 * anchor, the count of tags and the size of their section (8 bytes each, little-endian), the section, the payload. An
 * item's id is the hash of its signature.
 *
 * The signed message is the deep hash of ["dataitem", "1", type, owner, target, anchor, tags, data]. One pass over
 * the payload computes it together with the payload's SHA-256. The first three hashes are cached for each type.
 *
 * Created items pass the strict rules.
 * Source: ANS-104 §2 and §3.
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

/** The layout of a header: byte offsets from the item's first byte, sizes in bytes. */
export type ItemFrame = Readonly<{
  kind: "frame";
  scheme: SignatureScheme;
  ownerOffset: number;
  /** −1 without a target. */
  targetOffset: number;
  /** −1 without an anchor. */
  anchorOffset: number;
  tagCount: number;
  tagsOffset: number;
  tagsSize: number;
  /** Where the payload begins. */
  headerSize: number;
}>;

/** An item's header, parsed but not verified (`verifyItem`). Byte fields are views of the parsed bytes. */
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

/** Parsing needs `bytes` bytes, counted from the item's first. */
export type NeedBytes = Readonly<{ kind: "need"; bytes: number }>;

/** The bytes are not a valid data item; the reason is one lower-case sentence. */
export type InvalidItem = Readonly<{ kind: "invalid"; reason: string }>;

/** A complete item with a valid signature. */
export type CheckedItem = Readonly<{ kind: "item"; header: ItemHeader; data: Uint8Array }> & ItemDigests;

export const signatureOffset = 2;
const referenceSize = 32;
const countsSize = 16;
const nothing = new Uint8Array(0);

/** Bytes of the smallest item: type 2 or 4, no target, no anchor, no tags, no payload. */
export const itemSizeMin = signatureOffset + 64 + 32 + 2 + countsSize;

/**
 * Finds the parts of an item's header without decoding them.
 *
 * @param bytes - The item from its first byte on; as many bytes as are available.
 * @param itemSize - The size of the item, if known: a header that exceeds it is invalid.
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
 * @param itemSize - The size of the item, if known: a header that exceeds it is invalid.
 * @returns The header, how many bytes are needed, or why the item is invalid. Never throws.
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

/** The 32 bytes of an item's id. */
export function itemIdBytes(bytes: Uint8Array, frame: ItemFrame): Uint8Array {
  return sha256(bytes.subarray(signatureOffset, frame.ownerOffset));
}

/**
 * Verifies an item's signature.
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
 * Parses and verifies a complete item in memory.
 *
 * @param bytes - Exactly the item.
 * @returns The item, or why it is invalid. Never throws.
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

/** The value of a flag; `undefined` when it is missing or invalid. */
function readFlag(bytes: Uint8Array, offset: number, rules: ItemRules): boolean | undefined {
  const flag = bytes[offset];
  if (flag === 1) return true;
  if (flag === 0) return false;
  // Published libraries read every other value as "absent"; items on the chain keep their ids.
  return flag !== undefined && rules === "lenient" ? false : undefined;
}

function needOrFlag(bytes: Uint8Array, offset: number, itemSize: number, part: string) {
  const flag = bytes[offset];
  return flag === undefined ? need(offset + 1, itemSize) : invalidItem(`the ${part} flag is ${flag}, not 0 or 1`);
}

function readReference(bytes: Uint8Array, offset: number): Uint8Array {
  return offset < 0 ? nothing : bytes.subarray(offset, offset + referenceSize);
}

/** Eight bytes, little-endian. Numbers above 2^53 lose digits but stay above every limit. */
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

/** The signed fields of an item besides its payload; an absent target or anchor is empty. */
export type SignedFields = Readonly<{
  signatureType: number;
  owner: Uint8Array;
  targetBytes: Uint8Array;
  anchorBytes: Uint8Array;
  /** The encoded tag section. */
  rawTags: Uint8Array;
}>;

/** The two hashes of an item: the signed 48-byte message, and the payload's 32-byte SHA-256. */
export type ItemDigests = Readonly<{ message: Uint8Array; digest: Uint8Array }>;

/** Computes both hashes of a payload that arrives in pieces. */
export type ItemHash = Readonly<{
  update(piece: Uint8Array): void;
  /** Returns the hashes. The pieces must have exactly the announced size, if any. */
  finish(): ItemDigests;
}>;

const digestSize = 32;

/** Elements of the message. */
const itemPartsCount = 8;

/** Hashes of the message's first three elements, by signature type. */
const heads = new Map<number, Uint8Array>(signatureSchemes.map(({ type }) => [type, headOf(type)]));

/**
 * Begins to hash an item.
 *
 * @param fields - Of a known signature type.
 * @param dataSize - The payload's size in bytes; absent when it is not known before the end.
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

/** Computes one of the two hashes; two threads may compute them. */
export type PayloadHash = Readonly<{ update(piece: Uint8Array): void; finish(): Uint8Array }>;

/** Begins to hash the signed message. Parameters as `createItemHash`. */
export function createMessageHash(fields: SignedFields, dataSize?: number): PayloadHash {
  const signed = createBlobHash(dataSize);
  return { update: signed.update, finish: () => messageOf(fields, signed.digest()) };
}

/** Begins the payload's SHA-256. */
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

/** Hashes an item with its payload in memory. */
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

/** The fields of an item to create, besides its payload. */
export type ItemFields = Readonly<{
  tags?: readonly Tag[];
  /** The recipient's address, 43 characters, or "". */
  target?: string;
  /** Any 32 bytes as base64url, 43 characters, or "". */
  anchor?: string;
}>;

/** The header of a signed item, its id, and the SHA-256 of its payload. */
export type SignedHeader = Readonly<{ id: Id; header: Uint8Array; digest: Uint8Array }>;

/** Signs an item with a streamed payload. The header precedes the payload, but is known only after it. */
export type ItemSigning = Readonly<{ update(piece: Uint8Array): void; finish(): SignedHeader }>;

/**
 * Creates a signed data item.
 *
 * @param fields - Within the limits of ANS-104. Text is encoded as UTF-8.
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
 * Begins to sign an item with a payload that arrives in pieces.
 *
 * @param dataSize - The exact size of the payload in bytes.
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
 * Computes the size of an item's header before it is signed.
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
