/**
 * Transactions and data items as filters see them: their fields by the names and in the types of the wire.
 *
 * A transaction's amounts and sizes are decimal texts, as nodes send them; a data item's are numbers.
 * Source: reference gateway, normalised forms of both.
 * @module
 */
import { encodeBase64url } from "../lib/base64url.ts";
import type { ItemHeader } from "./data-item.ts";
import type { FilterSubject } from "./filter.ts";
import type { Id } from "./id.ts";
import { tagValue } from "./tags.ts";
import type { Transaction } from "./transaction.ts";

/** Where a data item stands: its payload's size in bytes, the bundle it lies in, the transaction around all. */
export type ItemSurroundings = Readonly<{ dataSize: number; parentId: Id; rootId: Id }>;

/** A data item as a filter's subject. */
export function itemSubject(header: ItemHeader, surroundings: ItemSurroundings): FilterSubject {
  return {
    tags: header.tags,
    hasParent: true,
    attribute: (name) => itemAttribute(header, surroundings, name),
  };
}

/** A transaction as a filter's subject. */
export function transactionSubject(transaction: Transaction): FilterSubject {
  return {
    tags: transaction.tags,
    hasParent: false,
    attribute: (name) => transactionAttribute(transaction, name),
  };
}

function itemAttribute(header: ItemHeader, around: ItemSurroundings, name: string): unknown {
  switch (name) {
    case "id":
      return header.id;
    case "signature":
      return encodeBase64url(header.signature);
    case "signature_type":
      return header.signatureType;
    case "owner":
      return encodeBase64url(header.owner);
    case "owner_address":
      return header.ownerAddress;
    case "target":
      return header.target;
    case "anchor":
      return header.anchor;
    case "content_type":
      return tagValue(header.tags, "Content-Type");
    case "data_size":
      return around.dataSize;
    case "parent_id":
      return around.parentId;
    case "root_tx_id":
      return around.rootId;
    default:
      return undefined;
  }
}

function transactionAttribute(transaction: Transaction, name: string): unknown {
  switch (name) {
    case "id":
      return transaction.id;
    case "signature":
      return transaction.signature;
    case "format":
      return transaction.format;
    case "last_tx":
      return transaction.lastTx;
    case "owner":
      return transaction.owner;
    case "owner_address":
      return transaction.ownerAddress;
    case "target":
      return transaction.target;
    case "quantity":
      return String(transaction.quantity);
    case "reward":
      return String(transaction.reward);
    case "data_size":
      return String(transaction.dataSize);
    case "data_root":
      return transaction.dataRoot;
    case "content_type":
      return tagValue(transaction.tags, "Content-Type");
    default:
      return undefined;
  }
}
