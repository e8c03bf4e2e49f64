/**
 * Rows for tests of the index: complete and well-formed, with random values for fields that are not given.
 * @module
 */
import { addressOf, type BlockHash, blockHashFromBytes, type Id, idFromBytes } from "../../../src/arweave/id.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import {
  type BlockRow,
  type BundleRow,
  type ItemRow,
  type PendingRow,
  type TransactionRow,
  transactionSignatureTypes,
} from "../../../src/store/index/index-types.ts";
import { type Place, pendingHeight } from "../../../src/store/index/place.ts";
import type { Random } from "../../support/random.ts";

/** An owner: a key and its address. */
export type Owner = Readonly<{ key: Uint8Array; address: ReturnType<typeof addressOf> }>;

/** Makes an owner of a 65-byte key. */
export function ownerOf(random: Random): Owner {
  const key = random.bytes(65);
  return { key, address: addressOf(key) };
}

export const idOf = (random: Random): Id => idFromBytes(random.bytes(32));

export const hashOf = (random: Random): BlockHash => blockHashFromBytes(random.bytes(48));

/** A block whose text names its height. */
export function blockOf(random: Random, given: Partial<BlockRow> & Pick<BlockRow, "height">): BlockRow {
  return {
    hash: hashOf(random),
    previous: "",
    timestamp: 1_600_000_000 + given.height,
    txCount: 0,
    weaveSize: 0n,
    blockSize: 0n,
    text: `{"height":${given.height},"reward_pool":11636689895910311}`,
    checked: ["links"],
    unchecked: [],
    ...given,
  };
}

/** A transaction of format 2 without data. */
export function transactionOf(
  random: Random,
  owner: Owner,
  given: Partial<TransactionRow> & Pick<TransactionRow, "txIndex">,
): TransactionRow {
  const id = given.id ?? idOf(random);
  return {
    format: 2,
    id,
    lastTx: "",
    owner: encodeBase64url(owner.key),
    ownerAddress: owner.address,
    signatureType: "rsa",
    tags: [],
    target: "",
    quantity: 0n,
    reward: 100n,
    dataSize: 0,
    dataRoot: "",
    text: `{"format":2,"id":"${id}","data":""}`,
    ...given,
  };
}

/** An item of 200 bytes, 130 of them its header. */
export function itemOf(random: Random, owner: Owner, given: Partial<ItemRow> & Pick<ItemRow, "place">): ItemRow {
  return {
    id: idOf(random),
    parentOffset: null,
    signatureType: 3,
    owner: owner.key,
    ownerAddress: owner.address,
    target: "",
    anchor: "",
    tags: [],
    headerSize: 130,
    size: 70,
    digest: random.bytes(32),
    ...given,
  };
}

/** A pending row. */
export function pendingOf(random: Random, owner: Owner, given: Partial<PendingRow> = {}): PendingRow {
  const kind = given.kind ?? "item";
  const id = given.id ?? idOf(random);
  return {
    kind,
    id,
    signatureType: kind === "item" ? 3 : transactionSignatureTypes.rsa,
    owner: owner.key,
    ownerAddress: owner.address,
    target: "",
    anchor: "",
    tags: [],
    headerSize: kind === "item" ? 130 : 0,
    size: 70,
    digest: null,
    verified: kind === "transaction",
    ...(kind === "item"
      ? {}
      : { transaction: { format: 2, quantity: 5n, reward: 7n, dataRoot: "", text: `{"id":"${id}"}` } }),
    ...given,
  };
}

/** The queue row of a transaction that is a bundle. */
export function bundleOf(place: Place, id: Id, size: number): BundleRow {
  return { id, place, parentOffset: null, headerSize: 0, size, depth: 0, bypassFilter: false };
}

export const tagOf = (name: string, value: string): Tag => ({ name, value });

export const isPendingPlace = (place: Place): boolean => place.height === pendingHeight;

/** Arbitrary filters. */
export const someFilters = { unbundleFilter: '{"always":true}', indexFilter: '{"always":true}' } as const;
