/**
 * Filters of live events: the shapes and meanings of GraphQL's filters, tested on one change of the index at a time.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";
import type { Bounds, PagePlan, TagPlan } from "../../store/index/index-types.ts";
import type { Change, RowChange, RowPlace } from "../../store/index/journal/change-record.ts";

/** Filters of rows, as in PagePlan. */
export type RowFilter = Pick<PagePlan, "ids" | "owners" | "recipients" | "tags" | "bundledIn" | "block"> &
  Readonly<{ kind?: "transaction" | "item" }>;

/** The events that a subscriber selects. A reset is always sent. */
export type EventFilter = Readonly<{
  /** Undefined: no transactions and data items. */
  rows: RowFilter | undefined;
  /** Undefined: no blocks. Bounds without a limit choose all blocks. */
  blocks: Bounds | undefined;
}>;

/** A filter that is ready to use. */
export type EventTest = Readonly<{
  /** The same text for filters that choose the same changes because they have the same values. */
  key: string;
  matches: (change: Change) => boolean;
}>;

/** Prepares a filter. */
export function testOf({ rows, blocks }: EventFilter): EventTest {
  const isChosen = rows === undefined ? () => false : rowTest(rows);
  return {
    key: JSON.stringify([blocks === undefined ? null : boundsKey(blocks), rows === undefined ? null : keyOf(rows)]),
    matches: (change) => {
      if (change.kind === "reset") return true;
      return isRowChange(change) ? isChosen(change) : blocks !== undefined && isWithin(change.height, blocks);
    },
  };
}

export function isRowChange(change: Change): change is RowChange {
  return "id" in change;
}

function keyOf({ ids, owners, recipients, tags = [], bundledIn, block = {}, kind }: RowFilter): unknown {
  const sorted = (list: readonly string[] | undefined) => [...new Set(list ?? [])].sort();
  const tagTexts = tags.map(({ name, values, op }) => JSON.stringify([name, op, sorted(values)]));
  const bundles = bundledIn === null ? null : sorted(bundledIn);
  return [sorted(ids), sorted(owners), sorted(recipients), sorted(tagTexts), bundles, boundsKey(block), kind ?? null];
}

function boundsKey({ min, max }: Bounds): unknown {
  return [min ?? null, max ?? null];
}

function isWithin(height: number, { min = 0, max = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return height >= min && height <= max;
}

function rowTest(filter: RowFilter): (row: RowChange) => boolean {
  const { ids, owners, recipients, tags = [], bundledIn, kind } = filter;
  const tests: ((row: RowChange) => boolean)[] = [];
  const wantedKind = bundledIn === null ? "transaction" : kind;
  if (kind !== undefined && wantedKind !== kind) return () => false;
  if (wantedKind !== undefined) tests.push(({ isItem }) => isItem === (wantedKind === "item"));
  addListTest(tests, ids, ({ id }) => id);
  addListTest(tests, owners, ({ ownerAddress }) => ownerAddress);
  addListTest(tests, recipients, ({ target }) => target);
  addPlaceTest(tests, filter);
  for (const tag of tags.map(tagTest)) tests.push((row) => tag(row.tags));
  return (row) => tests.every((meets) => meets(row));
}

/** A row that leaves the places of a filter must be seen to leave: its former place counts, too. */
function addPlaceTest(tests: ((row: RowChange) => boolean)[], { bundledIn, block = {} }: RowFilter): void {
  const bundles = bundledIn === undefined || bundledIn === null || bundledIn.length === 0 ? undefined : bundledIn;
  if (bundles === undefined && block.min === undefined && block.max === undefined) return;
  const wanted = new Set<string | undefined>(bundles);
  const isChosen = (place: RowPlace | undefined): boolean =>
    place !== undefined && isWithin(place.height, block) && (bundles === undefined || wanted.has(place.bundledIn));
  tests.push(({ place, from }) => isChosen(place) || isChosen(from));
}

/** An empty list is ignored. */
function addListTest(
  tests: ((row: RowChange) => boolean)[],
  list: readonly string[] | undefined,
  read: (row: RowChange) => string,
): void {
  if (list === undefined || list.length === 0) return;
  const wanted = new Set(list);
  tests.push((row) => wanted.has(read(row)));
}

function tagTest({ name, values, op }: TagPlan): (tags: readonly Tag[]) => boolean {
  const wanted = new Set(values);
  const isTag = (tag: Tag): boolean => tag.name === name && wanted.has(tag.value);
  return op === "EQ" ? (tags) => tags.some(isTag) : (tags) => !tags.some(isTag);
}
