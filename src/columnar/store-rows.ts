/**
 * Rows of a columnar store by the filters of a page, in place order.
 *
 * Candidates are places from `postings`, of which several groups of keys are intersected; their rows are then read from
 * `transactions` and `tags` and checked, because keys are hashes. Partitions are read in windows that grow: a frequent
 * tag ends in the first window, and a rare one needs few of them. The SQL is what DuckDB and ClickHouse share.
 * Source: docs/reference/columnar.md.
 * @module
 */
import { type Address, addressKey, blockHashFromBytes, idBytes, idFromBytes, isAddress } from "../arweave/id.ts";
import type { Tag } from "../arweave/tags.ts";
import { assert } from "../lib/assert.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import type { PageBlock, PagePlan, PageRow } from "../store/index/index-types.ts";
import { createRowCheck, type PlaceBounds } from "../store/index/page-plan.ts";
import { packHeight, placeOfPacked } from "../store/index/place.ts";
import { addressFromBytes, textOfStored } from "../store/index/stored-row.ts";
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

/** What to find: at most `limit` rows within the bounds, in the order of the plan. */
export type StoreQuery = Readonly<{
  plan: PagePlan;
  bounds: PlaceBounds;
  /** The heights that may be read, in order. */
  heights: readonly PartitionHeights[];
  limit: number;
}>;

/** Finds rows of a store. Rejects with the store's error, or the signal's reason. */
export type FindRows = (query: StoreQuery, signal: AbortSignal) => Promise<PageRow[]>;

/** Partitions of the first window; each later one has as many times more. */
const windowGrowth = 8;

/** Candidates of one statement: a page at first, more while they do not match. */
const candidatesMax = 1_024;

/** Creates the search over one store. */
export function createFindRows(store: ColumnStore, context: RowContext): FindRows {
  const keys = createPostingKeys();
  return async ({ plan, bounds, heights, limit }, signal) => {
    let groups = groupsOf(plan, keys);
    if (limit <= 0 || plan.bundledIn === null || groups.some((group) => group.length === 0)) return [];
    const isMatch = createMatch(plan);
    const rows: PageRow[] = [];
    let isOrdered = groups.length < 2;
    for (const window of windowsOf(heights, bounds, plan.order)) {
      if (!isOrdered) groups = await frequentFirst(store, groups, window, signal);
      isOrdered = true;
      for await (const places of batchesOf(
        store,
        { plan, groups, bounds, window, limit: limit - rows.length },
        signal,
      )) {
        const found = await readRows(store, places, window, context, signal);
        rows.push(...found.filter((row) => isMatch(row) && context.isListed(row)));
        if (rows.length >= limit) return rows.slice(0, limit);
      }
    }
    return rows;
  };
}

/** Returns a test of all filters of a plan, for rows of the store. */
function createMatch(plan: PagePlan): (row: PageRow) => boolean {
  const check = createRowCheck(plan);
  const parents = plan.bundledIn ?? [];
  if (parents.length === 0) return check;
  return (row) => check(row) && row.parentId !== undefined && parents.includes(row.parentId);
}

/** The candidates of a window in batches; while rows do not match, the batches grow. */
async function* batchesOf(store: ColumnStore, query: PlaceQuery, signal: AbortSignal): AsyncGenerator<bigint[]> {
  const { plan } = query;
  let { bounds, limit } = query;
  for (;;) {
    plan.checkpoint?.();
    const places = await readPlaces(store, { ...query, bounds, limit }, signal);
    yield places;
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

/** The partitions within the bounds, in the order of the walk, in windows that grow. */
function* windowsOf(
  heights: readonly PartitionHeights[],
  { first, last }: PlaceBounds,
  order: PagePlan["order"],
): Generator<readonly PartitionHeights[]> {
  const within = heights.filter(({ start, end }) => packHeight(start) <= last && packHeight(end + 1) > first);
  const ordered = order === "asc" ? within : within.toReversed();
  let size = 1;
  for (let at = 0; at < ordered.length; at += size, size *= windowGrowth) yield ordered.slice(at, at + size);
}

/**
 * The groups by the postings that they have in one window, most first: the innermost of nested statements should be the
 * rarest, because the store holds the places of each inner statement in memory.
 */
async function frequentFirst(
  store: ColumnStore,
  groups: number[][],
  window: readonly PartitionHeights[],
  signal: AbortSignal,
): Promise<number[][]> {
  const all = groups.flat().join(", ");
  const counted = await store.select(
    `SELECT key, count(*) FROM ${store.from("postings", window)} WHERE key IN (${all}) GROUP BY key`,
    signal,
  );
  const counts = new Map(counted.map(([key, count]) => [Number(key), Number(count)]));
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

const rowSql = `place, height, root_parent_offset, "offset", data_offset, data_size, signature_type, indexed_at,
  hex(id), hex(owner_address), hex(owner), hex(target), hex(anchor), hex(parent)`;

/** Reads the data items at places, with their tags, in the order of the places. */
async function readRows(
  store: ColumnStore,
  places: readonly bigint[],
  window: readonly PartitionHeights[],
  context: RowContext,
  signal: AbortSignal,
): Promise<PageRow[]> {
  if (places.length === 0) return [];
  const partitions = window.filter(({ start, end }) =>
    places.some((place) => place >= packHeight(start) && place < packHeight(end + 1)),
  );
  const at = `place IN (${places.join(", ")})`;
  const [rows, tags] = await Promise.all([
    store.select(
      `SELECT ${rowSql} FROM ${store.from("transactions", partitions)} WHERE is_data_item AND ${at}`,
      signal,
    ),
    store.select(
      `SELECT place, hex(tag_name), hex(tag_value) FROM ${store.from("tags", partitions)} WHERE ${at}
       ORDER BY place, tag_index`,
      signal,
    ),
  ]);
  const tagsAt = new Map<string, Tag[]>();
  for (const [place = "", name = "", value = ""] of tags) {
    const tag = { name: textOfHex(name), value: textOfHex(value) };
    const known = tagsAt.get(place ?? "");
    if (known === undefined) tagsAt.set(place ?? "", [tag]);
    else known.push(tag);
  }
  const byPlace = new Map(rows.map((row) => [row[0] ?? "", row]));
  const heights = [...new Set(rows.map((row) => Number(row[1])))];
  const blockAt = await readBlocks(store, heights, partitions, { context, signal });
  return places.flatMap((place) => {
    const row = byPlace.get(place.toString());
    return row === undefined
      ? []
      : [pageRow(row, tagsAt.get(place.toString()) ?? [], { ...context, block: (height) => blockAt.get(height) })];
  });
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
    const bytes = bytesOfHex(hash);
    const before = bytesOfHex(previous);
    assert(bytes !== null, "a block has a hash");
    known.set(Number(height), {
      height: Number(height),
      timestamp: Number(timestamp),
      hash: blockHashFromBytes(bytes),
      previous: before === null ? "" : blockHashFromBytes(before),
    });
  }
  return new Map([...known].flatMap(([height, block]) => (block === undefined ? [] : [[height, block] as const])));
}

function pageRow(values: readonly (string | null)[], tags: readonly Tag[], context: RowContext): PageRow {
  const [place, height, parentStart, offset, dataOffset, size, signatureType, ingestedAt, ...names] = values;
  const [id, owner, key, target, anchor, parent] = names.map(bytesOfHex);
  assert(id != null && owner != null && parent != null, "a data item has an id, an owner and a parent");
  const ownerAddress = addressFromBytes(owner);
  return {
    kind: "item",
    place: placeOfPacked(BigInt(place ?? 0), Number(parentStart) + Number(offset)),
    id: idFromBytes(id),
    ownerAddress,
    ownerKey: key == null ? (context.ownerKey(ownerAddress) ?? "") : encodeBase64url(key),
    target: textOfStored(target ?? null),
    anchor: textOfStored(anchor ?? null),
    signatureType: Number(signatureType),
    size: Number(size),
    headerSize: Number(dataOffset) - Number(offset),
    tags,
    quantity: 0n,
    reward: 0n,
    format: 2,
    parentId: idFromBytes(parent),
    block: context.block(Number(height)),
    ingestedAt: Number(ingestedAt),
  };
}

function bytesOfHex(text: string | null): Uint8Array | null {
  return text === null ? null : Buffer.from(text, "hex");
}

function textOfHex(text: string | null): string {
  return Buffer.from(text ?? "", "hex").toString();
}
