/**
 * What a transaction's signature signs.
 *
 * Format 1 signs its fields joined, data included; format 2 signs a deep hash that names the data by its root. A
 * denomination above 0 comes first, and turns format 1 into a deep hash too. ECDSA leaves the owner out, because the
 * signature gives it away.
 * Source: reference/chain.md §2.
 * @module
 */
import { concatBytes, utf8Bytes } from "../lib/bytes.ts";
import { deepHash } from "./deep-hash.ts";
import type { RawTag } from "./tags.ts";

/** The fields that are signed, as bytes. */
export type SignedFields = Readonly<{
  format: 1 | 2;
  signatureType: "rsa" | "ecdsa";
  owner: Uint8Array;
  target: Uint8Array;
  data: Uint8Array;
  quantity: bigint;
  reward: bigint;
  lastTx: Uint8Array;
  tags: readonly RawTag[];
  dataSize: number;
  dataRoot: Uint8Array;
  denomination: bigint;
}>;

/** The message that the signature is over; it is hashed once more (SHA-256) in signing. */
export function transactionMessage(fields: SignedFields): Uint8Array {
  return fields.format === 1 ? firstFormat(fields) : secondFormat(fields);
}

function firstFormat(fields: SignedFields): Uint8Array {
  const { owner, target, data, lastTx, denomination } = fields;
  const quantity = decimal(fields.quantity);
  const reward = decimal(fields.reward);
  if (denomination > 0n) {
    return deepHash([
      decimal(denomination),
      owner,
      target,
      data,
      quantity,
      reward,
      lastTx,
      pairs(fields.tags),
    ]);
  }
  const tags = fields.tags.flatMap(({ name, value }) => [name, value]);
  return concatBytes([owner, target, data, quantity, reward, lastTx, ...tags]);
}

function secondFormat(fields: SignedFields): Uint8Array {
  return deepHash([
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
  ]);
}

function pairs(tags: readonly RawTag[]): Uint8Array[][] {
  return tags.map(({ name, value }) => [name, value]);
}

function decimal(value: bigint | number): Uint8Array {
  return utf8Bytes(value.toString());
}
