/**
 * Pages of rows: a plan walked in place order, with one row of look-ahead.
 *
 * The cursor is the place, so that a page begins after the last row of the one before it, whatever came and went
 * in between: a row that stands still is neither lost nor repeated.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Address, addressOfKey, blockHashFromBytes, type Id, idFromBytes } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { inSnapshot } from "../sqlite.ts";
import type { FilterKeys } from "./filter-key.ts";
import { type CheckedRow, createPlanner } from "./page-plan.ts";
import type { StoredPageRow } from "./page-sql.ts";
import { createWalker } from "./page-walk.ts";
import { placeOfHalves } from "./place.ts";
import type { WindowSizes } from "./place-windows.ts";
import type { Page, PageBlock, PagePlan, PageRow } from "./rows.ts";
import { addressFromBytes, textOfStored } from "./stored-row.ts";
import { decodeTagBlob } from "./tag-blob.ts";

/** The part of the reader that answers pages. */
export type Pages = Readonly<{
  page: (plan: PagePlan) => Page;
  row: (id: Id) => PageRow | undefined;
  count: (plan: PagePlan, max: number) => number | undefined;
}>;

const noColumns = { tags: false, ownerKey: false, parent: false, block: false } as const;
const allColumns = { tags: true, ownerKey: true, parent: true, block: true } as const;

/** Opens pages over a reader's connection. */
export function createPages(db: Database, keys: FilterKeys, windows: WindowSizes): Pages {
  const planOf = createPlanner(db, keys);
  const walkRows = createWalker(db, keys, windows);

  const page = (plan: PagePlan): Page =>
    inSnapshot(db, () => {
      assert(Number.isSafeInteger(plan.limit) && plan.limit > 0, "a page has one row or more");
      const walk = planOf(plan);
      const rows: PageRow[] = [];
      const texts = noTexts();
      walkRows(walk, plan, plan.columns, plan.limit + 1, (found, range) => {
        const row = pageRow(found, texts);
        if (walk.matches(checkedRow(found, row), range)) rows.push(row);
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
        walkRows(walk, plan, noColumns, max + 1, (found, range) => {
          if (walk.matches(checkedRow(found, pageRow(found, texts)), range)) count += 1;
          return count > max ? "enough" : "more";
        });
        return count > max ? undefined : count;
      }),
    row: (id) => page({ ids: [id], order: "asc", limit: 1, columns: allColumns }).rows[0],
  };
}

/** What rows of one page have in common, written once: most have few owners and lie in few blocks. */
type CommonTexts = Readonly<{ keys: Map<Address, string>; blocks: Map<number, PageBlock> }>;

function noTexts(): CommonTexts {
  return { keys: new Map(), blocks: new Map() };
}

function pageRow(row: StoredPageRow, texts: CommonTexts): PageRow {
  const ownerAddress = addressFromBytes(row.address);
  return {
    kind: row.sig < 0 ? "transaction" : "item",
    place: placeOfHalves(row.high, row.low === 0 ? -1 : row.low * 64 + row.fine),
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
