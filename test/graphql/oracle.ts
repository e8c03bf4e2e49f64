/**
 * Reference executor: graphql-js over objects made row by row.
 * @module
 */
import { type ExecutionResult, graphqlSync } from "graphql";
import { writeBlockCursor } from "../../src/graphql/cursor.ts";
import { schema } from "../../src/graphql/graphql-schema.ts";
import {
  type BlocksArguments,
  readBlocksPlan,
  readTransactionsPlan,
  type TransactionsArguments,
} from "../../src/graphql/page-query.ts";
import type { RequestParameters } from "../../src/graphql/request-parameters.ts";
import { allColumns, type PageBlock, type PageRow } from "../../src/store/index/index-types.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";
import { createMemoryIndex, matches } from "./memory-index.ts";

/** Executes a request with graphql-js; `signatures` by id. Counts are those of fewer than a thousand rows. */
export function executeByGraphqlJs(
  rows: readonly PageRow[],
  blocks: readonly PageBlock[],
  signatures: ReadonlyMap<string, string>,
  request: RequestParameters,
): ExecutionResult {
  const index = createMemoryIndex(rows, blocks);
  const transaction = (row: PageRow) => ({
    id: row.id,
    anchor: row.anchor,
    signature: signatures.get(row.id) ?? null,
    signatureType: row.signatureType === -1 ? 1 : row.signatureType === -2 ? null : row.signatureType,
    recipient: row.target,
    owner: { address: row.ownerAddress, key: row.ownerKey === "" ? null : row.ownerKey },
    fee: amount(row.reward),
    quantity: amount(row.quantity),
    data: {
      size: String(row.size),
      type: row.tags.find(({ name }) => name === "Content-Type")?.value ?? null,
    },
    tags: row.tags,
    block: row.block === undefined ? null : block(row.block),
    parent: row.parentId === undefined ? null : { id: row.parentId },
    bundledIn: row.parentId === undefined ? null : { id: row.parentId },
    ingestedAt: row.ingestedAt,
  });
  const rootValue = {
    transaction: ({ id }: { id: string }) => {
      const row = rows.find((candidate) => candidate.id === id);
      return row === undefined ? null : transaction(row);
    },
    transactions: (given: TransactionsArguments) => {
      const plan = readTransactionsPlan(given, allColumns);
      if (plan === "nothing") return connection({ rows: [], hasNextPage: false }, 0, transaction, () => "");
      const count = rows.filter((row) => matches(row, plan)).length;
      return connection(index.page(plan), count, transaction, ({ place }) => writeTransactionCursor(place));
    },
    block: ({ id }: { id: string }) => {
      const found = blocks.find(({ hash }) => hash === id);
      return found === undefined ? null : block(found);
    },
    blocks: (given: BlocksArguments) => {
      const plan = readBlocksPlan(given);
      if (plan === "nothing") return connection({ rows: [], hasNextPage: false }, 0, block, () => "");
      const page = index.blocks(plan);
      const isUnfiltered = plan.hashes === undefined && plan.height === undefined;
      const isWhole = plan.afterHeight === undefined && !page.hasNextPage;
      const count = isUnfiltered ? blocks.length : isWhole ? page.rows.length : null;
      return connection(page, count, block, ({ height }) => writeBlockCursor(height));
    },
  };
  return graphqlSync({
    schema,
    source: request.query,
    rootValue,
    ...(request.variables === undefined ? {} : { variableValues: request.variables }),
    ...(request.operationName === undefined ? {} : { operationName: request.operationName }),
  });
}

function connection<Row>(
  page: Readonly<{ rows: readonly Row[]; hasNextPage: boolean }>,
  count: number | null,
  node: (row: Row) => object,
  cursorOf: (row: Row) => string,
): object {
  const last = page.rows.at(-1);
  return {
    pageInfo: { hasNextPage: page.hasNextPage, endCursor: last === undefined ? null : cursorOf(last) },
    edges: page.rows.map((row) => ({ cursor: cursorOf(row), node: node(row) })),
    count: count === null ? null : String(count),
  };
}

function amount(winston: bigint): object {
  const whole = winston / 1_000_000_000_000n;
  const rest = winston % 1_000_000_000_000n;
  return { winston: winston.toString(), ar: `${whole}.${String(rest).padStart(12, "0")}` };
}

function block({ hash, timestamp, height, previous }: PageBlock): object {
  return { id: hash, timestamp, height, previous };
}
