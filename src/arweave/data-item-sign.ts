/**
 * Making data items: the header written around a payload that is at hand or streams by, and signed.
 *
 * What is written here passes the strict rules of `data-item.ts`.
 * Source: ANS-104 §2.
 * @module
 */
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { concatBytes, utf8Bytes } from "../lib/bytes.ts";
import { tagsFault, writeAvroTags } from "./avro.ts";
import { type Id, idBytes, idOfSignature, readId } from "./id.ts";
import { createItemHash, type SignedFields } from "./item-hash.ts";
import type { Signer } from "./signers/scheme.ts";
import type { Tag } from "./tags.ts";

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

/** An item whose payload streams by; the header stands before the payload but is known only after it. */
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
    targetBytes: readReference(fields.target ?? "", "target"),
    anchorBytes: readReference(fields.anchor ?? "", "anchor"),
    rawTags: writeAvroTags(tags),
  };
}

function readReference(text: string, part: string): Uint8Array {
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
