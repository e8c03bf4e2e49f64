/**
 * Pages of rows: the rows of a plan in place order, and whether more rows follow.
 *
 * The cursor is a place: a page begins after the last row of the previous page. So additions and removals between two
 * pages never skip or repeat an unchanged row.
 *
 * Candidates come from the posting index and are read as rows in batches. Without filters, rows are read from the
 * tables. Filters use the B-tree for rows that may still be forked away and parts for all other rows, merged by place.
 * Each row is checked against the filters, because keys are hashes and a part may name a removed row.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Address, addressOfKey, blockHashFromBytes, type Id, idFromBytes } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { inSnapshot, prepareQuery, type Query } from "../sqlite.ts";
import type { FilterKeys } from "./filter-key.ts";
import type { IdPlaces } from "./id-places.ts";
import {
  allColumns,
  noColumns,
  type Page,
  type PageBlock,
  type PageColumns,
  type PagePlan,
  type PageRow,
} from "./index-types.ts";
import { type CheckedRow, createPlanner, type PlaceRange, type Walk } from "./page-plan.ts";
import {
  createWindowWalks,
  placesJson,
  rowsSql,
  type Source,
  type StoredPageRow,
  type WindowSizes,
  type WindowWalk,
} from "./page-sql.ts";
import type { PartInfo, PartReads } from "./part-reads.ts";
import { compareHalves, type PlaceHalves, placeOfRow } from "./place.ts";
import { createHiddenTest } from "./stored-partitions.ts";
import { addressFromBytes, textOfStored } from "./stored-row.ts";
import { decodeTagBlob } from "./tag-blob.ts";

/** The reader's calls for pages. */
export type Pages = Readonly<{
  page: (plan: PagePlan) => Page;
  row: (id: Id) => PageRow | undefined;
  count: (plan: PagePlan, max: number) => number | undefined;
}>;

/** Dependencies, all of one connection. */
type PageParts = Readonly<{ db: Database; keys: FilterKeys; parts: PartReads; ids: IdPlaces }>;

export function createPages(of: PageParts, windows: WindowSizes): Pages {
  const { db } = of;
  const planOf = createPlanner(db, of.keys, of.ids);
  const walkRows = createWalker(of, windows);
  const beginHiddenTest = createHiddenTest(db);

  const page = (plan: PagePlan): Page =>
    inSnapshot(db, () => {
      assert(Number.isSafeInteger(plan.limit) && plan.limit > 0, "a page has one row or more");
      const walk = planOf(plan);
      const rows: PageRow[] = [];
      const texts = noTexts();
      const isHidden = beginHiddenTest();
      walkRows(walk, plan, plan.columns, plan.limit + 1, (found, range) => {
        const row = pageRow(found, texts);
        if (walk.matches(checkedRow(found, row), range) && !isHidden(found)) rows.push(row);
        return rows.length > plan.limit ? "enough" : "more";
      });
      return { rows: rows.slice(0, plan.limit), hasNextPage: rows.length > plan.limit };
    });

  return {
    page,
    count: (plan, max) =>
      inSnapshot(db, () => {
        const walk = planOf(plan);
        let count = 0;
        const texts = noTexts();
        const isHidden = beginHiddenTest();
        walkRows(walk, plan, noColumns, max + 1, (found, range) => {
          if (walk.matches(checkedRow(found, pageRow(found, texts)), range) && !isHidden(found)) count += 1;
          return count > max ? "enough" : "more";
        });
        return count > max ? undefined : count;
      }),
    row: (id) => page({ ids: [id], order: "asc", limit: 1, columns: allColumns }).rows[0],
  };
}

/** Texts that rows of one page share: most pages have few owners and few blocks. */
type CommonTexts = Readonly<{ keys: Map<Address, string>; blocks: Map<number, PageBlock> }>;

function noTexts(): CommonTexts {
  return { keys: new Map(), blocks: new Map() };
}

function pageRow(row: StoredPageRow, texts: CommonTexts): PageRow {
  const ownerAddress = addressFromBytes(row.address);
  return {
    kind: row.sig < 0 ? "transaction" : "item",
    place: placeOfRow(row),
    id: idFromBytes(row.id),
    ownerAddress,
    ownerKey: keyOf(row, ownerAddress, texts),
    target: row.target === null ? "" : addressOfKey(row.target),
    anchor: textOfStored(row.anchor),
    signatureType: row.sig,
    size: row.size,
    headerSize: row.head,
    tags: row.tags === null ? [] : decodeTagBlob(row.tags),
    quantity: BigInt(row.quantity ?? 0),
    reward: BigInt(row.reward ?? 0),
    format: row.format ?? 2,
    parentId: row.parentId === null ? undefined : idFromBytes(row.parentId),
    block: blockOf(row, texts),
    ingestedAt: row.ingested,
  };
}

function checkedRow({ parent }: StoredPageRow, row: PageRow): CheckedRow {
  return { ...row, parentOffset: parent ?? -1 };
}

function keyOf({ ownerKey }: StoredPageRow, address: Address, { keys }: CommonTexts): string {
  if (ownerKey === null) return "";
  const known = keys.get(address);
  if (known !== undefined) return known;
  const text = encodeBase64url(ownerKey);
  keys.set(address, text);
  return text;
}

function blockOf(row: StoredPageRow, { blocks }: CommonTexts): PageBlock | undefined {
  const { height, hash, timestamp, previous } = row;
  if (height === null || hash === null || timestamp === null) return undefined;
  const known = blocks.get(height);
  if (known !== undefined) return known;
  const block: PageBlock = {
    height,
    hash: blockHashFromBytes(hash),
    timestamp,
    previous: previous === null ? "" : blockHashFromBytes(previous),
  };
  blocks.set(height, block);
  return block;
}

/** Reads the rows of a plan in order, until `take` returns "enough". */
type Walker = (
  walk: Walk,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  columns: PageColumns,
  wanted: number,
  take: (row: StoredPageRow, range: PlaceRange) => "more" | "enough",
) => void;

/** Limit of rows in one read, when many candidates do not match the filters. */
const rowsPerReadMax = 1_024;

/** Creates the walker over a reader's connection. */
function createWalker(of: PageParts, windows: WindowSizes): Walker {
  const candidatesOf = createCandidates(of, windows);
  const rowsAt = createRowReads(of.db);
  return (walk, plan, columns, wanted, take) => {
    const read = { ...columns, tags: columns.tags || walk.checksTags };
    for (const range of walk.ranges) {
      const candidates = candidatesOf(walk, range, plan, wanted);
      for (const places of batchesOf(candidates, wanted)) {
        plan.checkpoint?.();
        const rows = rowsAt(places, read, plan.order);
        if (rows.some((row) => take(row, range) === "enough")) return;
      }
    }
  };
}

/** Candidates in batches: the first has `wanted` candidates, later ones have more. */
function* batchesOf(candidates: Iterator<PlaceHalves>, wanted: number): Generator<PlaceHalves[]> {
  let size = wanted;
  for (;;) {
    const places = takeSome(candidates, size);
    yield places;
    if (places.length < size) return;
    size = Math.min(size * 2, Math.max(rowsPerReadMax, wanted));
  }
}

type Candidates = (
  walk: Walk,
  range: PlaceRange,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  wanted: number,
) => Iterator<PlaceHalves>;

function createCandidates({ db, keys, parts }: PageParts, windows: WindowSizes): Candidates {
  const windowWalk = createWindowWalks(db, windows);
  return (walk, range, { order, checkpoint = () => undefined }, wanted) => {
    const { onlyTransactions, ingested, excluded, groups } = walk;
    const tests = { onlyTransactions, ingested, parents: range.parents, excluded: [] };
    const common = { first: range.first, last: range.last, order, wanted, checkpoint };
    if (walk.ids === undefined && groups.length === 0)
      return windowWalk({
        ...common,
        sources: [{ kind: onlyTransactions ? "transactions" : "items" }],
        tests,
      });

    // Ids are so rare that each row is checked instead of further keys.
    const wantedGroups = walk.ids === undefined ? groups : [walk.ids];
    const unwanted = walk.ids === undefined ? excluded : [];
    const sources: Source[] = wantedGroups.map((group) => ({ kind: "keys", keys: group }));
    if (onlyTransactions && walk.ids === undefined) sources.push({ kind: "transactions" });
    const recent: WindowWalk = { ...common, sources, tests: { ...tests, excluded: unwanted } };
    const inParts = onlyTransactions ? [...wantedGroups, [keys.transaction()]] : wantedGroups;
    const bounds = { first: halvesOf(range.first), last: halvesOf(range.last) };
    const query = { ...bounds, order, groups: inParts, excluded: unwanted, checkpoint };
    const streams = parts
      .list()
      .filter((part) => overlaps(part, bounds) && (walk.ids === undefined || part.keys !== null))
      .map((part) => ({
        bound: order === "asc" ? part.first : part.last,
        open: () => parts.find(part, query),
      }));
    return mergeStreams([{ bound: undefined, open: () => windowWalk(recent) }, ...streams], order);
  };
}

function overlaps(part: PartInfo, bounds: Readonly<{ first: PlaceHalves; last: PlaceHalves }>): boolean {
  return compareHalves(part.first, bounds.last) <= 0 && compareHalves(part.last, bounds.first) >= 0;
}

function halvesOf(packed: bigint): PlaceHalves {
  return { high: Number(packed >> 31n), low: Number(packed & 0x7fffffffn) };
}

function takeSome(candidates: Iterator<PlaceHalves>, count: number): PlaceHalves[] {
  const places: PlaceHalves[] = [];
  while (places.length < count) {
    const { value, done } = candidates.next();
    if (done === true) break;
    places.push(value);
  }
  return places;
}

type RowReads = (places: readonly PlaceHalves[], columns: PageColumns, order: "asc" | "desc") => StoredPageRow[];

function createRowReads(db: Database): RowReads {
  const prepared = new Map<string, Query<StoredPageRow>>();
  return (places, columns, order) => {
    if (places.length === 0) return [];
    const sql = rowsSql(columns);
    const query = prepared.get(sql) ?? prepareQuery<StoredPageRow>(db, sql);
    prepared.set(sql, query);
    const rows = query.all(placesJson(places));
    return rows.sort(order === "asc" ? compareHalves : (a, b) => compareHalves(b, a));
  };
}

/** Places in order. Nothing is read before the stream is opened. */
type PlaceStream = Readonly<{
  /** The earliest possible first place, in the order of the walk; undefined: unknown. */
  bound: PlaceHalves | undefined;
  open: () => Iterator<PlaceHalves>;
}>;

type Head = { place: PlaceHalves; rest: Iterator<PlaceHalves> };
type Compare = (a: PlaceHalves, b: PlaceHalves) => number;

/** Merges streams of one order; yields each place once, and opens no stream before it is needed. */
export function* mergeStreams(streams: readonly PlaceStream[], order: "asc" | "desc"): Generator<PlaceHalves> {
  const compare: Compare = order === "asc" ? compareHalves : (a, b) => compareHalves(b, a);
  const waiting = streams.toSorted((a, b) => compareBounds(a, b, compare));
  let heads: Head[] = [];
  let last: PlaceHalves | undefined;
  for (;;) {
    const first = firstOf(openDue(waiting, heads, compare), compare);
    if (first === undefined) return;
    const { place } = first;
    if (last === undefined || compare(last, place) !== 0) yield place;
    last = place;
    const { value, done } = first.rest.next();
    if (done === true) heads = heads.filter((head) => head !== first);
    else first.place = value;
  }
}

/** Opens the streams that may have a place before the first place of the open ones. */
function openDue(waiting: PlaceStream[], heads: Head[], compare: Compare): readonly Head[] {
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    const first = firstOf(heads, compare);
    const isDue = next.bound === undefined || first === undefined || compare(next.bound, first.place) <= 0;
    if (!isDue) break;
    waiting.shift();
    const rest = next.open();
    const { value, done } = rest.next();
    if (done !== true) heads.push({ place: value, rest });
  }
  return heads;
}

function firstOf(heads: readonly Head[], compare: Compare): Head | undefined {
  let first = heads[0];
  for (const head of heads) if (first !== undefined && compare(head.place, first.place) < 0) first = head;
  return first;
}

/** Streams with an unknown first place come first. */
function compareBounds(a: PlaceStream, b: PlaceStream, compare: Compare): number {
  if (a.bound === undefined || b.bound === undefined)
    return Number(a.bound !== undefined) - Number(b.bound !== undefined);
  return compare(a.bound, b.bound);
}
