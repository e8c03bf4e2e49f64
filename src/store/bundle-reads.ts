/**
 * Reading the states of bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { idBytes, idFromBytes } from "../arweave/id.ts";
import type { IndexReader } from "./index-reader.ts";
import type { BundleStatus } from "./rows.ts";
import { prepareQuery } from "./sqlite.ts";

/** Columns of the status record, in the specification's spelling. */
const statusColumns = [
  "formatId",
  "unbundleFilterId",
  "indexFilterId",
  "previousUnbundleFilterId",
  "previousIndexFilterId",
  "dataItemCount",
  "matchedDataItemCount",
  "duplicatedDataItemCount",
  "importAttemptCount",
  "retryAttemptCount",
  "firstQueuedAt",
  "lastQueuedAt",
  "firstSkippedAt",
  "lastSkippedAt",
  "firstUnbundledAt",
  "lastUnbundledAt",
  "firstFullyIndexedAt",
  "lastFullyIndexedAt",
  "firstRetriedAt",
  "lastRetriedAt",
] as const;

type StatusRow = Omit<BundleStatus, "id" | "rootTransactionId"> & Readonly<{ root: Uint8Array | null }>;

/** Opens these reads over a reader's connection. */
export function createBundleReads(
  db: Database,
): Pick<IndexReader, "bundleStatus" | "invalidItems" | "nextBundleAt"> {
  const columns = statusColumns.map((name) => `${snakeCase(name)} AS ${name}`).join(", ");
  const status = prepareQuery<StatusRow>(
    db,
    `SELECT ${columns},
       coalesce((SELECT id FROM items i WHERE i.n = (b.n >> 31) << 31),
                (SELECT id FROM duplicates d WHERE d.n = (b.n >> 31) << 31)) AS root
     FROM bundles b WHERE id = ? ORDER BY n LIMIT 1`,
  );
  const next = prepareQuery<{ at: number | null }>(
    db,
    "SELECT min(due_at) AS at FROM bundles WHERE due_at IS NOT NULL",
  );
  const invalid = prepareQuery<
    Readonly<{ entry: number; offset: number; itemId: Uint8Array; reason: string }>
  >(
    db,
    `SELECT entry, byte AS offset, x.id AS itemId, x.reason FROM bundles b JOIN invalid_items x USING (n)
     WHERE b.id = ? ORDER BY n, entry LIMIT ?`,
  );
  return {
    invalidItems: (id, limit) =>
      invalid.all(idBytes(id), limit).map(({ itemId, ...item }) => ({ ...item, id: idFromBytes(itemId) })),
    bundleStatus: (id) => {
      const found = status.get(idBytes(id));
      if (found === undefined) return undefined;
      const { root, ...rest } = found;
      return { id, rootTransactionId: root === null ? null : idFromBytes(root), ...rest };
    },
    nextBundleAt: () => next.get()?.at ?? undefined,
  };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
