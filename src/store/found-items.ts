/**
 * Cache of the places of data items that were found outside of the index. It survives restarts.
 *
 * A row is only a hint: each reader checks the item's header at that place again. The file is bounded. A damaged file
 * is replaced. A disk error is logged and costs one look-up.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Id, idBytes, idFromBytes, idSize } from "../arweave/id.ts";
import { concatBytes } from "../lib/bytes.ts";
import type { Log } from "../lib/log.ts";
import {
  closeDatabase,
  inTransaction,
  isDamage,
  openForWriting,
  prepare,
  prepareQuery,
  removeDatabase,
} from "./sqlite.ts";

/** Location of an item in a root transaction's data. */
export type StoredPlace = Readonly<{
  rootId: Id;
  /** Enclosing nested bundles, outermost first. */
  path: readonly Id[];
  /** Offset of the item's header in the root's data. */
  itemOffset: number;
  /** Size of header and payload, bytes. */
  itemSize: number;
  /** SHA-256 of the payload; undefined until the signature has been verified over the complete payload. */
  digest: Uint8Array | undefined;
}>;

/** Places by item id. */
export type FoundItems = Readonly<{
  find: (id: Id) => StoredPlace | undefined;
  /** Stores a place as the most recently used. A stored digest of the same place is preserved. */
  store: (id: Id, place: StoredPlace) => void;
  drop: (id: Id) => void;
  close: () => void;
}>;

/** @property rowsMax - Maximum number of places; default 100,000. */
type FoundItemsParts = Readonly<{ log: Log; rowsMax?: number }>;

/** About 25 MiB on disk. */
const rowsMaxDefault = 100_000;

/** One row in this many is evicted at once, least recently used first. */
const evictedShare = 100;

const cacheBytes = 2 * 2 ** 20;

const migrations = [
  `CREATE TABLE items (
     id BLOB PRIMARY KEY,
     root BLOB NOT NULL,
     path BLOB NOT NULL,
     item_offset INTEGER NOT NULL,
     item_size INTEGER NOT NULL,
     digest BLOB,
     used INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX items_by_use ON items (used);`,
];

type Row = Readonly<{
  root: Uint8Array;
  path: Uint8Array;
  item_offset: number;
  item_size: number;
  digest: Uint8Array | null;
}>;

/** Opens the file; creates it when absent, and replaces it when damaged. */
export function openFoundItems(path: string, { log, rowsMax = rowsMaxDefault }: FoundItemsParts): FoundItems {
  const { db, opened } = openRows(path, log);
  const select = prepareQuery<Row>(db, "SELECT root, path, item_offset, item_size, digest FROM items WHERE id = ?");
  const put = prepare(
    db,
    `INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
     ON CONFLICT DO UPDATE SET root = ?2, path = ?3, item_offset = ?4, item_size = ?5, used = ?7,
       digest = CASE WHEN root = ?2 AND item_offset = ?4 AND item_size = ?5 THEN ifnull(?6, digest) ELSE ?6 END`,
  );
  const remove = prepare(db, "DELETE FROM items WHERE id = ?");
  const evict = prepare(db, "DELETE FROM items WHERE id IN (SELECT id FROM items ORDER BY used LIMIT ?)");
  let { count, used } = opened;

  /** Logs errors: a failed cache costs a look-up, not the content. */
  function guarded<Value>(action: string, work: () => Value): Value | undefined {
    try {
      return work();
    } catch (error) {
      log.warn(`the place of a found item could not be ${action}`, { error });
      return undefined;
    }
  }

  function write(id: Id, place: StoredPlace): void {
    const { rootId, itemOffset, itemSize, digest } = place;
    const path = concatBytes(place.path.map(idBytes));
    const isNew = select.get(idBytes(id)) === undefined;
    used += 1;
    put.run(idBytes(id), idBytes(rootId), path, itemOffset, itemSize, digest ?? null, used);
    if (isNew) count += 1;
    if (count > rowsMax) count -= evict.run(count - rowsMax + Math.floor(rowsMax / evictedShare)).changes;
  }

  return {
    find: (id) =>
      guarded("read", () => {
        const row = select.get(idBytes(id));
        return row === undefined ? undefined : readRow(row);
      }),
    store: (id, place) => guarded("stored", () => inTransaction(db, () => write(id, place))),
    drop: (id) =>
      guarded("dropped", () => {
        count -= remove.run(idBytes(id)).changes;
      }),
    close: () => closeDatabase(db),
  };
}

function openRows(path: string, log: Log) {
  try {
    return openAndCount(path);
  } catch (error) {
    if (!isDamage(error)) throw error;
    log.warn("the cache of found items was damaged and has been removed", { path, error });
    removeDatabase(path);
    return openAndCount(path);
  }
}

function openAndCount(path: string) {
  const db: Database = openForWriting(path, { migrations, synchronous: "NORMAL", cacheBytes });
  try {
    const stated = prepareQuery<{ count: number; used: number }>(
      db,
      "SELECT count(*) AS count, ifnull(max(used), 0) AS used FROM items",
    );
    const opened = stated.get() ?? { count: 0, used: 0 };
    stated.finalize();
    return { db, opened };
  } catch (error) {
    closeDatabase(db);
    throw error;
  }
}

function readRow({ root, path, item_offset, item_size, digest }: Row): StoredPlace {
  const ids = Array.from({ length: path.length / idSize }, (_, index) =>
    idFromBytes(path.slice(index * idSize, (index + 1) * idSize)),
  );
  return {
    rootId: idFromBytes(root),
    path: ids,
    itemOffset: item_offset,
    itemSize: item_size,
    digest: digest ?? undefined,
  };
}
