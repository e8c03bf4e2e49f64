/**
 * Filters of live events: the shapes and meanings of GraphQL's filters, tested on one change of the index at a time.
 * Source: docs/reference/gateway.md#events.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";
import type { Change, RowChange } from "../../store/index/change-record.ts";
import type { PagePlan, TagPlan } from "../../store/index/index-types.ts";

/** Filters of rows, as in PagePlan. */
export type RowFilter = Pick<PagePlan, "ids" | "owners" | "recipients" | "tags"> &
  Readonly<{ kind?: "transaction" | "item" }>;

/** What a subscriber wants. A reset is always sent. */
export type EventFilter = Readonly<{
  /** Undefined: no transactions and data items. */
  rows: RowFilter | undefined;
  blocks: boolean;
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
    key: JSON.stringify([blocks, rows === undefined ? null : keyOf(rows)]),
    matches: (change) => {
      if (change.kind === "reset") return true;
      return isRowChange(change) ? isChosen(change) : blocks;
    },
  };
}

export function isRowChange(change: Change): change is RowChange {
  return "id" in change;
}

function keyOf({ ids, owners, recipients, tags = [], kind }: RowFilter): unknown {
  const sorted = (list: readonly string[] | undefined) => [...new Set(list ?? [])].sort();
  const tagTexts = tags.map(({ name, values, op }) => JSON.stringify([name, op, sorted(values)]));
  return [sorted(ids), sorted(owners), sorted(recipients), sorted(tagTexts), kind ?? null];
}

function rowTest({ ids, owners, recipients, tags = [], kind }: RowFilter): (row: RowChange) => boolean {
  const tests: ((row: RowChange) => boolean)[] = [];
  if (kind !== undefined) tests.push(({ isItem }) => isItem === (kind === "item"));
  addListTest(tests, ids, ({ id }) => id);
  addListTest(tests, owners, ({ ownerAddress }) => ownerAddress);
  addListTest(tests, recipients, ({ target }) => target);
  for (const tag of tags.map(tagTest)) tests.push((row) => tag(row.tags));
  return (row) => tests.every((meets) => meets(row));
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
