/**
 * Whether a bundle of the queue is to be unbundled: the operator's filter, asked with what the index knows of
 * it.
 * @module
 */
import { type Filter, type FilterSubject, matches, transactionSubject } from "../arweave/filter.ts";
import { tagValue } from "../arweave/tags.ts";
import { readTransaction } from "../arweave/transaction.ts";
import type { BundleJob, IndexReader, PageRow } from "../store/index/index-types.ts";

/** What is asked of a bundle. */
export type FilteredBundle = Pick<BundleJob, "id" | "rootId" | "size" | "depth" | "bypassFilter">;

/** What is asked of the index. */
export type FilterReader = Pick<IndexReader, "row" | "transactionText">;

/**
 * Tells whether the filter wants a bundle.
 *
 * @returns True too for a nested bundle whose item is not in the index: it was chosen when it was found, or
 *   it would not be in the queue.
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
  // Where the data was cut out of the text, its size is known only to the index.
  return transactionSubject({ ...readTransaction(stored.text), dataSize: job.size });
}

function itemOf(job: FilteredBundle, reader: FilterReader): FilterSubject | undefined {
  const row = reader.row(job.id);
  return row === undefined
    ? undefined
    : { tags: row.tags, hasParent: true, attribute: (name) => attributeOf(row, job, name) };
}

function attributeOf(row: PageRow, job: FilteredBundle, name: string): unknown {
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
      return job.rootId;
    default:
      return undefined;
  }
}
