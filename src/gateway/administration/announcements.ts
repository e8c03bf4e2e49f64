/**
 * Headers of data items that an operator announces before their bundle is found: read in a thread, because
 * thousands of them take a second to parse and hash.
 *
 * A header names itself truly (its id is the hash of its signature, its address that of its owner) or is
 * refused; that the owner signed it can only be seen when the payload is there.
 * Source: specification part 2 "Data item header"; contract.md §3 "queue-data-item".
 * @module
 */
import { addressOf, idFromBytes, isAddress, isId } from "../../arweave/id.ts";
import { signatureSchemes } from "../../arweave/signature.ts";
import { decodeTags, type Tag } from "../../arweave/tags.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { isJsonFault } from "../../lib/json.ts";
import type { PendingRow } from "../../store/index/rows.ts";

/** A body as it came. */
export type AnnouncementsJob = Readonly<{ body: Uint8Array }>;

/** What a body turned out to be. */
export type AnnouncementsAnswer =
  | Readonly<{ kind: "rows"; rows: readonly PendingRow[] }>
  | Readonly<{ kind: "no JSON" }>
  | Readonly<{ kind: "too many" }>
  | Readonly<{ kind: "malformed"; reason: string }>;

/** Headers of one body. Source: contract.md §1. */
export const announcementsMax = 10_000;

/** Longest of what any signature type has. Bytes. */
const signatureSizeMax = Math.max(...signatureSchemes.map(({ signatureSize }) => signatureSize));
const ownerSizeMax = Math.max(...signatureSchemes.map(({ ownerSize }) => ownerSize));

/** As many tags, and characters in all of their names and values, as an item may have. */
const tagsMax = 128;
const tagCharactersMax = 8_192;

/** An anchor has 32 bytes, or as much text. */
const anchorLengthMax = 64;

/** Reads the headers of a body, all or none. */
export function readAnnouncements({ body }: AnnouncementsJob): AnnouncementsAnswer {
  const headers = parse(body);
  if (headers === undefined) return { kind: "no JSON" };
  if (!Array.isArray(headers) || headers.length === 0)
    return { kind: "malformed", reason: "no list of headers" };
  if (headers.length > announcementsMax) return { kind: "too many" };
  const rows: PendingRow[] = [];
  for (const [index, header] of headers.entries()) {
    const row = readHeader(header);
    if (typeof row === "string") return { kind: "malformed", reason: `header ${index}: ${row}` };
    rows.push(row);
  }
  return { kind: "rows", rows };
}

/** Undefined when the bytes are no JSON; an empty body is an empty list. */
function parse(body: Uint8Array): unknown {
  if (body.byteLength === 0) return [];
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (error) {
    // No JSON, or no UTF-8: the caller says so.
    if (isJsonFault(error) || error instanceof TypeError) return undefined;
    throw error;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function readHeader(header: unknown): PendingRow | string {
  if (typeof header !== "object" || header === null || Array.isArray(header)) return "is no object";
  const fields: Fields = { ...header };
  const names = readNames(fields);
  if (typeof names === "string") return names;
  const { data_size: size, target = "", anchor = "" } = fields;
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) return "data_size is no size";
  if (typeof target !== "string" || !(target === "" || isId(target))) return "target is no address";
  if (typeof anchor !== "string" || anchor.length > anchorLengthMax) return "anchor is no anchor";
  const tags = readTags(fields["tags"] ?? []);
  if (tags === undefined) return "tags are no tags";
  return { kind: "item", ...names, target, anchor, tags, headerSize: 0, size, digest: null, verified: false };
}

type Names = Pick<PendingRow, "id" | "signatureType" | "signature" | "owner" | "ownerAddress">;

function readNames(fields: Fields): Names | string {
  const signature = readBytes(fields["signature"], signatureSizeMax);
  if (signature === undefined) return "signature is no signature";
  const owner = readBytes(fields["owner"], ownerSizeMax);
  if (owner === undefined) return "owner is no public key";
  const id = idFromBytes(sha256(signature));
  if (fields["id"] !== id) return "id is not the hash of the signature";
  const ownerAddress = addressOf(owner);
  const stated = fields["owner_address"];
  if (typeof stated !== "string" || !isAddress(stated) || stated !== ownerAddress)
    return "owner_address is not the hash of the owner";
  const signatureType = typeOf(signature, owner, fields["signature_type"]);
  return { id, signatureType, signature, owner, ownerAddress };
}

/** The type that is stated, or the first whose sizes these are: a header need not say it. */
function typeOf(signature: Uint8Array, owner: Uint8Array, stated: unknown): number {
  const fitting = signatureSchemes.filter(
    ({ signatureSize, ownerSize }) => signatureSize === signature.length && ownerSize === owner.length,
  );
  return (fitting.find(({ type }) => type === stated) ?? fitting[0])?.type ?? 1;
}

function readBytes(value: unknown, sizeMax: number): Uint8Array | undefined {
  if (typeof value !== "string" || value.length > Math.ceil((sizeMax * 4) / 3)) return undefined;
  const bytes = decodeBase64url(value);
  return bytes === undefined || bytes.length === 0 ? undefined : bytes;
}

/** Names and values travel as base64url, as in a transaction's JSON. */
function readTags(value: unknown): Tag[] | undefined {
  if (!Array.isArray(value) || value.length > tagsMax) return undefined;
  let characters = 0;
  const raw = [];
  for (const tag of value) {
    const { name, value: text } = { ...tag };
    if (typeof name !== "string" || typeof text !== "string") return undefined;
    characters += name.length + text.length;
    const bytes = { name: decodeBase64url(name), value: decodeBase64url(text) };
    if (characters > tagCharactersMax || bytes.name === undefined || bytes.value === undefined)
      return undefined;
    raw.push({ name: bytes.name, value: bytes.value });
  }
  return decodeTags(raw);
}
