/**
 * An operator's requests to index a transaction or a bundle ahead of the queue. Ids in the index are queued at once;
 * other ids are staged and then searched for on the chain (staged-transactions.ts).
 * Source: docs/reference/gateway.md#queueing.
 * @module
 */
import { isBundleTags } from "../arweave/bundle.ts";
import { canonical, type Filter } from "../arweave/filter.ts";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { Staged, StagingRequest } from "../store/administration-database.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import { isWanted } from "./bundle-filter.ts";

/** The outcome of a request for a bundle. */
export type QueueOutcome = "queued" | "skipped";

/** An operator's requests. A request is durable when its promise is fulfilled. */
export type IndexingRequests = Readonly<{
  /** Rejects with Failure `too_many_requests` when too many wait. */
  queueTransaction: (id: Id) => Promise<void>;
  /**
   * @param bypassFilter - Whether the bundle and all items in it are indexed without applying the filters.
   * @returns `skipped` when the unbundle filter does not choose the bundle, and when the bundle is done with these
   *   filters. Rejects as `queueTransaction` does.
   */
  queueBundle: (id: Id, bypassFilter: boolean) => Promise<QueueOutcome>;
}>;

export type IndexingRequestsOptions = Readonly<{
  reader: Pick<IndexReader, "bundleRow" | "bundleStatus" | "locate" | "row" | "transactionText">;
  index: Pick<IndexWriterCalls, "queueBundle" | "requestBundle">;
  staged: Pick<Staged, "add">;
  unbundleFilter: Filter;
  indexFilter: Filter;
  /** Called after an insertion into the queue of bundles, or into the list of staged ids. */
  onBundle: () => void;
  onStaged: () => void;
}>;

export function createIndexingRequests(options: IndexingRequestsOptions): IndexingRequests {
  const { reader, index, staged, unbundleFilter, indexFilter, onBundle, onStaged } = options;
  const filters = { unbundleFilter: canonical(unbundleFilter), indexFilter: canonical(indexFilter) };

  const stage = (request: StagingRequest): void => {
    if (!staged.add(request)) throw new Failure("too_many_requests", { staged: request.id });
    onStaged();
  };

  return {
    queueTransaction: async (id) => {
      const known = reader.bundleRow(id);
      if (known !== undefined && !isUnfinishedBundle(id, reader)) return;
      if (known !== undefined && (await index.queueBundle(known)) === "queued") onBundle();
      else stage({ id, isBundle: false, bypassFilter: false });
    },
    queueBundle: async (id, bypassFilter) => {
      const known = reader.bundleRow(id);
      const outcome = known && (await index.requestBundle({ ...known, bypassFilter }, filters));
      if (known === undefined || outcome === "gone") {
        stage({ id, isBundle: true, bypassFilter });
        return "queued";
      }
      if (outcome === "done") return "skipped";
      const bundle = { ...known, bypassFilter };
      onBundle();
      const rootId = reader.locate(id)?.rootId ?? id;
      return isWanted(unbundleFilter, { ...bundle, rootId }, reader) ? "queued" : "skipped";
    },
  };
}

/** Whether the tags of an id declare a bundle that is not completely unbundled. */
export function isUnfinishedBundle(id: Id, reader: Pick<IndexReader, "bundleStatus" | "row">): boolean {
  const tags = reader.row(id)?.tags ?? [];
  const finishedAt = reader.bundleStatus(id)?.lastFullyIndexedAt ?? null;
  return isBundleTags(tags) && finishedAt === null;
}
