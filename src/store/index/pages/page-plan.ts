/**
 * Plans the walk of a page: ranges of places, groups of keys, and the checks of each row.
 *
 * A group has the keys of one filter, of which a row must have at least one. A page has the rows that are in all
 * groups, have none of the excluded keys, and are in one of the ranges. Keys are hashes, so each row is also checked
 * against the filters.
 * @module
 */
import type { Database } from "bun:sqlite";
import {
  addressFromBytes,
  addressKey,
  addressOfKey,
  type Id,
  idBytes,
  idFromBytes,
  isAddress,
} from "../../../arweave/id.ts";
import type { Tag } from "../../../arweave/tags.ts";
import { prepareQuery } from "../../sqlite.ts";
import type { FilterKeys } from "../filter-key.ts";
import type { IdPlaces } from "../id-places.ts";
import type { PagePlan, TagPlan } from "../index-types.ts";
import { heightOfHigh, offsetOfRow, packHalves, packHeight, packPlace, pendingHeight, stepOf } from "../place.ts";
import { halvesSql, offsetSql, placeSql } from "../place-sql.ts";
import type { ItemColumns } from "../rows/row-reads.ts";
import { decodeTagBlob } from "../rows/tag-blob.ts";

/** A range of packed places, both inclusive, and the parents of its rows. */
export type PlaceRange = Readonly<{
  first: bigint;
  last: bigint;
  /** Offsets of the parents' headers, −1 for the transaction itself; undefined: any row. */
  parents: readonly number[] | undefined;
}>;

/** A plan in the form of ranges and keys. */
export type Walk = Readonly<{
  /** In the order of the walk, disjoint. */
  ranges: readonly PlaceRange[];
  /** Keys of ids; undefined: any id. */
  ids: readonly number[] | undefined;
  /** Keys of the other filters. */
  groups: readonly (readonly number[])[];
  excluded: readonly (readonly number[])[];
  onlyTransactions: boolean;
  /** Unix seconds, inclusive. */
  ingested: Readonly<{ min: number; max: number }> | undefined;
  /** Whether a row of a range matches all filters. */
  matches: (row: ItemColumns, range: PlaceRange) => boolean;
  /** Whether `matches` needs tags. */
  checksTags: boolean;
}>;

/** Returns the values of a row that filters check; a filter that a plan lacks reads none. */
export type CheckedValues<Row> = Readonly<{
  id: (row: Row) => string;
  ownerAddress: (row: Row) => string;
  target: (row: Row) => string;
  tags: (row: Row) => readonly Tag[];
  isTransaction: (row: Row) => boolean;
  /** Unix seconds. */
  ingestedAt: (row: Row) => number;
}>;

/** Plans pages; holds statements of one reader's connection. */
export type Planner = (plan: PagePlan) => Walk;

/** The largest packed place: 63 bits. */
const lastPlace = 2n ** 63n - 1n;

/** @param addressOf - Returns the address of an owner by its number. */
export function createPlanner(
  db: Database,
  keys: FilterKeys,
  ids: IdPlaces,
  addressOf: (owner: number) => Uint8Array,
): Planner {
  const childrenOf = createChildRanges(db, ids);
  const values: CheckedValues<ItemColumns> = {
    id: ({ id }) => idFromBytes(id),
    ownerAddress: ({ owner }) => addressFromBytes(addressOf(owner)),
    target: ({ target }) => (target === null ? "" : addressOfKey(target)),
    tags: ({ tags }) => (tags === null ? [] : decodeTagBlob(tags)),
    isTransaction: ({ sig }) => sig < 0,
    ingestedAt: ({ ingested }) => ingested,
  };
  return (plan) => {
    const bounds = placeBounds(plan);
    const isEmpty = isEmptyBounds(bounds) || matchesNothing(plan);
    const ranges = isEmpty ? [] : rangesWithin(bounds, listed(plan.bundledIn), childrenOf);
    return {
      ranges: plan.order === "asc" ? ranges : ranges.toReversed(),
      ids: idKeys(plan, keys),
      groups: groupsOf(plan, keys),
      excluded: tagKeys(plan.tags, "NEQ", keys),
      onlyTransactions: plan.bundledIn === null,
      ingested: ingestedOf(plan),
      matches: createCheck(plan, values),
      checksTags: (plan.tags ?? []).length > 0,
    };
  };
}

/** A list with values, or undefined: empty lists are ignored. */
function listed<Value>(list: readonly Value[] | null | undefined): readonly Value[] | undefined {
  return list === null || list === undefined || list.length === 0 ? undefined : list;
}

/** Packed places, both inclusive. */
export type PlaceBounds = Readonly<{ first: bigint; last: bigint }>;

export function isEmptyBounds({ first, last }: PlaceBounds): boolean {
  return first > last;
}

/** The places of a plan: its heights, after its cursor. */
export function placeBounds({ block, after, order }: PagePlan): PlaceBounds {
  const isBounded = block?.min !== undefined || block?.max !== undefined;
  const highest = isBounded ? pendingHeight - 1 : pendingHeight;
  const min = Math.max(0, block?.min ?? 0);
  const max = Math.min(highest, block?.max ?? highest);
  if (min > max) return { first: 1n, last: 0n };
  const first = packHeight(min);
  const last = max === pendingHeight ? lastPlace : packHeight(max + 1) - 1n;
  if (after === undefined) return { first, last };
  const edge = packPlace(after);
  return order === "asc"
    ? { first: edge >= first ? edge + 1n : first, last }
    : { first, last: edge <= last ? edge - 1n : last };
}

/** Whether a tag filter has no values: then no row matches. */
function matchesNothing(plan: PagePlan): boolean {
  return (plan.tags ?? []).some(({ op, values }) => op === "EQ" && values.length === 0);
}

function rangesWithin(
  bounds: Readonly<{ first: bigint; last: bigint }>,
  bundledIn: readonly Id[] | undefined,
  childrenOf: (id: Id) => readonly ChildRange[],
): PlaceRange[] {
  if (bundledIn === undefined) return [{ ...bounds, parents: undefined }];
  const byRoot = new Map<bigint, { first: bigint; last: bigint; parents: number[] }>();
  for (const { first, last, parent } of bundledIn.flatMap(childrenOf)) {
    const root = first >> 31n;
    const range = byRoot.get(root) ?? { first, last, parents: [] };
    range.first = lesser(first, range.first);
    range.last = greater(last, range.last);
    range.parents.push(parent);
    byRoot.set(root, range);
  }
  return [...byRoot.values()]
    .map(({ first, last, parents }) => ({
      first: greater(first, bounds.first),
      last: lesser(last, bounds.last),
      parents,
    }))
    .filter(({ first, last }) => first <= last)
    .sort((a, b) => (a.first < b.first ? -1 : 1));
}

function lesser(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

function greater(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

/** The places of the direct children of one bundle, and the `parent` of their rows. */
type ChildRange = Readonly<{ first: bigint; last: bigint; parent: number }>;

function createChildRanges(db: Database, ids: IdPlaces): (id: Id) => readonly ChildRange[] {
  type BundleRow = Readonly<{ high: number; low: number; fine: number; end: number }>;
  // `end` of an item: the offset after its payload. All places of the bundle are used: of two copies the children are
  // rows at the lower one, but only one of them may be unbundled. A bundle without a row is in `bundles`.
  const columns = `${halvesSql("n")}, fine, ${offsetSql("n", "fine")} + head + size AS "end"`;
  const find = prepareQuery<BundleRow>(
    db,
    `SELECT ${columns} FROM items WHERE n = ${placeSql("?2", "?3")}
     UNION SELECT ${columns} FROM duplicates WHERE id = ?1
     UNION SELECT ${columns} FROM pruned_items WHERE substr(id, 1, 8) = substr(?1, 1, 8) AND id = ?1
     UNION SELECT ${columns} FROM bundles WHERE id = ?1`,
  );
  return (id) => {
    const bytes = idBytes(id);
    const place = ids.find(bytes);
    return find
      .all(bytes, place?.high ?? null, place?.low ?? null)
      .filter(({ high }) => heightOfHigh(high) !== pendingHeight)
      .map(({ high, low, fine, end }) => {
        const root = packHalves({ high, low: 0 });
        return low === 0
          ? { first: root + 1n, last: root + 2n ** 31n - 1n, parent: -1 }
          : {
              first: root + BigInt(low + 1),
              last: root + BigInt(stepOf(end)),
              parent: offsetOfRow({ low, fine }),
            };
      });
  };
}

/** Sorted, so that successive ids read the next block of a filter. */
function idKeys({ ids }: PagePlan, keys: FilterKeys): number[] | undefined {
  if (listed(ids) === undefined) return undefined;
  return distinct((ids ?? []).map((id) => keys.id(idBytes(id)))).sort((a, b) => a - b);
}

function groupsOf(plan: PagePlan, keys: FilterKeys): (readonly number[])[] {
  const groups: (readonly number[])[] = [];
  const owners = listed(plan.owners);
  if (owners !== undefined) groups.push(distinct(owners.map((owner) => keys.owner(idBytes(owner)))));
  const recipients = listed(plan.recipients);
  // A text that is not a valid target has no key, hence no rows.
  if (recipients !== undefined)
    groups.push(
      distinct(
        recipients.flatMap((recipient) => (isAddress(recipient) ? [keys.recipient(addressKey(recipient))] : [])),
      ),
    );
  return [...groups, ...tagKeys(plan.tags, "EQ", keys)];
}

function tagKeys(tags: readonly TagPlan[] | undefined, op: TagPlan["op"], keys: FilterKeys): (readonly number[])[] {
  return (tags ?? [])
    .filter((tag) => tag.op === op && tag.values.length > 0)
    .map(({ name, values }) => distinct(values.map((value) => keys.tag(name, value))));
}

function distinct(keys: readonly number[]): number[] {
  return [...new Set(keys)];
}

function ingestedOf({ ingestedAt }: PagePlan): Walk["ingested"] {
  if (ingestedAt?.min === undefined && ingestedAt?.max === undefined) return undefined;
  return { min: ingestedAt.min ?? 0, max: ingestedAt.max ?? Number.MAX_SAFE_INTEGER };
}

function createCheck(plan: PagePlan, values: CheckedValues<ItemColumns>): Walk["matches"] {
  const check = createRowCheck(plan, values);
  return (row, { parents }) =>
    check(row) && (parents === undefined || (row.sig > 0 && parents.includes(row.parent ?? -1)));
}

/** Returns a test of all filters of a plan except for the parent and the place. */
export function createRowCheck<Row>(plan: PagePlan, values: CheckedValues<Row>): (row: Row) => boolean {
  const ids = setOf(plan.ids);
  const owners = setOf(plan.owners);
  const recipients = setOf(plan.recipients);
  const ingested = ingestedOf(plan);
  const tags = (plan.tags ?? []).map((filter) => ({ ...filter, values: new Set(filter.values) }));
  const hasTag = (row: Row): boolean => {
    const found = values.tags(row);
    return tags.every(
      (filter) =>
        found.some(({ name, value }) => name === filter.name && filter.values.has(value)) === (filter.op === "EQ"),
    );
  };
  const tests = [
    ids && ((row: Row) => ids.has(values.id(row))),
    owners && ((row: Row) => owners.has(values.ownerAddress(row))),
    recipients && ((row: Row) => recipients.has(values.target(row))),
    plan.bundledIn === null && values.isTransaction,
    ingested && ((row: Row) => values.ingestedAt(row) >= ingested.min && values.ingestedAt(row) <= ingested.max),
    tags.length > 0 && hasTag,
  ].filter((test) => typeof test === "function");
  return (row) => tests.every((test) => test(row));
}

function setOf(list: readonly string[] | undefined): ReadonlySet<string> | undefined {
  const values = listed(list);
  return values === undefined ? undefined : new Set(values);
}
