/**
 * Chunks: pieces of data with proofs that they belong to a data root, in the JSON and the binary format of nodes.
 * Source: docs/reference/formats.md#data-trees-and-chunks; docs/reference/node-api.md#posting-chunks.
 * @module
 */
import { Failure } from "../failures.ts";
import { decodedSize, encodeBase64url } from "../lib/base64url.ts";
import { concatBytes, equalBytes, readUnsigned, utf8Bytes, withSize } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import type { JsonObject } from "../lib/json.ts";
import { chunkSize, pathSizeMax, type Ruleset, validatePath } from "./merkle.ts";
import { bytesField, exactBytesField, integerField, readFields } from "./wire.ts";

/** A chunk as a node serves it by weave offset. */
export type ServedChunk = Readonly<{ chunk: Uint8Array; dataPath: Uint8Array; txPath: Uint8Array }>;

/** A chunk as a client posts it. */
export type PostedChunk = Readonly<{
  /** 32 bytes. */
  dataRoot: Uint8Array;
  /** Bytes of all the data under the root. */
  dataSize: number;
  dataPath: Uint8Array;
  /** Any byte of the chunk, from the start of the data. */
  offset: number;
  chunk: Uint8Array;
}>;

/** A chunk and what it claims. */
export type ChunkClaim = PostedChunk & Readonly<{ ruleset: Ruleset }>;

/** The place of a proven chunk in its data (bytes, half-open), or the reason for its rejection. */
export type ChunkVerdict = Readonly<
  { kind: "proven"; start: number; end: number } | { kind: "rejected"; reason: string }
>;

/** Longest tx path: 1,000 transactions with padding need 11 branches; the limit is twice that. */
const txPathSizeMax = 2_176;

/** Most characters of a chunk's JSON: the chunk and the longest proofs as base64url, and the keys. */
export const chunkTextSizeMax = 850_000;

/** A node reads numbers up to 2^256. */
const digitsMax = 78;
const rootSize = 32;

/**
 * Reads the response of `GET /chunk/{offset}`.
 *
 * @throws Failure `malformed_input` with `context.reason`.
 */
export function readServedChunk(text: string): ServedChunk {
  const fields = readFields(text, chunkTextSizeMax);
  return {
    chunk: bytesField(fields, "chunk", chunkSize),
    dataPath: bytesField(fields, "data_path", pathSizeMax),
    txPath: fields["tx_path"] === undefined ? new Uint8Array(0) : bytesField(fields, "tx_path", txPathSizeMax),
  };
}

/** The JSON of `GET /chunk/{offset}`. @param end - Weave offset after the chunk's last byte. */
export function servedChunkFields(served: ServedChunk, end: bigint): JsonObject {
  return {
    chunk: encodeBase64url(served.chunk),
    data_path: encodeBase64url(served.dataPath),
    tx_path: encodeBase64url(served.txPath),
    packing: "unpacked",
    absolute_end_offset: end.toString(),
    chunk_size: served.chunk.length.toString(),
  };
}

/** Most bytes of a chunk in binary: its four parts, and their sizes. */
export const chunkBytesMax = chunkSize + txPathSizeMax + pathSizeMax + 3 * 3 + 1 + 255;

const unpacked = utf8Bytes("unpacked");

/** The body of `GET /chunk2/{offset}`: chunk, tx path, data path and packing, each after its size. */
export function servedChunkBytes({ chunk, txPath, dataPath }: ServedChunk): Uint8Array<ArrayBuffer> {
  const parts = [withSize(chunk, 3), withSize(txPath, 3), withSize(dataPath, 3), withSize(unpacked, 1)];
  return new Uint8Array(concatBytes(parts));
}

/**
 * Reads the body of `GET /chunk2/{offset}`. The parts are views of it.
 *
 * @returns Undefined unless the body has exactly an unpacked chunk and its paths, none longer than it can be.
 */
export function readServedChunkBytes(body: Uint8Array): ServedChunk | undefined {
  let at = 0;
  const take = (sizeBytes: number, sizeMax: number): Uint8Array | undefined => {
    const start = at + sizeBytes;
    if (start > body.length) return undefined;
    const end = start + Number(readUnsigned(body.subarray(at, start)));
    if (end > body.length || end - start > sizeMax) return undefined;
    at = end;
    return body.subarray(start, end);
  };
  const chunk = take(3, chunkSize);
  const txPath = take(3, txPathSizeMax);
  const dataPath = take(3, pathSizeMax);
  const packing = take(1, unpacked.length);
  if (chunk === undefined || txPath === undefined || dataPath === undefined || packing === undefined) return undefined;
  return at === body.length && equalBytes(packing, unpacked) ? { chunk, txPath, dataPath } : undefined;
}

/**
 * Reads the body of `POST /chunk`.
 *
 * @throws Failure `malformed_input` with `context.reason`, and with `context.fault` when nodes have an error code for
 *   it other than `invalid_json`.
 */
export function readPostedChunk(text: string): PostedChunk {
  const fields = readFields(text, chunkTextSizeMax);
  const dataSize = integerField(fields, "data_size", digitsMax);
  if (dataSize > numberMax) throw faulty("data_size_too_big", "data_size is more than there can be");
  rejectLongText(fields, "chunk", chunkSize);
  rejectLongText(fields, "data_path", pathSizeMax);
  if (fields["offset"] === undefined) throw faulty("offset_field_required", "offset is missing");
  const offset = integerField(fields, "offset", digitsMax);
  if (offset > numberMax) throw faulty("offset_too_big", "offset is more than there can be");
  return {
    dataRoot: exactBytesField(fields, "data_root", rootSize),
    dataSize: Number(dataSize),
    dataPath: bytesField(fields, "data_path", pathSizeMax),
    offset: Number(offset),
    chunk: bytesField(fields, "chunk", chunkSize),
  };
}

/**
 * Verifies all bytes of a chunk against its data root.
 *
 * @param digest - SHA-256 of the chunk, where the caller has made it from these bytes.
 * @returns Proven only when the path leads from the root to these bytes, at a place that contains `offset`.
 */
export function checkChunk(claim: ChunkClaim, digest?: Uint8Array): ChunkVerdict {
  const { dataRoot, dataSize, dataPath, offset, chunk, ruleset } = claim;
  if (offset < 0 || offset >= dataSize) return rejected("offset is beyond the data");
  const leaf = validatePath({ root: dataRoot, path: dataPath, target: offset, size: dataSize, ruleset });
  if (leaf === undefined) return rejected("data_path does not prove this offset under this root");
  // A branch may claim more than its leaf contains; a reader that used the leaf for this byte would make no progress.
  if (BigInt(offset) < leaf.start || BigInt(offset) >= leaf.end) return rejected("offset is in a gap of the tree");
  if (BigInt(chunk.length) !== leaf.end - leaf.start) return rejected("chunk is not as long as its place");
  if (!equalBytes(digest ?? sha256(chunk), leaf.hash)) return rejected("chunk is not what its place commits to");
  return { kind: "proven", start: Number(leaf.start), end: Number(leaf.end) };
}

/**
 * Verifies a posted chunk. Its block is not known yet, so the rules of any era suffice.
 *
 * @param digest - As in `checkChunk`.
 */
export function admitChunk(posted: PostedChunk, digest?: Uint8Array): ChunkVerdict {
  let verdict: ChunkVerdict = rejected("data_path does not prove this offset under this root");
  for (const ruleset of ["relaxed", "strict-split", "strict-borders"] as const) {
    verdict = checkChunk({ ...posted, ruleset }, digest);
    if (verdict.kind === "proven") return verdict;
  }
  return verdict;
}

/** Above every size of data; larger numbers are not exact. */
const numberMax = BigInt(Number.MAX_SAFE_INTEGER);

function rejectLongText(fields: JsonObject, key: "chunk" | "data_path", sizeMax: number): void {
  const value = fields[key];
  if (typeof value === "string" && decodedSize(value) > sizeMax)
    throw faulty(`${key}_too_big`, `${key} has more than ${sizeMax} bytes`);
}

function faulty(fault: string, reason: string): Failure {
  return new Failure("malformed_input", { reason, fault });
}

function rejected(reason: string): ChunkVerdict {
  return { kind: "rejected", reason };
}
