/**
 * The root fields: each reads its rows from the index first and returns their writer.
 *
 * Reading and writing are apart so that nothing can fail once the first byte is written.
 * @module
 */
import { isId } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import type { IndexReader, PagePlan } from "../store/index/index-types.ts";
import { encodedBlock } from "../store/index/pages/encoded-row.ts";
import type { EncodedBlock, EncodedPage, EncodedRow } from "../store/index/pages/encoded-types.ts";
import { placeOfRow } from "../store/index/place.ts";
import {
  type BlocksArguments,
  badInput,
  nothing,
  readBlocksPlan,
  readTransactionsPlan,
  type TransactionsArguments,
} from "./page-query.ts";
import { requestRowsMax } from "./query-limits.ts";
import { compileNullable, type WriteValue } from "./response-bytes.ts";
import { columnsOf, namesWithin, readBlock } from "./row-reads.ts";
import type { SelectedField } from "./selection.ts";
import {
  blockConnectionShape,
  blockShape,
  type Connection,
  compileConnection,
  transactionConnectionShape,
  transactionShape,
} from "./shapes.ts";
import type { SignatureSource } from "./signature-source.ts";
import { tagBytesOf } from "./tag-json.ts";

type Eventually<Value> = Value | Promise<Value>;

/** The reads of the index that queries use. */
export type QueryIndex = Pick<IndexReader, "blocks" | "block" | "counts" | "snapshot"> &
  Readonly<{
    encodedRow: (...query: Parameters<IndexReader["encodedRow"]>) => Eventually<EncodedRow | undefined>;
    encodedPage: (plan: PagePlan) => Eventually<EncodedPage>;
    /** Undefined above `max` rows. */
    count: (plan: PagePlan, max: number) => Eventually<number | undefined>;
  }>;

/** State that the root fields of one request share. */
export type RootContext = {
  readonly index: QueryIndex;
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

/** Reads the rows of a root field, for arguments as graphql-js has coerced them; returns their writer. */
type RootResolver = (given: unknown, context: RootContext) => Eventually<WriteValue>;

/** Makes the resolvers of root fields from what is selected of them: once for a document. */
export function createRootFields(
  signatures: SignatureSource,
): Readonly<Record<string, (field: SelectedField) => RootResolver>> {
  const shape = transactionShape(signatures.of);
  const connectionShape = transactionConnectionShape(signatures.of);
  return {
    transaction: ({ inner }) => {
      const write = compileNullable(shape, inner);
      const names = namesWithin(inner);
      const columns = columnsOf(names);
      const read = async (id: string, { index }: RootContext) => {
        const row = isId(id) ? await index.encodedRow(id, columns) : undefined;
        if (names.has("signature") && row !== undefined) signatures.find([row]);
        return row;
      };
      return async (given, context) => {
        const row = await read((given as { id: string }).id, context);
        return (out) => write(row, out);
      };
    },
    transactions: ({ inner }) => {
      const write = compileConnection(connectionShape, inner);
      const names = namesWithin(inner);
      const columns = columnsOf(names);
      return async (given, context) => {
        const plan = readTransactionsPlan(given as TransactionsArguments, columns);
        const connection =
          plan === nothing ? emptyConnection<EncodedRow>() : await readConnection(plan, names, context);
        if (names.has("signature")) signatures.find(connection.rows);
        return write(connection);
      };
    },
    block: ({ inner }) => {
      const write = compileNullable(blockShape, inner);
      return (given, { index }) => {
        const block = readBlock(index, (given as { id: string }).id);
        return (out) => write(block, out);
      };
    },
    blocks: ({ inner }) => {
      const write = compileConnection(blockConnectionShape, inner);
      return (given, context) => write(readBlocks(given as BlocksArguments, context));
    },
  };
}

function readBlocks(given: BlocksArguments, context: RootContext): Connection<EncodedBlock> {
  const plan = readBlocksPlan(given);
  if (plan === nothing) return emptyConnection<EncodedBlock>();
  takeRows(plan.limit, context);
  const { rows, hasNextPage } = context.index.blocks(plan);
  const isUnfiltered = plan.hashes === undefined && plan.height === undefined;
  const isWhole = plan.afterHeight === undefined && !hasNextPage;
  const count = isWhole ? rows.length : isUnfiltered ? context.index.counts().blocks : null;
  return { rows: rows.map(encodedBlock), hasNextPage, count };
}

async function readConnection(
  plan: PagePlan,
  names: ReadonlySet<string>,
  context: RootContext,
): Promise<Connection<EncodedRow>> {
  takeRows(plan.limit, context);
  const wantsRows = names.has("edges") || names.has("pageInfo");
  const page = wantsRows ? await readRows(plan, context) : { rows: [], hasNextPage: true };
  const isWhole = plan.after === undefined && !page.hasNextPage;
  const count = !names.has("count") ? null : isWhole ? page.rows.length : await countRows(plan, context);
  return { ...page, count };
}

async function readRows(plan: PagePlan, context: RootContext): Promise<EncodedPage> {
  const rows: EncodedRow[] = [];
  let { after } = plan;
  for (;;) {
    const limit = Math.min(plan.limit - rows.length, stepRows);
    const page = await context.index.encodedPage({
      ...plan,
      limit,
      ...(after === undefined ? {} : { after }),
      checkpoint: context.checkpoint,
    });
    for (const [index, row] of page.rows.entries()) {
      rows.push(row);
      context.tagBytesLeft -= tagBytesOf(row.stored.tags);
      const isMore = page.hasNextPage || index + 1 < page.rows.length;
      if (context.tagBytesLeft < 0 && isMore) return { rows, hasNextPage: true };
    }
    if (!page.hasNextPage || rows.length >= plan.limit) return { rows, hasNextPage: page.hasNextPage };
    const last = page.rows.at(-1);
    assert(last !== undefined, "a page that has a next one has a last row");
    after = placeOfRow(last.stored);
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

function emptyConnection<Row>(): Connection<Row> {
  return { rows: [], hasNextPage: false, count: 0 };
}
