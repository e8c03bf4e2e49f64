/**
 * What a transaction's signature signs.
 *
 * Format 1 signs its fields joined, data included; format 2 signs a deep hash that names the data by its root. A
 * denomination above 0 comes first, and turns format 1 into a deep hash too. ECDSA leaves the owner out, because the
 * signature gives it away.
 * Source: docs/reference/formats.md#transactions.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { concatBytes, utf8Bytes } from "../lib/bytes.ts";
import { createBlobHash, type DeepHashChunk, deepHash, deepHashList } from "./deep-hash.ts";
import type { RawTag } from "./tags.ts";

/** The fields that are signed, as bytes, but for the data of format 1. */
export type SignedFields = Readonly<{
  format: 1 | 2;
  signatureType: "rsa" | "ecdsa";
  owner: Uint8Array;
  target: Uint8Array;
  quantity: bigint;
  reward: bigint;
  lastTx: Uint8Array;
  tags: readonly RawTag[];
  /** Of format 1 the size of the data that is signed. */
  dataSize: number;
  dataRoot: Uint8Array;
  denomination: bigint;
}>;

/** A message whose data streams by. */
export type MessageStream = Readonly<{
  /** Takes in the next bytes of data. None are to come for format 2, which signs its data by its root. */
  update(piece: Uint8Array): void;
  /** Gives out the rest; to be called once, when exactly `dataSize` bytes have come. */
  finish(): void;
}>;

/**
 * The message that the signature is over; it is hashed once more (SHA-256) in signing.
 *
 * @param data - Of format 1; for format 2 it is not looked at.
 */
export function transactionMessage(fields: SignedFields, data: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  const stream = streamMessage(fields, (part) => parts.push(part));
  if (fields.format === 1) stream.update(data);
  stream.finish();
  return concatBytes(parts);
}

/**
 * Makes the message piece by piece.
 *
 * @param take - Gets its bytes in order, pieces of data as they come.
 */
export function streamMessage(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  if (fields.format === 2) return secondFormat(fields, take);
  return fields.denomination > 0n ? hashedFirstFormat(fields, take) : joinedFirstFormat(fields, take);
}

function joinedFirstFormat(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  let come = 0;
  take(fields.owner);
  take(fields.target);
  return {
    update: (piece) => {
      come += piece.length;
      take(piece);
    },
    finish: () => {
      assert(come === fields.dataSize, "a message gets as much data as its transaction states");
      for (const part of [decimal(fields.quantity), decimal(fields.reward), fields.lastTx]) take(part);
      for (const { name, value } of fields.tags) {
        take(name);
        take(value);
      }
    },
  };
}

function hashedFirstFormat(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  const data = createBlobHash(fields.dataSize);
  return {
    update: data.update,
    finish: () => {
      const { denomination, owner, target, quantity, reward, lastTx, tags } = fields;
      const before = [decimal(denomination), owner, target].map(deepHash);
      const after = [decimal(quantity), decimal(reward), lastTx, pairs(tags)].map(deepHash);
      take(deepHashList([...before, data.digest(), ...after]));
    },
  };
}

function secondFormat(fields: SignedFields, take: (part: Uint8Array) => void): MessageStream {
  return {
    update: () => assert(false, "the data of format 2 is signed by its root"),
    finish: () => take(deepHash(secondFormatParts(fields))),
  };
}

function secondFormatParts(fields: SignedFields): DeepHashChunk[] {
  return [
    ...(fields.denomination > 0n ? [decimal(fields.denomination)] : []),
    utf8Bytes("2"),
    ...(fields.signatureType === "rsa" ? [fields.owner] : []),
    fields.target,
    decimal(fields.quantity),
    decimal(fields.reward),
    fields.lastTx,
    pairs(fields.tags),
    decimal(fields.dataSize),
    fields.dataRoot,
  ];
}

function pairs(tags: readonly RawTag[]): Uint8Array[][] {
  return tags.map(({ name, value }) => [name, value]);
}

function decimal(value: bigint | number): Uint8Array {
  return utf8Bytes(value.toString());
}
