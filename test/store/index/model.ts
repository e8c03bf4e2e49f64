/**
 * A model of the index: one list in memory, searched by a full scan.
 * @module
 */
import type { Address, Id } from "../../../src/arweave/id.ts";
import type { Tag } from "../../../src/arweave/tags.ts";
import type { PagePlan, PageRow } from "../../../src/store/index/index-types.ts";
import type { Place } from "../../../src/store/index/place.ts";
import { comparePlaces } from "../../support/places.ts";
import { isPendingPlace } from "./rows-of.ts";

/** One row at one place; of several with one id, the lowest is canonical. */
export type ModelRow = Readonly<{
  kind: "transaction" | "item";
  place: Place;
  id: Id;
  ownerAddress: Address;
  target: string;
  tags: readonly Tag[];
  size: number;
  parentOffset: number | null;
  ingestedAt: number;
}>;

/** A row as a text that is the same exactly when the rows are. */
export function rowText(row: Pick<ModelRow, "kind" | "place" | "id" | "ownerAddress" | "target" | "tags">): string {
  const { kind, place, id, ownerAddress, target, tags } = row;
  return JSON.stringify([place.height, place.txIndex, place.offset, kind, id, ownerAddress, target, tags]);
}

/** The fields of a page's row that the model has. */
export function pageRowText(row: PageRow): string {
  return rowText(row);
}

/** The canonical rows of a list, in place order. */
export function canonicalRows(rows: readonly ModelRow[]): ModelRow[] {
  const ordered = rows.toSorted((a, b) => comparePlaces(a.place, b.place));
  const seen = new Set<string>();
  return ordered.filter(({ id }) => !seen.has(id) && seen.add(id));
}

const remembered = new WeakMap<readonly ModelRow[], { length: number; rows: ModelRow[] }>();

/** `canonicalRows` of a list that only grows, cached until it grows. */
function currentRows(rows: readonly ModelRow[]): ModelRow[] {
  const known = remembered.get(rows);
  if (known?.length === rows.length) return known.rows;
  const canonical = canonicalRows(rows);
  remembered.set(rows, { length: rows.length, rows: canonical });
  return canonical;
}

/** Every canonical row of a plan, in its order, ignoring cursor and limit. */
export function fullScan(rows: readonly ModelRow[], plan: PagePlan): ModelRow[] {
  const parents = new Set(
    rows.filter(({ id }) => plan.bundledIn?.includes(id)).map(({ place }) => placeText(place, place.offset)),
  );
  const found = currentRows(rows).filter((row) => meets(row, plan, parents));
  return plan.order === "asc" ? found : found.toReversed();
}

function placeText({ height, txIndex }: Place, offset: number): string {
  return `${height}/${txIndex}/${offset}`;
}

function meets(row: ModelRow, plan: PagePlan, parents: ReadonlySet<string>): boolean {
  const { ids, owners, recipients, tags = [], bundledIn, block, ingestedAt } = plan;
  const isBounded = block?.min !== undefined || block?.max !== undefined;
  return (
    oneOf(ids, row.id) &&
    oneOf(owners, row.ownerAddress) &&
    oneOf(recipients, row.target) &&
    (bundledIn !== null || row.kind === "transaction") &&
    (!bundledIn || bundledIn.length === 0 || isChild(row, parents)) &&
    !(isBounded && isPendingPlace(row.place)) &&
    row.place.height >= (block?.min ?? 0) &&
    row.place.height <= (block?.max ?? Number.POSITIVE_INFINITY) &&
    row.ingestedAt >= (ingestedAt?.min ?? 0) &&
    row.ingestedAt <= (ingestedAt?.max ?? Number.POSITIVE_INFINITY) &&
    tags.every(({ name, values, op }) => {
      const has = row.tags.some((tag) => tag.name === name && values.includes(tag.value));
      return op === "EQ" ? has : !has;
    })
  );
}

/** Whether the row is directly in one of the bundles, at any of their places. */
function isChild(row: ModelRow, parents: ReadonlySet<string>): boolean {
  if (row.kind === "transaction" || isPendingPlace(row.place)) return false;
  return parents.has(placeText(row.place, row.parentOffset ?? -1));
}

function oneOf(list: readonly string[] | undefined, value: string): boolean {
  return list === undefined || list.length === 0 || list.includes(value);
}
