/**
 * What webhooks say: the events, chosen by the operator's filters, as JSON in the names of the wire.
 * Source: docs/reference/gateway.md#webhooks.
 * @module
 */
import { type Filter, type FilterSubject, matches } from "../arweave/filter.ts";
import { readId } from "../arweave/id.ts";
import { tagValue } from "../arweave/tags.ts";
import { isJsonObject, readJson, writeJson } from "../lib/json.ts";
import { pendingHeight } from "../store/index/place.ts";
import type { PageRow } from "../store/index/rows.ts";
import type { IndexReader } from "../store/index/types.ts";
import type { AnnouncedRow, Delivery } from "../store/outbox.ts";

/** Which events are sent. */
export type DeliveryFilters = Readonly<{ index: Filter; block: Filter }>;

/** What is asked of the index. */
export type DeliveryReader = Pick<IndexReader, "row" | "locate" | "blockText">;

/**
 * The letter about an announcement.
 *
 * @returns Undefined when no filter chooses it, and for what the index no longer has.
 */
export function deliveryOf(
  { kind, key }: AnnouncedRow,
  filters: DeliveryFilters,
  reader: DeliveryReader,
): Delivery | undefined {
  if (kind === "block") return blockDelivery(Number(key), filters.block, reader);
  const id = filters.index.kind === "never" ? undefined : readId(key);
  const row = id === undefined ? undefined : reader.row(id);
  // A transaction that waits for a block is told of when it is in one.
  if (row === undefined || (row.kind === "transaction" && row.place.height === pendingHeight)) return undefined;
  return matches(filters.index, subjectOf(row, reader)) ? rowDelivery(row) : undefined;
}

function rowDelivery(row: PageRow): Delivery {
  const event = row.kind === "item" ? "ans104-data-item-indexed" : "tx-indexed";
  const { id, ownerAddress, target, tags, size, place } = row;
  const data = {
    id,
    owner_address: ownerAddress,
    target,
    data_size: size,
    height: place.height === pendingHeight ? null : place.height,
    content_type: tagValue(tags, "Content-Type") ?? null,
    tags: tags.map(({ name, value }) => ({ name, value })),
    ...(row.kind === "item" ? itemData(row) : transactionData(row)),
  };
  return { event, body: writeJson({ event, data }) };
}

function itemData({ parentId, anchor, signatureType }: PageRow) {
  return { parent_id: parentId ?? null, anchor, signature_type: signatureType };
}

function transactionData({ anchor, quantity, reward, format }: PageRow) {
  return { last_tx: anchor, quantity: String(quantity), reward: String(reward), format };
}

function blockDelivery(height: number, filter: Filter, reader: DeliveryReader): Delivery | undefined {
  if (filter.kind === "never") return undefined;
  const stored = reader.blockText(height);
  const fields = stored === undefined ? undefined : readJson(stored.text);
  if (fields === undefined || !isJsonObject(fields)) return undefined;
  const subject: FilterSubject = { tags: [], hasParent: false, attribute: (name) => fields[name] };
  if (!matches(filter, subject)) return undefined;
  const { indep_hash = null, previous_block = null, timestamp = null, txs = [] } = fields;
  const event = "block-indexed";
  return { event, body: writeJson({ event, data: { height, indep_hash, previous_block, timestamp, txs } }) };
}

function subjectOf(row: PageRow, reader: DeliveryReader): FilterSubject {
  const { tags, kind } = row;
  return { tags, hasParent: kind === "item", attribute: (name) => attributeOf(row, name, reader) };
}

/** The fields that filters of indexing have too, in their types: a transaction's amounts are texts. */
function attributeOf(row: PageRow, name: string, reader: DeliveryReader): unknown {
  const isItem = row.kind === "item";
  switch (name) {
    case "id":
      return row.id;
    case "owner":
      return row.ownerKey;
    case "owner_address":
      return row.ownerAddress;
    case "target":
      return row.target;
    case "content_type":
      return tagValue(row.tags, "Content-Type");
    case "data_size":
      return isItem ? row.size : String(row.size);
    case "anchor":
    case "signature_type":
    case "parent_id":
    case "root_tx_id":
      return isItem ? itemAttribute(row, name, reader) : undefined;
    case "last_tx":
    case "quantity":
    case "reward":
    case "format":
      return isItem ? undefined : transactionData({ ...row })[name];
    default:
      return undefined;
  }
}

function itemAttribute(row: PageRow, name: string, reader: DeliveryReader): unknown {
  if (name === "root_tx_id") return reader.locate(row.id)?.rootId;
  if (name === "parent_id") return row.parentId;
  return name === "anchor" ? row.anchor : row.signatureType;
}
