/**
 * Reading the states of bundles.
 * @module
 */
import type { Database } from "bun:sqlite";
import { idBytes, idFromBytes } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { prepareQuery } from "../sqlite.ts";
import { pendingHeight, placeHigh, placeLow } from "./place.ts";
import type { BundleRow, BundleStatus, Located } from "./rows.ts";
import type { IndexReader } from "./types.ts";

/** Columns of the status record, in the specification's spelling. */
const statusColumns = [
  "formatId",
  "unbundleFilterId",
  "indexFilterId",
  "previousUnbundleFilterId",
  "previousIndexFilterId",
  "dataItemCount",
  "matchedDataItemCount",
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

/** Items of a bundle that stand at a lower place too; as every count of items, not known before the bundle is done. */
const duplicatedCount = `CASE WHEN data_item_count IS NULL THEN NULL ELSE (
    SELECT count(*) FROM duplicates d WHERE d.sig > 0 AND d.n >> 31 = b.n >> 31
      AND d.parent IS CASE WHEN b.depth > 0 THEN ((b.n & 0x7fffffff) << 6) + b.fine END
  ) END AS duplicatedDataItemCount`;

/** Bundles nest at most ten deep; a longer way up means that the index is damaged. */
const parentsMax = 64;

/** Opens these reads over a reader's connection. */
export function createBundleReads(
  db: Database,
): Pick<IndexReader, "bundleStatus" | "invalidItems" | "nextBundleAt" | "entriesUnder"> &
  Readonly<{ bundleRowAt: (located: Located) => BundleRow | undefined }> {
  const columns = statusColumns.map((name) => `${snakeCase(name)} AS ${name}`).join(", ");
  const status = prepareQuery<StatusRow>(
    db,
    `SELECT ${columns}, ${duplicatedCount},
       coalesce((SELECT id FROM items i WHERE i.n = (b.n >> 31) << 31),
                (SELECT id FROM duplicates d WHERE d.n = (b.n >> 31) << 31)) AS root
     FROM bundles b WHERE id = ? ORDER BY n LIMIT 1`,
  );
  const next = prepareQuery<{ at: number | null }>(
    db,
    "SELECT min(due_at) AS at FROM bundles WHERE due_at IS NOT NULL",
  );
  // A nested bundle that was queued before its root was read when the root was read before.
  const entries = prepareQuery<{ entries: number }>(
    db,
    `SELECT coalesce(sum(CASE state WHEN 'indexed' THEN data_item_count ELSE next_entry END), 0) AS entries
     FROM bundles WHERE n BETWEEN (?1 << 31) AND ((?1 << 31) | 0x7fffffff)
       AND last_queued_at >= coalesce((SELECT last_queued_at FROM bundles WHERE n = (?1 << 31)), 0)`,
  );
  const invalid = prepareQuery<Readonly<{ entry: number; offset: number; itemId: Uint8Array; reason: string }>>(
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
    entriesUnder: (root) => entries.get(placeHigh(root))?.entries ?? 0,
    nextBundleAt: () => next.get()?.at ?? undefined,
    bundleRowAt: createBundleRows(db),
  };
}

/** What the queue needs of an id that stands in a block: how deep it lies is read from its parents. */
function createBundleRows(db: Database): (located: Located) => BundleRow | undefined {
  const tables = ["items", "duplicates", "bundles", "pruned_items"];
  const parentAt = prepareQuery<{ parent: number | null }>(
    db,
    tables.map((table) => `SELECT parent FROM ${table} WHERE n = (?1 << 31) | ?2`).join(" UNION ALL "),
  );
  return ({ id, kind, place, headerSize, size }) => {
    if (place.height === pendingHeight) return undefined;
    const common = { id, place, headerSize, size, bypassFilter: false };
    if (kind === "transaction") return { ...common, parentOffset: null, depth: 0 };
    const high = placeHigh(place);
    const parentOffset = parentAt.get(high, placeLow(place))?.parent ?? null;
    let depth = 1;
    let above = parentOffset;
    while (above !== null) {
      depth += 1;
      assert(depth < parentsMax, "an item's parents end at its transaction");
      above = parentAt.get(high, Math.floor(above / 64))?.parent ?? null;
    }
    return { ...common, parentOffset, depth };
  };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (delivery) => `_${delivery.toLowerCase()}`);
}
