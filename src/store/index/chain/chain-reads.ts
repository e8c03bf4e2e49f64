/**
 * Reads of blocks, texts, missing transactions, places in the weave, and locations of ids.
 *
 * Reads of the items within a span of a root's data use the nesting: items are nested or disjoint, so an item that
 * begins before the span and overlaps it is the last item before the span, or one of its parents.
 * @module
 */
import type { Database } from "bun:sqlite";
import {
  type BlockHash,
  blockHashBytes,
  blockHashFromBytes,
  type Id,
  idBytes,
  idFromBytes,
} from "../../../arweave/id.ts";
import { assert } from "../../../lib/assert.ts";
import { encodeBase64url } from "../../../lib/base64url.ts";
import { inSnapshot, prepareQuery } from "../../sqlite.ts";
import type { IdPlaces } from "../id-places.ts";
import {
  type BlocksPlan,
  type BlockText,
  type IndexReader,
  type ItemSpan,
  type Located,
  type MissingRow,
  type PageBlock,
  stableDepth,
  type Tip,
  type TransactionText,
  type WeaveSpan,
} from "../index-types.ts";
import {
  offsetOfRow,
  type Place,
  type PlaceHalves,
  packHeight,
  pendingHeight,
  placeHigh,
  placeOfHalves,
  placeOfRow,
  stepOf,
} from "../place.ts";
import { halvesSql, highSql, lowSql, placeSql, rootSql } from "../place-sql.ts";
import { addressFromBytes, textOfStored } from "../rows/stored-row.ts";
import { contentTags, decodeTagBlob, readContentTags } from "../rows/tag-blob.ts";
import { unpackText } from "./header-texts.ts";

/** The reader's calls for the chain. */
type ChainReads = Pick<
  IndexReader,
  "tip" | "block" | "blockText" | "blocks" | "heightsWithItems" | "transactionAt" | "transactionsOfBlock" | "dueMissing"
> &
  Readonly<{
    textAt: (place: PlaceHalves) => TransactionText | undefined;
    weaveSpanAt: (place: Place) => WeaveSpan | undefined;
  }>;

type BlockColumns = Readonly<{
  height: number;
  hash: Uint8Array;
  previous: Uint8Array | null;
  timestamp: number;
}>;

const blockColumns = "height, hash, previous, timestamp";
/** Hashes are looked up one by one; GraphQL's own limit on lists is lower. */
const hashesMax = 1_000;

function pageBlock(row: BlockColumns): PageBlock {
  return {
    height: row.height,
    hash: blockHashFromBytes(row.hash),
    timestamp: row.timestamp,
    previous: row.previous === null ? "" : blockHashFromBytes(row.previous),
  };
}

export function createChainReads(db: Database): ChainReads {
  const tip = prepareQuery<BlockColumns>(
    db,
    `SELECT ${blockColumns} FROM blocks WHERE followed = 1 ORDER BY height DESC LIMIT 1`,
  );
  const byHeight = prepareQuery<BlockColumns>(db, `SELECT ${blockColumns} FROM blocks WHERE height = ?`);
  const byHash = prepareQuery<BlockColumns>(db, `SELECT ${blockColumns} FROM blocks WHERE hash = ?`);
  const blockText = prepareQuery<{ body: Uint8Array; checked: string; unchecked: string }>(
    db,
    "SELECT body, checked, unchecked FROM block_texts JOIN blocks USING (height) WHERE height = ?",
  );
  const withItems = prepareQuery<{ height: number; itemCount: number }>(
    db,
    `SELECT height, item_count AS itemCount FROM blocks WHERE item_count > 0 AND height BETWEEN ? AND ?
     ORDER BY height LIMIT ?`,
  );
  const block = (wanted: number | BlockHash): BlockColumns | undefined =>
    typeof wanted === "number" ? byHeight.get(wanted) : byHash.get(blockHashBytes(wanted));

  return {
    tip: (): Tip | undefined => {
      const row = tip.get();
      if (row === undefined) return undefined;
      return { height: row.height, hash: blockHashFromBytes(row.hash), timestamp: row.timestamp };
    },
    block: (wanted) => {
      const row = block(wanted);
      return row === undefined ? undefined : pageBlock(row);
    },
    blockText: (wanted): BlockText | undefined => {
      const height = typeof wanted === "number" ? wanted : block(wanted)?.height;
      const row = height === undefined ? undefined : blockText.get(height);
      if (row === undefined) return undefined;
      return {
        text: unpackText(row.body),
        checked: readList(row.checked),
        unchecked: readList(row.unchecked),
      };
    },
    blocks: createBlocksPage(db, block),
    heightsWithItems: (first, last, limit) => withItems.all(first, last, limit),
    ...createTransactionReads(db),
  };
}

function createBlocksPage(db: Database, find: (hash: BlockHash) => BlockColumns | undefined): IndexReader["blocks"] {
  const page = (order: "ASC" | "DESC") =>
    prepareQuery<BlockColumns>(
      db,
      `SELECT ${blockColumns} FROM blocks WHERE height BETWEEN ? AND ? ORDER BY height ${order} LIMIT ?`,
    );
  const pages = { asc: page("ASC"), desc: page("DESC") };
  return ({ hashes, height, order, afterHeight, limit }: BlocksPlan) => {
    assert((hashes?.length ?? 0) <= hashesMax, "a list of hashes is bounded");
    const first = Math.max(height?.min ?? 0, order === "asc" && afterHeight !== undefined ? afterHeight + 1 : 0);
    const last = Math.min(
      height?.max ?? Number.MAX_SAFE_INTEGER,
      order === "desc" && afterHeight !== undefined ? afterHeight - 1 : Number.MAX_SAFE_INTEGER,
    );
    const rows =
      hashes === undefined || hashes.length === 0
        ? pages[order].all(first, last, limit + 1)
        : [...new Set(hashes)]
            .flatMap((hash) => find(hash) ?? [])
            .filter((row) => row.height >= first && row.height <= last)
            .sort((a, b) => (order === "asc" ? a.height - b.height : b.height - a.height))
            .slice(0, limit + 1);
    return { rows: rows.slice(0, limit).map(pageBlock), hasNextPage: rows.length > limit };
  };
}

type SpanRow = Readonly<{
  high: number;
  format: 1 | 2;
  dataRoot: Uint8Array | null;
  start: string;
  end: string;
  id: Uint8Array;
}>;

type TransactionReads = Pick<
  ChainReads,
  "textAt" | "weaveSpanAt" | "transactionAt" | "transactionsOfBlock" | "dueMissing"
>;

function createTransactionReads(db: Database): TransactionReads {
  const text = prepareQuery<{ body: Uint8Array; dataAt: number | null }>(
    db,
    `SELECT body, data_at AS dataAt FROM transaction_texts WHERE n = ${placeSql()}`,
  );
  // Weave offsets may exceed 2^53, so SQLite returns them as text.
  const span = `SELECT ${highSql("t.n")} AS high, t.format, t.data_root AS dataRoot,
      CAST(t.weave_start AS TEXT) AS start, CAST(t.weave_end AS TEXT) AS end,
      coalesce((SELECT id FROM items i WHERE i.n = t.n), (SELECT id FROM duplicates d WHERE d.n = t.n)) AS id
    FROM transactions t`;
  const spanAt = prepareQuery<SpanRow>(db, `${span} WHERE t.n = ${placeSql("?", "0")} AND t.weave_end > t.weave_start`);
  const spanEndingAfter = prepareQuery<SpanRow>(db, `${span} WHERE t.weave_end > ? ORDER BY t.weave_end LIMIT 1`);
  const ofBlock = prepareQuery<
    Readonly<{ high: number; id: Uint8Array; format: 1 | 2; size: number; dataRoot: Uint8Array | null }>
  >(
    db,
    `SELECT ${highSql("t.n")} AS high, r.id, t.format, r.size, t.data_root AS dataRoot
     FROM transactions t JOIN (SELECT n, id, size FROM items UNION ALL SELECT n, id, size FROM duplicates) r
       ON r.n = t.n
     WHERE t.n >= ? AND t.n < ? ORDER BY t.n`,
  );
  const due = prepareQuery<Readonly<{ high: number; id: Uint8Array; attempts: number }>>(
    db,
    `SELECT ${highSql("n")} AS high, id, attempts FROM missing WHERE due_at <= ? ORDER BY due_at, n LIMIT ?`,
  );
  return {
    textAt: ({ high, low }) => {
      const row = text.get(high, low);
      return row === undefined ? undefined : { text: unpackText(row.body), dataAt: row.dataAt };
    },
    weaveSpanAt: (place) => spanOf(spanAt.get(placeHigh(place))),
    transactionAt: (weaveOffset) => {
      const found = spanOf(spanEndingAfter.get(weaveOffset));
      return found !== undefined && found.start <= weaveOffset ? found : undefined;
    },
    transactionsOfBlock: (height) =>
      ofBlock.all(packHeight(height), packHeight(height + 1)).map((row) => ({
        id: idFromBytes(row.id),
        txIndex: placeOfHalves(row.high, -1).txIndex,
        format: row.format,
        dataSize: row.size,
        dataRoot: textOfStored(row.dataRoot),
      })),
    dueMissing: (nowMs, limit): MissingRow[] =>
      due.all(nowMs, limit).map(({ high, id, attempts }) => ({
        place: placeOfHalves(high, -1),
        id: idFromBytes(id),
        attempts,
      })),
  };
}

function spanOf(row: SpanRow | undefined): WeaveSpan | undefined {
  if (row === undefined) return undefined;
  return {
    id: idFromBytes(row.id),
    place: placeOfHalves(row.high, -1),
    start: BigInt(row.start),
    end: BigInt(row.end),
    format: row.format,
    dataRoot: textOfStored(row.dataRoot),
  };
}

function readList(text: string): readonly string[] {
  const list: unknown = JSON.parse(text);
  assert(Array.isArray(list), "the verified fields of a block are a list");
  return list.map(String);
}

type ItemSpanRow = Readonly<{
  low: number;
  fine: number;
  id: Uint8Array;
  digest: Uint8Array | null;
  size: number;
  parent: number | null;
}>;

/** Creates the read of the items within a span of a root's data; blocking one of their ids blocks the span. */
export function createItemsWithin(db: Database): IndexReader["itemsWithin"] {
  const begun = prepareQuery<ItemSpanRow>(db, spansSql("?2", "?3", "ORDER BY low LIMIT ?4"));
  const lastUpTo = prepareQuery<ItemSpanRow>(db, spansSql("1", "?2", "ORDER BY low DESC LIMIT 1"));
  const at = prepareQuery<ItemSpanRow>(db, spansSql("?2", "?2", "LIMIT 1"));

  return (root, start, end, limit) => {
    const high = placeHigh(root);
    const found = new Map<number, ItemSpan>();
    const add = (row: ItemSpanRow): void => {
      const span = itemSpanOf(row);
      const overlaps = span.start < end && span.end > start;
      if (overlaps && found.get(span.start)?.digest === undefined) found.set(span.start, span);
    };
    const firstStep = stepOf(start);
    let before = lastUpTo.get(high, firstStep - 1);
    while (before !== undefined) {
      add(before);
      before = before.parent === null ? undefined : at.get(high, stepOf(before.parent));
    }
    const last = stepOf(Math.max(start, end - 1));
    for (const row of begun.all(high, firstStep, last, limit)) add(row);
    return [...found.values()].sort((a, b) => a.start - b.start).slice(0, limit);
  };
}

/** Selects from all tables with items, by lower halves of the place, both inclusive; ?1 is the upper half. */
function spansSql(first: string, last: string, rest: string): string {
  const range = `n BETWEEN ${placeSql("?1", first)} AND ${placeSql("?1", last)}`;
  const columns = `${lowSql("n")} AS low, fine, id, head + size AS size, parent`;
  const tables = [
    `SELECT ${columns}, digest FROM items WHERE sig > 0 AND ${range}`,
    `SELECT ${columns}, digest FROM duplicates WHERE sig > 0 AND ${range}`,
    `SELECT ${columns}, digest FROM pruned_items WHERE ${range}`,
    `SELECT ${columns}, NULL AS digest FROM bundles WHERE depth > 0 AND ${range}`,
  ];
  return `SELECT * FROM (${tables.join(" UNION ALL ")}) ${rest}`;
}

function itemSpanOf({ low, fine, id, digest, size }: ItemSpanRow): ItemSpan {
  const start = offsetOfRow({ low, fine });
  return { id: idFromBytes(id), start, end: start + size, ...(digest === null ? {} : { digest }) };
}

/** The reader's calls for ids. */
export type Locations = Pick<IndexReader, "locate" | "placeOf" | "placesOf" | "ownerKey">;

type PlaceRow = Readonly<{ high: number; low: number; fine: number }>;

type LocatedRow = PlaceRow &
  Readonly<{
    sig: number;
    head: number;
    size: number;
    parent: number | null;
    /** Null for a pruned row. */
    tags: Uint8Array | null;
    /** For a pruned row: JSON of Content-Type and Content-Encoding. */
    type: string | null;
    digest: Uint8Array | null;
    trusted: number;
    address: Uint8Array;
    tip: number | null;
    format: 1 | 2 | null;
    dataRoot: Uint8Array | null;
    weaveStart: string | null;
  }>;

type RootRow = Readonly<{ id: Uint8Array; size: number }>;
type ParentRow = Readonly<{ id: Uint8Array; head: number }>;

/** Joins the transaction at the row's place or, for an item, at its root. */
const locatedSql = (own: string, from: string): string => `SELECT ${halvesSql("i.n")},
    i.fine, i.sig, i.head, i.size, i.parent, i.digest, ${own}, o.address,
    (SELECT height FROM blocks WHERE followed = 1 ORDER BY height DESC LIMIT 1) AS tip,
    t.format, t.data_root AS dataRoot, CAST(t.weave_start AS TEXT) AS weaveStart
  FROM ${from} JOIN owners o USING (owner)
    LEFT JOIN transactions t ON t.n = CASE WHEN i.sig < 0 THEN i.n ELSE ${rootSql("i.n")} END`;

const rowSql = `${locatedSql("i.tags, NULL AS type, i.trusted", "items i")} WHERE i.n = ${placeSql()}`;

const prunedSql = `${locatedSql(
  "NULL AS tags, (SELECT text FROM content_types c WHERE c.type = i.type) AS type, 0 AS trusted",
  "pruned_items i",
)} WHERE substr(i.id, 1, 8) = substr(?1, 1, 8) AND i.id = ?1 ORDER BY i.n LIMIT 1`;

export function createLocations(db: Database, ids: IdPlaces): Locations {
  const located = prepareQuery<LocatedRow>(db, rowSql);
  const pruned = prepareQuery<LocatedRow>(db, prunedSql);
  const fineAt = prepareQuery<{ fine: number }>(db, `SELECT fine FROM items WHERE n = ${placeSql()}`);
  const others = prepareQuery<PlaceRow>(db, `SELECT ${halvesSql("n")}, fine FROM duplicates WHERE id = ? ORDER BY n`);
  const at = <Row>(columns: string, tables: readonly string[]) =>
    prepareQuery<Row>(
      db,
      tables.map((table) => `SELECT ${columns} FROM ${table} WHERE n = ${placeSql("?1", "?2")}`).join(" UNION ALL "),
    );
  const rootAt = at<RootRow>("id, size", ["items", "duplicates"]);
  const parentAt = at<ParentRow>("id, head", ["items", "duplicates", "bundles"]);

  const placeOf = (id: Uint8Array): Place | undefined => {
    const halves = ids.find(id);
    if (halves === undefined) return undefined;
    const row = fineAt.get(halves.high, halves.low);
    return row === undefined ? undefined : placeOfRow({ ...halves, ...row });
  };
  const owner = prepareQuery<{ key: Uint8Array }>(db, "SELECT key FROM owners WHERE address = ?");

  return {
    ownerKey: (address) => {
      const found = owner.get(idBytes(address));
      return found === undefined ? undefined : encodeBase64url(found.key);
    },
    placeOf: (id) => inSnapshot(db, () => placeOf(idBytes(id))),
    placesOf: (id) => {
      const bytes = idBytes(id);
      const first = placeOf(bytes);
      return [...(first === undefined ? [] : [first]), ...others.all(bytes).map(placeOfRow)];
    },
    locate: (id) => {
      const bytes = idBytes(id);
      const halves = ids.find(bytes);
      const found = halves === undefined ? undefined : located.get(halves.high, halves.low);
      // A pruned item that was announced or uploaded again is still located in its block.
      const isElsewhere = found === undefined || (found.sig > 0 && isPending(found));
      const row = isElsewhere ? (pruned.get(bytes) ?? found) : found;
      if (row === undefined) return undefined;
      if (row.sig < 0 || isPending(row)) return locatedAlone(id, row);
      const root = rootAt.get(row.high, 0);
      const parent = row.parent === null ? undefined : parentAt.get(row.high, stepOf(row.parent));
      return locatedWithin(id, row, root, parent);
    },
  };
}

function isPending({ high }: Readonly<{ high: number }>): boolean {
  return high >= placeHigh({ height: pendingHeight, txIndex: 0, offset: -1 });
}

type Common = Omit<Located, "kind" | "rootId" | "dataOffset" | "itemOffset" | "rootSize">;

function common(id: Id, row: LocatedRow): Common {
  const place = placeOfRow(row);
  const [contentType, contentEncoding] = contentTagsOf(row);
  return {
    id,
    place,
    size: row.size,
    headerSize: row.head,
    signatureType: row.sig,
    ownerAddress: addressFromBytes(row.address),
    ...(contentType === undefined ? {} : { contentType }),
    ...(contentEncoding === undefined ? {} : { contentEncoding }),
    ...(row.digest === null ? {} : { digest: row.digest }),
    verified: row.trusted === 0,
    stable: row.tip !== null && place.height <= row.tip - stableDepth,
    pending: isPending(row),
    ...(row.format === null ? {} : { rootFormat: row.format }),
    dataRoot: textOfStored(row.dataRoot),
    ...(row.weaveStart === null ? {} : { weaveStart: BigInt(row.weaveStart) }),
  };
}

/** The location of a transaction, or of a pending item, which has no root yet. */
function locatedAlone(id: Id, row: LocatedRow): Located {
  return {
    ...common(id, row),
    kind: row.sig < 0 ? "transaction" : "item",
    rootId: id,
    dataOffset: 0,
    itemOffset: 0,
    rootSize: row.size,
  };
}

function locatedWithin(id: Id, row: LocatedRow, root: RootRow | undefined, parent: ParentRow | undefined): Located {
  const itemOffset = offsetOfRow(row);
  const parentId = row.parent === null ? root?.id : parent?.id;
  return {
    ...common(id, row),
    kind: "item",
    rootId: root === undefined ? id : idFromBytes(root.id),
    dataOffset: itemOffset + row.head,
    itemOffset,
    rootSize: root?.size ?? 0,
    ...(parentId === undefined ? {} : { parentId: idFromBytes(parentId) }),
    // Of a nested item whose bundle is unknown, the root counts as the bundle.
    parentStart: row.parent === null || parent === undefined ? 0 : row.parent + parent.head,
  };
}

function contentTagsOf({ tags, type }: LocatedRow): readonly (string | undefined)[] {
  return tags === null ? readContentTags(type) : contentTags(decodeTagBlob(tags));
}
