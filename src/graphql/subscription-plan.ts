/**
 * Reads a valid subscription into a plan: the changes to send and the fields to write, as plain data for the thread
 * that serves.
 * Source: docs/decisions/103-subscriptions.md; GraphQL specification (October 2021) §6.2.3.
 * @module
 */
import { GraphQLError, getArgumentValues, locatedError } from "graphql";
import { assert } from "../lib/assert.ts";
import { type Bounds, noColumns, type PagePlan } from "../store/index/index-types.ts";
import { type Cursor, readCursor } from "../store/index/journal/journal-cursor.ts";
import type { EventSelection } from "./event-shapes.ts";
import { schema } from "./graphql-schema.ts";
import type { PreparedOperation } from "./operation.ts";
import {
  type BlocksArguments,
  badInput,
  nothing,
  readBlocksPlan,
  readTransactionsPlan,
  type TransactionsArguments,
} from "./page-query.ts";
import { repeatedField, selectFields, writtenField } from "./selection.ts";

/** A subscription. Neither rows nor blocks: a filter of which nothing can be true. */
export type SubscriptionPlan = Readonly<{
  topic: "transactions" | "blocks";
  selection: EventSelection;
  rows: Pick<PagePlan, "ids" | "owners" | "recipients" | "tags" | "bundledIn" | "block"> | undefined;
  blocks: Bounds | undefined;
  after: Cursor | undefined;
}>;

/**
 * Plans a subscription.
 *
 * @returns An error when a value is wrong, or when the selection repeats a field: every subscriber with a selection of
 *   its own costs its writing for each change, and a field without arguments has one value.
 */
export function planSubscription({ operation, scope }: PreparedOperation): SubscriptionPlan | GraphQLError {
  const [field] = selectFields([operation.selectionSet], scope);
  if (field === undefined) return new GraphQLError("A subscription selects one field.", { nodes: operation });
  try {
    const repeated = repeatedField(field);
    if (repeated !== undefined) throw selectedTwice(repeated);
    const definition = schema.getSubscriptionType()?.getFields()[field.name];
    assert(definition !== undefined, "validation found every root field in the schema");
    // graphql-js coerced them to the types of the schema; the types of the plans repeat them.
    const given = getArgumentValues(definition, field.nodes[0], { ...scope.variables });
    const selection = { key: field.key, fields: field.inner.map(writtenField) };
    const after = readAfter(given["after"]);
    if (field.name === "blocks") return { topic: "blocks", selection, rows: undefined, blocks: blocksOf(given), after };
    return { topic: "transactions", selection, rows: rowsOf(given), blocks: undefined, after };
  } catch (error) {
    if (error instanceof GraphQLError) return locatedError(error, field.nodes, [field.key]);
    throw error;
  }
}

function selectedTwice(name: string): GraphQLError {
  return new GraphQLError(`A subscription selects "${name}" twice; once is allowed.`, {
    extensions: { code: "QUERY_TOO_COMPLEX" },
  });
}

function rowsOf(given: TransactionsArguments): SubscriptionPlan["rows"] {
  const { after: _after, ...filters } = given;
  const plan = readTransactionsPlan(filters, noColumns);
  if (plan === nothing) return undefined;
  const { order: _order, limit: _limit, columns: _columns, ...rows } = plan;
  return rows;
}

function blocksOf({ height }: BlocksArguments): Bounds | undefined {
  const plan = readBlocksPlan({ height: height ?? null });
  return plan === nothing ? undefined : (plan.height ?? {});
}

function readAfter(text: unknown): Cursor | undefined {
  if (typeof text !== "string" || text === "") return undefined;
  const cursor = readCursor(text);
  if (cursor === undefined) throw badInput("Invalid event cursor");
  return cursor;
}
