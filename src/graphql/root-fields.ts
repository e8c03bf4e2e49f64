/**
 * The root fields: each reads its rows from the index first and returns their writer.
 *
 * Reading and writing are apart so that nothing can fail once the first byte is written.
 * @module
 */

import { isBlockHash, isId } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import type { IndexReader, Page, PageBlock, PageColumns, PagePlan, PageRow } from "../store/index/index-types.ts";
import {
  type BlocksArguments,
  badInput,
  nothing,
  readBlocksPlan,
  readTransactionsPlan,
  type TransactionsArguments,
} from "./page-query.ts";
import { requestRowsMax } from "./query-limits.ts";
import { compileShape, type Shape, type WriteValue } from "./response-text.ts";
import { namesWithin, type SelectedField } from "./selection.ts";
import {
  blockConnectionShape,
  blockShape,
  type Connection,
  compileConnection,
  transactionConnectionShape,
  transactionShape,
} from "./shapes.ts";
import type { SignatureSource } from "./signature-source.ts";

/** What queries ask of the index. */
export type QueryIndex = Pick<IndexReader, "blocks" | "block" | "counts" | "snapshot"> &
  Readonly<{
    page: (plan: PagePlan) => Page | Promise<Page>;
    /** Undefined above `max` rows. */
    count: (plan: PagePlan, max: number) => number | undefined | Promise<number | undefined>;
  }>;

/** What the root fields of one request share. */
export type RootContext = {
  readonly index: QueryIndex;
  readonly signatures: SignatureSource;
  /** Throws when the request must end. */
  readonly checkpoint: () => void;
  /** Rows that the connections of this request may still ask for. */
  rowsLeft: number;
  /** Bytes of tags that rows of this request may still carry. */
  tagBytesLeft: number;
};

/** Rows are read in steps, so that long tags are counted before too many of them are in memory. */
const stepRows = 250;

/** Rows up to which a filtered connection is counted. */
const countRowsMax = 1_000;

/** Bytes of tags that the rows of one request may carry; a page that reaches it ends early and says so. */
export const tagBytesMax = 8 * 2 ** 20;

/** `transaction(id)`. */
export async function resolveTransaction(
  { id }: Readonly<{ id: string }>,
  field: SelectedField,
  context: RootContext,
): Promise<WriteValue> {
  const names = namesWithin(field.inner);
  const page = isId(id)
    ? await context.index.page({ ids: [id], order: "asc", limit: 1, columns: columnsOf(names) })
    : undefined;
  const row = page?.rows[0];
  const signatures = names.has("signature") && row !== undefined ? context.signatures([row]) : new Map();
  return writeValue(transactionShape(signatures), field, row);
}

/** `transactions(…)`. */
export async function resolveTransactions(
  given: TransactionsArguments,
  field: SelectedField,
  context: RootContext,
): Promise<WriteValue> {
  const names = namesWithin(field.inner);
  const plan = readTransactionsPlan(given, columnsOf(names));
  const connection = plan === nothing ? emptyConnection<PageRow>() : await readConnection(plan, names, context);
  const signatures = names.has("signature") ? context.signatures(connection.rows) : new Map();
  return compileConnection(transactionConnectionShape(signatures), field.inner)(connection);
}

/** `block(id)`. */
export function resolveBlock({ id }: Readonly<{ id: string }>, field: SelectedField, context: RootContext): WriteValue {
  return writeValue(blockShape, field, isBlockHash(id) ? context.index.block(id) : undefined);
}

/** `blocks(…)`. */
export function resolveBlocks(given: BlocksArguments, field: SelectedField, context: RootContext): WriteValue {
  const plan = readBlocksPlan(given);
  const write = compileConnection(blockConnectionShape, field.inner);
  if (plan === nothing) return write(emptyConnection<PageBlock>());
  takeRows(plan.limit, context);
  const page = context.index.blocks(plan);
  const isUnfiltered = plan.hashes === undefined && plan.height === undefined;
  const isWhole = plan.afterHeight === undefined && !page.hasNextPage;
  const count = isWhole ? page.rows.length : isUnfiltered ? context.index.counts().blocks : null;
  return write({ ...page, count });
}

async function readConnection(
  plan: PagePlan,
  names: ReadonlySet<string>,
  context: RootContext,
): Promise<Connection<PageRow>> {
  takeRows(plan.limit, context);
  const wantsRows = names.has("edges") || names.has("pageInfo");
  const page = wantsRows ? await readRows(plan, context) : { rows: [], hasNextPage: true };
  const isWhole = plan.after === undefined && !page.hasNextPage;
  const count = !names.has("count") ? null : isWhole ? page.rows.length : await countRows(plan, context);
  return { ...page, count };
}

async function readRows(plan: PagePlan, context: RootContext): Promise<Omit<Connection<PageRow>, "count">> {
  const rows: PageRow[] = [];
  let { after } = plan;
  for (;;) {
    const limit = Math.min(plan.limit - rows.length, stepRows);
    const page = await context.index.page({
      ...plan,
      limit,
      ...(after === undefined ? {} : { after }),
      checkpoint: context.checkpoint,
    });
    for (const [index, row] of page.rows.entries()) {
      rows.push(row);
      context.tagBytesLeft -= tagSize(row);
      const isMore = page.hasNextPage || index + 1 < page.rows.length;
      if (context.tagBytesLeft < 0 && isMore) return { rows, hasNextPage: true };
    }
    if (!page.hasNextPage || rows.length >= plan.limit) return { rows, hasNextPage: page.hasNextPage };
    after = page.rows.at(-1)?.place;
    assert(after !== undefined, "a page that has a next one has a last row");
    context.checkpoint();
  }
}

/** Rows of all pages of a plan; null above `countRowsMax` rows without a stored count. */
async function countRows(plan: PagePlan, context: RootContext): Promise<number | null> {
  if (isUnfiltered(plan)) {
    const { transactions, items, storedItems, pendingTransactions, pendingItems } = context.index.counts();
    return transactions + items + storedItems + pendingTransactions + pendingItems;
  }
  const { after: _after, ...whole } = plan;
  return (await context.index.count({ ...whole, checkpoint: context.checkpoint }, countRowsMax)) ?? null;
}

function isUnfiltered(plan: PagePlan): boolean {
  const { order: _order, after: _after, limit: _limit, columns: _columns, ...filters } = plan;
  return Object.keys(filters).length === 0;
}

function takeRows(rows: number, context: RootContext): void {
  context.rowsLeft -= rows;
  if (context.rowsLeft < 0)
    throw badInput(`The query asks for more than ${requestRowsMax} rows; ask for fewer with "first".`);
}

function columnsOf(names: ReadonlySet<string>): PageColumns {
  return {
    tags: names.has("tags") || names.has("type"),
    ownerKey: names.has("key"),
    parent: names.has("bundledIn") || names.has("parent"),
    block: names.has("block"),
    target: names.has("recipient"),
    anchor: names.has("anchor"),
    size: names.has("data"),
    signature: names.has("signature") || names.has("signatureType"),
    ingestedAt: names.has("ingestedAt"),
  };
}

function tagSize(row: PageRow): number {
  let size = 0;
  for (const { name, value } of row.tags) size += name.length + value.length;
  return size;
}

function emptyConnection<Row>(): Connection<Row> {
  return { rows: [], hasNextPage: false, count: 0 };
}

function writeValue<Source>(shape: Shape<Source>, field: SelectedField, value: Source | undefined): WriteValue {
  const json = value === undefined ? "null" : compileShape(shape, field.inner)(value);
  return (response) => response.add(json);
}
