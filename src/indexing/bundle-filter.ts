/**
 * Applies the operator's filter to bundles of the queue, with their fields from the index.
 * @module
 */
import { type Filter, type FilterSubject, matches, transactionSubject } from "../arweave/filter.ts";
import type { Id } from "../arweave/id.ts";
import { tagValue } from "../arweave/tags.ts";
import { readTransaction } from "../arweave/transaction.ts";
import type { BundleJob, IndexReader, PageRow } from "../store/index/index-types.ts";

/** The fields of a bundle that the filter needs. */
export type FilteredBundle = Pick<BundleJob, "id" | "rootId" | "size" | "depth" | "bypassFilter">;

export type FilterReader = Pick<IndexReader, "row" | "transactionText">;

/**
 * Whether the filter chooses a bundle.
 *
 * @returns Also true for a nested bundle whose item is not in the index: the filter chose it when its parent was
 *   unbundled.
 */
export function isWanted(filter: Filter, job: FilteredBundle, reader: FilterReader): boolean {
  if (job.bypassFilter || filter.kind === "always") return true;
  if (filter.kind === "never") return false;
  const subject = job.depth === 0 ? transactionOf(job, reader) : itemOf(job, reader);
  return subject === undefined || matches(filter, subject);
}

function transactionOf(job: FilteredBundle, reader: FilterReader): FilterSubject | undefined {
  const stored = reader.transactionText(job.id);
  if (stored === undefined) return undefined;
  // When the data was cut out of the text, only the index has its size.
  return transactionSubject({ ...readTransaction(stored.text), dataSize: job.size });
}

function itemOf(job: FilteredBundle, reader: FilterReader): FilterSubject | undefined {
  const row = reader.row(job.id);
  return row === undefined
    ? undefined
    : { tags: row.tags, hasParent: true, attribute: (name) => itemAttribute(row, name, () => job.rootId) };
}

/** An attribute of an indexed row, as data items have them. @param rootOf - Finds the root transaction. */
export function itemAttribute(row: PageRow, name: string, rootOf: () => Id | undefined): unknown {
  switch (name) {
    case "id":
      return row.id;
    case "signature_type":
      return row.signatureType;
    case "owner":
      return row.ownerKey;
    case "owner_address":
      return row.ownerAddress;
    case "target":
      return row.target;
    case "anchor":
      return row.anchor;
    case "content_type":
      return tagValue(row.tags, "Content-Type");
    case "data_size":
      return row.size;
    case "parent_id":
      return row.parentId;
    case "root_tx_id":
      return rootOf();
    default:
      return undefined;
  }
}
