/**
 * Proofs: the JSON of `GET /svc/proof/{id}`, by which a reader can verify content without trust in the gateway.
 *
 * A proof contains the chunks that the requested range covers in part, and headers of data items, but no other content.
 * It proves nothing before `verifyProof`. docs/proof.md describes the fields.
 * @module
 */
import { encodeBase64url } from "../lib/base64url.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import type { ByteSpan } from "../lib/range.ts";
import { blockTextSizeMax } from "./block.ts";
import { type Address, type BlockHash, type Id, isBlockHash, isId, isOwnerAddress } from "./id.ts";
import { chunkSize, pathSizeMax } from "./merkle.ts";
import {
  bytesField,
  countField,
  integerField,
  listField,
  malformed,
  objectField,
  readFields,
  textField,
} from "./wire.ts";

/** A proof, parsed but not verified. Sizes and offsets are bytes; "of the data" means the root transaction's. */
export type Proof = Readonly<{
  id: Id;
  kind: "transaction" | "data_item";
  /** Whether the gateway considers the block final. */
  stable: boolean;
  /** Bytes of the whole content. */
  size: number;
  /** The part of the content that the proof is for. */
  range: ByteSpan;
  /** Absent for content in no block yet. */
  block: ProofBlock | undefined;
  /** The root transaction: the content's own, or the one whose data contains the item. */
  transaction: ProofTransaction | undefined;
  /** From the item directly in the transaction down to the proven one; empty for a transaction. */
  items: readonly ProofItem[];
  /** Of the proven item. */
  signature: ProofSignature | undefined;
  /** Ascending. */
  chunks: readonly ProofChunk[];
}>;

/** The block that holds the root transaction. */
export type ProofBlock = Readonly<{ height: number; hash: BlockHash; text: string }>;

/** The root transaction. */
export type ProofTransaction = Readonly<{
  id: Id;
  /** For an ECDSA signature, the recovered address. */
  owner: Address;
  /** The original JSON of a node. */
  text: string;
  /** Offset in the text at which the base64url of the data was cut out; null when it was not. */
  dataAt: number | null;
  dataSize: number;
  /** The root over the data's chunks, also when the header does not state it (format 1); 32 bytes, or empty. */
  dataRoot: Uint8Array;
  place: ProofPlace | undefined;
}>;

/** The place of the root transaction's data in the weave: absolute, half-open; the path proves it from the block. */
export type ProofPlace = Readonly<{ start: bigint; end: bigint; txPath: Uint8Array }>;

/** One step of the walk from the transaction to the item. */
export type ProofItem = Readonly<{
  id: Id;
  /** The bundle that holds it: the transaction, or the item before. */
  parent: Id;
  /** First byte of that bundle, of the data. */
  bundleStart: number;
  /** Number in the bundle's index, and of entries there; absent where the index is too large to be shown. */
  entry: Readonly<{ index: number; count: number }> | undefined;
  /** Of the data: first byte of the header, first of the payload, one past the last. */
  start: number;
  dataStart: number;
  end: number;
  /** All bytes before the payload. */
  header: Uint8Array;
}>;

/** The fields of a header, for readers without an ANS-104 parser. Absent references are empty. */
export type ProofSignature = Readonly<{
  type: number;
  signature: Uint8Array;
  owner: Uint8Array;
  target: Uint8Array;
  anchor: Uint8Array;
  /** The signed tag section. */
  tags: Uint8Array;
}>;

/** A chunk of the root transaction's data. */
export type ProofChunk = Readonly<{
  /** Of the data, half-open. */
  start: number;
  end: number;
  /** The offset for `GET /chunk/{offset}`: its last byte, absolute, counted from one. */
  absoluteEnd: bigint;
  dataPath: Uint8Array;
  /** Absent when the requested range covers the whole chunk, or the gateway withholds its other bytes. */
  bytes: Uint8Array | undefined;
}>;

/** Most characters of a proof. */
export const proofTextSizeMax = 32 * 2 ** 20;

/** Most chunks of a proof: those of 16 MiB, and as many for odd splits and indexes of bundles. */
export const proofChunksMax = 128;

/** Most content of one proof: 64 full chunks. Bytes. */
export const proofRangeSizeMax = 64 * chunkSize;

/** Most steps of a walk; bundles are not unbundled to that depth. */
export const proofItemsMax = 32;

/** The tags of an item have at most 1 MiB; the rest of a header is below 16 KiB. */
const headerSizeMax = 2 ** 20 + 2 ** 14;

const version = 1;
const txPathSizeMax = 2_176;
const partSizeMax = 4_096;
const offsetDigitsMax = 19;
const transactionTextSizeMax = 2 ** 20;

/** Writes a proof as JSON. */
export function proofFields(proof: Proof): JsonObject {
  const { block, transaction, items, signature, chunks, range } = proof;
  return {
    version,
    id: proof.id,
    kind: proof.kind,
    stable: proof.stable,
    size: proof.size,
    range: { start: range.start, end: range.end },
    block: block === undefined ? null : { height: block.height, hash: block.hash, text: block.text },
    transaction: transaction === undefined ? null : transactionFields(transaction),
    items: items.map(itemFields),
    signature: signature === undefined ? null : signatureFields(signature),
    chunks: chunks.map(chunkFields),
  };
}

/**
 * Reads a proof's JSON.
 *
 * @param text - At most `proofTextSizeMax` characters.
 * @throws Failure `malformed_input` with `context.reason`.
 */
export function readProof(text: string): Proof {
  const fields = readFields(text, proofTextSizeMax);
  if (fields["version"] !== version) throw malformed(`version is not ${version}`);
  const kind = textField(fields, "kind");
  if (kind !== "transaction" && kind !== "data_item") throw malformed("kind is not 'transaction' or 'data_item'");
  const size = countField(fields, "size");
  return {
    id: idField(fields, "id"),
    kind,
    stable: fields["stable"] === true,
    size,
    range: readRange(objectField(fields, "range"), size),
    block: optional(fields["block"], "block", readBlockFields),
    transaction: optional(fields["transaction"], "transaction", readTransactionFields),
    items: listField(fields, "items", proofItemsMax).map((item) => readItem(objectOf(item, "an item"))),
    signature: optional(fields["signature"], "signature", readSignature),
    chunks: listField(fields, "chunks", proofChunksMax).map((chunk) => readChunk(objectOf(chunk, "a chunk"))),
  };
}

function transactionFields({ place, ...transaction }: ProofTransaction): JsonObject {
  return {
    id: transaction.id,
    owner: transaction.owner,
    text: transaction.text,
    data_at: transaction.dataAt,
    data_size: transaction.dataSize,
    data_root: encodeBase64url(transaction.dataRoot),
    place:
      place === undefined
        ? null
        : {
            weave_start: place.start.toString(),
            weave_end: place.end.toString(),
            tx_path: encodeBase64url(place.txPath),
          },
  };
}

function itemFields(item: ProofItem): JsonObject {
  return {
    id: item.id,
    parent: item.parent,
    bundle_start: item.bundleStart,
    entry: item.entry === undefined ? null : { index: item.entry.index, count: item.entry.count },
    start: item.start,
    data_start: item.dataStart,
    end: item.end,
    header: encodeBase64url(item.header),
  };
}

function signatureFields(signature: ProofSignature): JsonObject {
  return {
    type: signature.type,
    signature: encodeBase64url(signature.signature),
    owner: encodeBase64url(signature.owner),
    target: encodeBase64url(signature.target),
    anchor: encodeBase64url(signature.anchor),
    tags: encodeBase64url(signature.tags),
  };
}

function chunkFields({ start, end, absoluteEnd, dataPath, bytes }: ProofChunk): JsonObject {
  return {
    start,
    end,
    absolute_end_offset: absoluteEnd.toString(),
    data_path: encodeBase64url(dataPath),
    chunk: bytes === undefined ? null : encodeBase64url(bytes),
  };
}

function readRange(fields: JsonObject, size: number): ByteSpan {
  const span = readSpan(fields);
  if (span.end > size) throw malformed("range reaches beyond the content");
  return span;
}

function readSpan(fields: JsonObject): ByteSpan {
  const start = countField(fields, "start");
  const end = countField(fields, "end");
  if (start > end) throw malformed("start is after end");
  return { start, end };
}

function readBlockFields(fields: JsonObject): ProofBlock {
  const hash = textField(fields, "hash");
  if (!isBlockHash(hash)) throw malformed("hash is not a valid block hash");
  const text = boundedText(fields, blockTextSizeMax);
  return { height: countField(fields, "height"), hash, text };
}

function readTransactionFields(fields: JsonObject): ProofTransaction {
  const text = boundedText(fields, transactionTextSizeMax);
  const dataAt = fields["data_at"] === null ? null : countField(fields, "data_at");
  if (dataAt !== null && dataAt > text.length) throw malformed("data_at is after the end of the text");
  return {
    id: idField(fields, "id"),
    owner: addressField(fields, "owner"),
    text,
    dataAt,
    dataSize: countField(fields, "data_size"),
    dataRoot: bytesField(fields, "data_root", 32),
    place: optional(fields["place"], "place", (place) => ({
      start: integerField(place, "weave_start", offsetDigitsMax),
      end: integerField(place, "weave_end", offsetDigitsMax),
      txPath: bytesField(place, "tx_path", txPathSizeMax),
    })),
  };
}

function readItem(fields: JsonObject): ProofItem {
  return {
    id: idField(fields, "id"),
    parent: idField(fields, "parent"),
    bundleStart: countField(fields, "bundle_start"),
    entry: optional(fields["entry"], "entry", (entry) => ({
      index: countField(entry, "index"),
      count: countField(entry, "count"),
    })),
    ...readSpan(fields),
    dataStart: countField(fields, "data_start"),
    header: bytesField(fields, "header", headerSizeMax),
  };
}

function readSignature(fields: JsonObject): ProofSignature {
  return {
    type: countField(fields, "type"),
    signature: bytesField(fields, "signature", partSizeMax),
    owner: bytesField(fields, "owner", partSizeMax),
    target: bytesField(fields, "target", 32),
    anchor: bytesField(fields, "anchor", 32),
    tags: bytesField(fields, "tags", headerSizeMax),
  };
}

function readChunk(fields: JsonObject): ProofChunk {
  return {
    ...readSpan(fields),
    absoluteEnd: integerField(fields, "absolute_end_offset", offsetDigitsMax),
    dataPath: bytesField(fields, "data_path", pathSizeMax),
    bytes: fields["chunk"] === null ? undefined : bytesField(fields, "chunk", chunkSize),
  };
}

function boundedText(fields: JsonObject, sizeMax: number): string {
  const text = textField(fields, "text");
  if (text.length > sizeMax) throw malformed(`text has more than ${sizeMax} characters`);
  return text;
}

function idField(fields: JsonObject, key: string): Id {
  const id = textField(fields, key);
  if (!isId(id)) throw malformed(`${key} is not a valid id`);
  return id;
}

function addressField(fields: JsonObject, key: string): Address {
  const address = textField(fields, key);
  if (!isOwnerAddress(address)) throw malformed(`${key} is not a valid address`);
  return address;
}

/** Reads a part that may be null. */
function optional<Part>(
  value: JsonValue | undefined,
  name: string,
  read: (fields: JsonObject) => Part,
): Part | undefined {
  return value === null ? undefined : read(objectOf(value, name));
}

function objectOf(value: JsonValue | undefined, name: string): JsonObject {
  if (!isJsonObject(value)) throw malformed(`${name} is not an object`);
  return value;
}
