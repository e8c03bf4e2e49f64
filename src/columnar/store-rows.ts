/**
 * Rows of a columnar store by the filters of a page, in place order.
 *
 * Candidates are places from `postings`, of which several groups of keys are intersected; their rows are then read from
 * `transactions` and `tags` and checked, because keys are hashes. Heights are read in windows that grow as the
 * candidates found so far require: a frequent tag ends in the first window, and a rare one needs few of them. The SQL
 * is what DuckDB and ClickHouse share.
 * Source: docs/reference/columnar.md.
 * @module
 */
import { type Address, addressKey, blockHashFromBytes, idBytes, idFromBytes, isAddress } from "../arweave/id.ts";
import type { Tag } from "../arweave/tags.ts";
import { assert } from "../lib/assert.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import type { PageBlock, PageColumns, PagePlan, PageRow } from "../store/index/index-types.ts";
import { type CheckedValues, createRowCheck, type PlaceBounds } from "../store/index/pages/page-plan.ts";
import { heightOfPacked, isPackedItem, packHeight, placeOfPacked } from "../store/index/place.ts";
import { addressFromBytes, textOfStored } from "../store/index/rows/stored-row.ts";
import type { ColumnStore } from "./column-store.ts";
import type { PartitionHeights } from "./partition.ts";
import { createPostingKeys, type PostingKeys } from "./posting-list.ts";

/** The context of rows that the store does not have. */
export type RowContext = Readonly<{
  /** Whether queries list a row of the store. */
  isListed: (row: PageRow) => boolean;
  /** Undefined for a block that the index does not have: those of imported heights. */
  block: (height: number) => PageBlock | undefined;
  /** An owner's public key, base64url; undefined when unknown. */
  ownerKey: (address: Address) => string | undefined;
}>;

/** A query of at most `limit` rows within the bounds, in the order of the plan. */
export type StoreQuery = Readonly<{
  plan: PagePlan;
  bounds: PlaceBounds;
  /** The heights that may be read, in order. */
  heights: readonly PartitionHeights[];
  limit: number;
}>;

/** Finds rows of a store. Rejects with the store's error, or the signal's reason. */
export type FindRows = (query: StoreQuery, signal: AbortSignal) => Promise<PageRow[]>;

/** A window is somewhat larger than the density of candidates requires, so that it is more often the last one. */
const windowReserve = 1.3;

/** Windows of a page of few rows grow by so much at least. */
const windowGrowthMin = 8;

/** The first window is this part of the newest partition: a frequent key has all rows of a page there. */
const firstWindowShare = 32;

/** Candidates of one statement: a page at first, more while they do not match. */
const candidatesMax = 1_024;

/** Creates the search over one store. */
export function createFindRows(store: ColumnStore, context: RowContext): FindRows {
  const keys = createPostingKeys();
  return async ({ plan, bounds, heights, limit }, signal) => {
    const groups = groupsOf(plan, keys);
    if (limit <= 0 || plan.bundledIn === null || groups.some((group) => group.length === 0)) return [];
    const isMatch = createMatch(plan);
    const columns = columnsOf(plan);
    const rows: PageRow[] = [];
    const places: bigint[] = [];
    const missing = () => limit - rows.length - places.length;
    const readAll = async (): Promise<void> => {
      const found = await readRows(store, places.splice(0), { heights, columns, context, signal });
      rows.push(...found.filter((row) => isMatch(row) && context.isListed(row)));
    };
    for await (const found of candidates(store, { plan, groups, bounds, heights, missing }, signal)) {
      places.push(...found);
      // The rows of all windows are read together: each statement has a cost of its own.
      if (missing() <= 0) await readAll();
      if (missing() <= 0) break;
    }
    await readAll();
    return rows.slice(0, limit);
  };
}

/** The columns that a plan selects or filters. */
function columnsOf({ columns, recipients, tags, ingestedAt, bundledIn }: PagePlan): PageColumns {
  const isGiven = (list: readonly unknown[] | null | undefined) => (list ?? []).length > 0;
  return {
    ...columns,
    tags: columns.tags || isGiven(tags),
    target: columns.target || isGiven(recipients),
    parent: columns.parent || isGiven(bundledIn),
    ingestedAt: columns.ingestedAt || ingestedAt !== undefined,
  };
}

const checkedValues: CheckedValues<PageRow> = {
  id: ({ id }) => id,
  ownerAddress: ({ ownerAddress }) => ownerAddress,
  target: ({ target }) => target,
  tags: ({ tags }) => tags,
  isTransaction: ({ kind }) => kind === "transaction",
  ingestedAt: ({ ingestedAt }) => ingestedAt,
};

/** Returns a test of all filters of a plan, for rows of the store. */
function createMatch(plan: PagePlan): (row: PageRow) => boolean {
  const check = createRowCheck(plan, checkedValues);
  const parents = plan.bundledIn ?? [];
  if (parents.length === 0) return check;
  return (row) => check(row) && row.parentId !== undefined && parents.includes(row.parentId);
}

type CandidateQuery = Readonly<{
  plan: PagePlan;
  groups: readonly (readonly number[])[];
  bounds: PlaceBounds;
  heights: readonly PartitionHeights[];
  /** Candidates that the page still lacks. */
  missing: () => number;
}>;

/** Places that may match, in the order of the plan, in lists that may be empty. */
async function* candidates(
  store: ColumnStore,
  query: CandidateQuery,
  signal: AbortSignal,
): AsyncGenerator<readonly bigint[]> {
  const { plan, bounds, missing } = query;
  const walk = createHeightWalk(query.heights, bounds, plan.order);
  let { groups } = query;
  let found = 0;
  let isOrdered = groups.length < 2;
  let leastSize = 1;
  for (let window = walk.take(walk.firstSize()); window.length > 0; ) {
    if (!isOrdered) {
      const counts = await countKeys(store, groups, window, signal);
      // Without any posting, the window costs little in any order, and the next one is counted.
      isOrdered = counts.size > 0;
      groups = frequentFirst(groups, counts);
    }
    for await (const places of batchesOf(store, { plan, groups, bounds, window, limit: missing() }, signal)) {
      found += places.length;
      yield places;
    }
    const growth = (missing() / Math.max(1, found)) * windowReserve;
    const wanted = Math.ceil(walk.taken() * (found === 0 ? Math.max(windowGrowthMin, growth) : growth));
    const size = Math.max(leastSize, wanted);
    // A page that lacks only its last row, which may not exist, must not be searched height by height.
    leastSize = 2 * size;
    window = walk.take(size);
  }
}

/** The candidates of a window in batches; while rows do not match, the batches grow. */
async function* batchesOf(store: ColumnStore, query: PlaceQuery, signal: AbortSignal): AsyncGenerator<bigint[]> {
  const { plan } = query;
  let { bounds, limit } = query;
  for (;;) {
    plan.checkpoint?.();
    const places = await readPlaces(store, { ...query, bounds, limit }, signal);
    yield places.filter(isPackedItem);
    const last = places.at(-1);
    if (last === undefined || places.length < limit) return;
    bounds = plan.order === "asc" ? { ...bounds, first: last + 1n } : { ...bounds, last: last - 1n };
    limit = Math.min(limit * 2, candidatesMax);
  }
}

/** The posting keys of each filter: a row must be in each group. */
function groupsOf({ ids, owners, recipients, tags, bundledIn }: PagePlan, keys: PostingKeys): number[][] {
  const groups: number[][] = [];
  const add = <Value>(list: readonly Value[] | null | undefined, key: (value: Value) => number | undefined): void => {
    if (list === null || list === undefined || list.length === 0) return;
    groups.push([...new Set(list.flatMap((value) => key(value) ?? []))]);
  };
  add(ids, (id) => keys.id(idBytes(id)));
  add(owners, (owner) => keys.owner(idBytes(owner)));
  add(recipients, (recipient) => (isAddress(recipient) ? keys.recipient(addressKey(recipient)) : undefined));
  add(bundledIn, (id) => keys.parent(idBytes(id)));
  for (const { name, values, op } of tags ?? []) {
    if (op === "EQ") groups.push([...new Set(values.map((value) => keys.tag(name, value)))]);
  }
  return groups;
}

/** Takes heights of partitions in the order of a page. */
type HeightWalk = Readonly<{
  /** Returns the next heights, at most `count`; none at the end. */
  take: (count: number) => readonly PartitionHeights[];
  /** Heights that were taken. */
  taken: () => number;
  firstSize: () => number;
}>;

function createHeightWalk(
  heights: readonly PartitionHeights[],
  { first, last }: PlaceBounds,
  order: PagePlan["order"],
): HeightWalk {
  const lowest = heightOfPacked(first);
  const highest = heightOfPacked(last);
  const left = heights
    .map(({ start, end }) => ({ start: Math.max(start, lowest), end: Math.min(end, highest) }))
    .filter(({ start, end }) => start <= end);
  if (order === "desc") left.reverse();
  let taken = 0;
  const takeOne = (count: number): PartitionHeights | undefined => {
    const [next] = left;
    if (next === undefined || count <= 0) return undefined;
    const size = Math.min(count, next.end - next.start + 1);
    const part =
      order === "asc"
        ? { start: next.start, end: next.start + size - 1 }
        : { start: next.end - size + 1, end: next.end };
    const rest = order === "asc" ? { start: part.end + 1, end: next.end } : { start: next.start, end: part.start - 1 };
    left.splice(0, 1, ...(rest.start > rest.end ? [] : [rest]));
    taken += size;
    return part;
  };
  return {
    take: (count) => {
      const parts: PartitionHeights[] = [];
      const end = taken + count;
      for (let part = takeOne(count); part !== undefined; part = takeOne(end - taken)) parts.push(part);
      return parts;
    },
    taken: () => taken,
    firstSize: () => Math.ceil(((left[0]?.end ?? 0) - (left[0]?.start ?? 0) + 1) / firstWindowShare),
  };
}

/** The postings of each key in a window. */
async function countKeys(
  store: ColumnStore,
  groups: readonly (readonly number[])[],
  window: readonly PartitionHeights[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, number>> {
  const range = rangeSql(window, { first: 0n, last: 2n ** 63n - 1n });
  const counted = await store.select(
    `SELECT key, count(*) FROM ${store.from("postings", window)}
     WHERE key IN (${groups.flat().join(", ")}) AND ${range} GROUP BY key`,
    signal,
  );
  return new Map(counted.map(([key, count]) => [Number(key), Number(count)]));
}

/**
 * The groups by their postings, most first: the innermost of nested statements should be the rarest, because the store
 * holds the places of each inner statement in memory.
 */
function frequentFirst(
  groups: readonly (readonly number[])[],
  counts: ReadonlyMap<number, number>,
): readonly (readonly number[])[] {
  const countOf = (group: readonly number[]) => group.reduce((sum, key) => sum + (counts.get(key) ?? 0), 0);
  return groups.toSorted((a, b) => countOf(b) - countOf(a));
}

type PlaceQuery = Readonly<{
  plan: PagePlan;
  groups: readonly (readonly number[])[];
  bounds: PlaceBounds;
  window: readonly PartitionHeights[];
  limit: number;
}>;

async function readPlaces(store: ColumnStore, query: PlaceQuery, signal: AbortSignal): Promise<bigint[]> {
  const { plan, groups, bounds, window, limit } = query;
  const range = rangeSql(window, bounds);
  if (range === undefined) return [];
  const postings = store.from("postings", window);
  const source =
    groups.length === 0
      ? itemsSql(store, plan, window, range)
      : groups.reduceRight((inner, group) => {
          const test = inner === "" ? "" : ` AND place IN (${inner})`;
          return `SELECT place FROM ${postings} WHERE key IN (${group.join(", ")}) AND ${range}${test}`;
        }, "");
  const direction = plan.order === "asc" ? "ASC" : "DESC";
  // A row may have several keys of a group.
  const distinct = (groups[0]?.length ?? 0) > 1 ? " GROUP BY place" : "";
  const rows = await store.select(`${source}${distinct} ORDER BY place ${direction} LIMIT ${limit}`, signal);
  return rows.map(([place]) => BigInt(place ?? 0));
}

/** Without keys: all items. */
function itemsSql(
  store: ColumnStore,
  { ingestedAt }: PagePlan,
  window: readonly PartitionHeights[],
  range: string,
): string {
  const tests = [
    "is_data_item",
    range,
    ...(ingestedAt?.min === undefined ? [] : [`indexed_at >= ${Math.max(0, ingestedAt.min)}`]),
    ...(ingestedAt?.max === undefined ? [] : [`indexed_at <= ${Math.max(0, ingestedAt.max)}`]),
  ];
  return `SELECT place FROM ${store.from("transactions", window)} WHERE ${tests.join(" AND ")}`;
}

/** The places of partitions within the bounds; adjacent partitions are one range. Undefined when there are none. */
function rangeSql(window: readonly PartitionHeights[], bounds: PlaceBounds): string | undefined {
  const ranges: { first: bigint; last: bigint }[] = [];
  for (const { start, end } of window.toSorted((a, b) => a.start - b.start)) {
    const first = greater(packHeight(start), bounds.first);
    const last = lesser(packHeight(end + 1) - 1n, bounds.last);
    if (first > last) continue;
    const before = ranges.at(-1);
    if (before !== undefined && before.last + 1n === first) before.last = last;
    else ranges.push({ first, last });
  }
  if (ranges.length === 0) return undefined;
  return `(${ranges.map(({ first, last }) => `place BETWEEN ${first} AND ${last}`).join(" OR ")})`;
}

function lesser(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

function greater(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

/** Columns of `transactions` that a page may need, and the SQL of each. Each column of scattered rows costs its own. */
const rowColumns = {
  dataOffset: "data_offset",
  size: "data_size",
  signatureType: "signature_type",
  ingestedAt: "indexed_at",
  ownerKey: "hex(owner)",
  target: "hex(target)",
  anchor: "hex(anchor)",
  parent: "hex(parent)",
} as const;

type RowColumn = keyof typeof rowColumns;

const sharedColumns = ["place", "root_parent_offset", '"offset"', "hex(id)", "hex(owner_address)"];

function rowColumnsOf(columns: PageColumns): readonly RowColumn[] {
  const { signature, ...same } = columns;
  const wanted = { ...same, dataOffset: signature, signatureType: signature };
  return (Object.keys(rowColumns) as RowColumn[]).filter((name) => wanted[name]);
}

type RowReading = Readonly<{
  heights: readonly PartitionHeights[];
  columns: PageColumns;
  context: RowContext;
  signal: AbortSignal;
}>;

/** Reads the data items at places, with their tags, in the order of the places. */
async function readRows(
  store: ColumnStore,
  places: readonly bigint[],
  { heights, columns, context, signal }: RowReading,
): Promise<PageRow[]> {
  if (places.length === 0) return [];
  const partitions = heights.filter(({ start, end }) =>
    places.some((place) => place >= packHeight(start) && place < packHeight(end + 1)),
  );
  const names = rowColumnsOf(columns);
  const at = `place IN (${places.join(", ")})`;
  const sql = [...sharedColumns, ...names.map((name) => rowColumns[name])];
  const blockHeights = columns.block ? [...new Set(places.map((place) => heightOfPacked(place)))] : [];
  const [rows, tagsAt, blockAt] = await Promise.all([
    store.select(`SELECT ${sql.join(", ")} FROM ${store.from("transactions", partitions)} WHERE ${at}`, signal),
    columns.tags ? readTags(store, at, partitions, signal) : new Map<string, Tag[]>(),
    readBlocks(store, blockHeights, partitions, { context, signal }),
  ]);
  const byPlace = new Map(rows.map((row) => [row[0] ?? "", row]));
  return places.flatMap((place) => {
    const row = byPlace.get(place.toString());
    if (row === undefined) return [];
    const [, parentStart, offset, id, owner, ...values] = row;
    const valueAt = new Map(names.map((name, index) => [name, values[index] ?? null]));
    const about = {
      id: idFromBytes(bytesOfHex(id ?? "")),
      ownerAddress: addressFromBytes(bytesOfHex(owner ?? "")),
      place: placeOfPacked(place, Number(parentStart) + Number(offset)),
      offset: Number(offset),
      tags: tagsAt.get(place.toString()) ?? [],
      block: blockAt.get(heightOfPacked(place)),
    };
    return [pageRow(about, (name) => valueAt.get(name) ?? null, context)];
  });
}

/** The tags of rows by their places, in the order of the tags. */
async function readTags(
  store: ColumnStore,
  at: string,
  partitions: readonly PartitionHeights[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Tag[]>> {
  const tags = await store.select(
    `SELECT place, hex(tag_name), hex(tag_value) FROM ${store.from("tags", partitions)} WHERE ${at}
     ORDER BY place, tag_index`,
    signal,
  );
  const tagsAt = new Map<string, Tag[]>();
  for (const [place, name = "", value = ""] of tags) {
    const tag = { name: textOfHex(name), value: textOfHex(value) };
    const known = tagsAt.get(place ?? "");
    if (known === undefined) tagsAt.set(place ?? "", [tag]);
    else known.push(tag);
  }
  return tagsAt;
}

/** The blocks of rows: from the index, else from the store. */
async function readBlocks(
  store: ColumnStore,
  heights: readonly number[],
  partitions: readonly PartitionHeights[],
  { context, signal }: Readonly<{ context: RowContext; signal: AbortSignal }>,
): Promise<ReadonlyMap<number, PageBlock>> {
  const known = new Map(heights.flatMap((height) => [[height, context.block(height)] as const]));
  const unknown = heights.filter((height) => known.get(height) === undefined);
  const rows =
    unknown.length === 0
      ? []
      : await store.select(
          `SELECT height, block_timestamp, hex(indep_hash), hex(previous_block)
           FROM ${store.from("blocks", partitions)} WHERE height IN (${unknown.join(", ")})`,
          signal,
        );
  for (const [height = null, timestamp = null, hash = null, previous = null] of rows) {
    assert(hash !== null, "a block has a hash");
    known.set(Number(height), {
      height: Number(height),
      timestamp: Number(timestamp),
      hash: blockHashFromBytes(bytesOfHex(hash)),
      previous: previous === null ? "" : blockHashFromBytes(bytesOfHex(previous)),
    });
  }
  return new Map([...known].flatMap(([height, block]) => (block === undefined ? [] : [[height, block] as const])));
}

/** @param valueAt - The value of a column; null when it was not selected. */
function pageRow(
  {
    offset,
    ...about
  }: Pick<PageRow, "id" | "ownerAddress" | "place" | "tags" | "block"> & Readonly<{ offset: number }>,
  valueAt: (name: RowColumn) => string | null,
  context: RowContext,
): PageRow {
  const bytesAt = (name: RowColumn) => {
    const text = valueAt(name);
    return text === null ? null : bytesOfHex(text);
  };
  const key = bytesAt("ownerKey");
  const parent = bytesAt("parent");
  const dataOffset = valueAt("dataOffset");
  return {
    kind: "item",
    ...about,
    ownerKey: key === null ? (context.ownerKey(about.ownerAddress) ?? "") : encodeBase64url(key),
    target: textOfStored(bytesAt("target")),
    anchor: textOfStored(bytesAt("anchor")),
    signatureType: Number(valueAt("signatureType")),
    size: Number(valueAt("size")),
    headerSize: dataOffset === null ? 0 : Number(dataOffset) - offset,
    quantity: 0n,
    reward: 0n,
    format: 2,
    parentId: parent === null ? undefined : idFromBytes(parent),
    ingestedAt: Number(valueAt("ingestedAt")),
  };
}

function bytesOfHex(text: string): Uint8Array {
  return Buffer.from(text, "hex");
}

function textOfHex(text: string | null): string {
  return Buffer.from(text ?? "", "hex").toString();
}
