/**
 * Headers of data items that an operator announces before their bundle is found. A thread parses them:
 * thousands of them take a second to parse and hash.
 *
 * A header is rejected unless its id is the hash of its signature and its address that of its owner. The owner's
 * signature can only be verified when the payload is available.
 * Source: docs/reference/gateway.md#queueing.
 * @module
 */
import { addressOf, idFromBytes, idShape, isId, isOwnerAddress } from "../../arweave/id.ts";
import { signatureSchemes } from "../../arweave/signature.ts";
import { decodeTags, type Tag } from "../../arweave/tags.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { isJsonFault } from "../../lib/json.ts";
import {
  anyObjectSchema,
  integerSchema,
  listSchema,
  nullable,
  objectSchema,
  refined,
  stringSchema,
  type ValueSchema,
} from "../../lib/value-schema.ts";
import type { PendingRow } from "../../store/index/index-types.ts";

export type AnnouncementsJob = Readonly<{ body: Uint8Array }>;

export type AnnouncementsResponse =
  | Readonly<{ kind: "rows"; rows: readonly PendingRow[] }>
  | Readonly<{ kind: "no JSON" }>
  | Readonly<{ kind: "too many" }>
  | Readonly<{ kind: "malformed"; reason: string }>;

export const announcementsMax = 10_000;

/** Longest signature of any type. Bytes. */
const signatureSizeMax = Math.max(...signatureSchemes.map(({ signatureSize }) => signatureSize));
const ownerSizeMax = Math.max(...signatureSchemes.map(({ ownerSize }) => ownerSize));

/** Tags of an item, and characters of all their names and values. */
const tagsMax = 128;
const tagCharactersMax = 8_192;

/** An anchor has 32 bytes, or as many characters. */
const anchorLengthMax = 64;

const bytesSchema = (sizeMax: number, description: string) =>
  stringSchema({ minLength: 1, maxLength: Math.ceil((sizeMax * 4) / 3), description });

/** Optional field; any value is accepted. */
const statedType: ValueSchema<unknown> = {
  schema: {
    description: "Number of the signature type; ignored when the sizes are those of another type.",
  },
  is: (value): value is unknown => value !== undefined,
};

/** Schema of a header; also shown in the API reference. */
export const announcementSchema = objectSchema(
  {
    signature: bytesSchema(signatureSizeMax, "Base64url."),
    owner: bytesSchema(ownerSizeMax, "The public key, base64url."),
    id: refined(idShape, isId, "SHA-256 of the signature."),
    owner_address: refined(idShape, isOwnerAddress, "SHA-256 of the owner."),
    data_size: integerSchema(),
  },
  {
    signature_type: statedType,
    target: refined(stringSchema({ pattern: "^([0-9a-zA-Z_-]{43})?$" }), isTarget, "An address, or nothing."),
    anchor: stringSchema({ maxLength: anchorLengthMax }),
    tags: nullable(listSchema(objectSchema({ name: stringSchema(), value: stringSchema() }, {}), 0, tagsMax)),
  },
);

export const announcementsSchema = listSchema(announcementSchema, 1, announcementsMax).schema;

/** Parses all headers of a body, or none. */
export function readAnnouncements({ body }: AnnouncementsJob): AnnouncementsResponse {
  const headers = parse(body);
  if (headers === undefined) return { kind: "no JSON" };
  if (!Array.isArray(headers) || headers.length === 0) return { kind: "malformed", reason: "no list of headers" };
  if (headers.length > announcementsMax) return { kind: "too many" };
  const rows: PendingRow[] = [];
  for (const [index, header] of headers.entries()) {
    const row = readHeader(header);
    if (typeof row === "string") return { kind: "malformed", reason: `header ${index}: ${row}` };
    rows.push(row);
  }
  return { kind: "rows", rows };
}

/** Undefined when the bytes are not JSON; an empty body is an empty list. */
function parse(body: Uint8Array): unknown {
  if (body.byteLength === 0) return [];
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (error) {
    // Not JSON or not UTF-8: the caller reports it.
    if (isJsonFault(error) || error instanceof TypeError) return undefined;
    throw error;
  }
}

function readHeader(header: unknown): PendingRow | string {
  if (!anyObjectSchema.is(header)) return "is not an object";
  const { wrongField, value } = announcementSchema.parse(header);
  if (wrongField !== undefined) return `${wrongField} is not of its kind`;
  const named = readNames(value);
  if (typeof named === "string") return named;
  const { data_size: size, target = "", anchor = "" } = value;
  const tags = readTags(value.tags ?? []);
  if (tags === undefined) return "tags are not valid";
  return { kind: "item", ...named, target, anchor, tags, headerSize: 0, size, digest: null, verified: false };
}

type Names = Pick<PendingRow, "id" | "signatureType" | "signature" | "owner" | "ownerAddress">;

type Stated = Readonly<{
  signature: string;
  owner: string;
  id: string;
  owner_address: string;
  signature_type?: unknown;
}>;

function readNames(stated: Stated): Names | string {
  const signature = readBytes(stated.signature);
  if (signature === undefined) return "signature is not a valid signature";
  const owner = readBytes(stated.owner);
  if (owner === undefined) return "owner is not a valid public key";
  const id = idFromBytes(sha256(signature));
  if (stated.id !== id) return "id is not the hash of the signature";
  const ownerAddress = addressOf(owner);
  if (stated.owner_address !== ownerAddress) return "owner_address is not the hash of the owner";
  return {
    id,
    signatureType: typeOf(signature, owner, stated.signature_type),
    signature,
    owner,
    ownerAddress,
  };
}

function isTarget(text: string): text is string {
  return text === "" || isId(text);
}

/** The stated signature type, or else the first one with these sizes. */
function typeOf(signature: Uint8Array, owner: Uint8Array, stated: unknown): number {
  const fitting = signatureSchemes.filter(
    ({ signatureSize, ownerSize }) => signatureSize === signature.length && ownerSize === owner.length,
  );
  return (fitting.find(({ type }) => type === stated) ?? fitting[0])?.type ?? 1;
}

function readBytes(text: string): Uint8Array | undefined {
  const bytes = decodeBase64url(text);
  return bytes === undefined || bytes.length === 0 ? undefined : bytes;
}

/** Names and values are base64url, as in a transaction's JSON. */
function readTags(tags: readonly Tag[]): Tag[] | undefined {
  let characters = 0;
  const raw = [];
  for (const { name, value } of tags) {
    characters += name.length + value.length;
    const bytes = { name: decodeBase64url(name), value: decodeBase64url(value) };
    if (characters > tagCharactersMax || bytes.name === undefined || bytes.value === undefined) return undefined;
    raw.push({ name: bytes.name, value: bytes.value });
  }
  return decodeTags(raw);
}
