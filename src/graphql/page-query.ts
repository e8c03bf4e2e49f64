/**
 * Reads the arguments of a root field into the plan that the index understands.
 *
 * A filter that cannot match (an invalid id, a range that ends before it begins) becomes "nothing", never an
 * error: clients send what users type. What asks for too much is an error that says so.
 * Source: docs/reference/graphql.md#filters-and-order.
 * @module
 */
import { GraphQLError } from "graphql";
import { type Id, isAddress, isBlockHash, isId, isOwnerAddress } from "../arweave/id.ts";
import type { BlocksPlan, Bounds, PageColumns, PagePlan, TagPlan } from "../store/index/index-types.ts";
import { pendingHeight } from "../store/index/place.ts";
import { readBlockCursor, readTransactionCursor } from "./cursor.ts";
import { idsMax, listMax, pageRowsMax, tagFiltersMax } from "./query-limits.ts";

/** A filter of which nothing can be true. */
export const nothing = "nothing";

/** Arguments of `transactions`, as graphql-js has coerced them. */
export type TransactionsArguments = Readonly<{
  ids?: readonly string[] | null;
  owners?: readonly string[] | null;
  recipients?: readonly string[] | null;
  tags?: readonly TagFilterArgument[] | null;
  bundledIn?: readonly string[] | null;
  parent?: readonly string[] | null;
  block?: RangeArgument | null;
  ingested_at?: RangeArgument | null;
  first?: number | null;
  after?: string | null;
  sort?: SortOrder | null;
}>;

/** Arguments of `blocks`, as graphql-js has coerced them. */
export type BlocksArguments = Readonly<{
  ids?: readonly string[] | null;
  height?: RangeArgument | null;
  first?: number | null;
  after?: string | null;
  sort?: SortOrder | null;
}>;

type SortOrder = "HEIGHT_ASC" | "HEIGHT_DESC";
type RangeArgument = Readonly<{ min?: number | null; max?: number | null }>;
type TagFilterArgument = Readonly<{ name: string; values: readonly string[]; op?: "EQ" | "NEQ" | null }>;

const defaultRows = 10;

/** Unix seconds that a bound of `ingested_at` can name: what GraphQL's Int holds. */
const secondsMax = 2 ** 31 - 1;

/**
 * Reads the arguments of `transactions`.
 *
 * @throws GraphQLError when `first` is below 1, `after` is not a cursor, or a list is too long.
 */
export function readTransactionsPlan(given: TransactionsArguments, columns: PageColumns): PagePlan | typeof nothing {
  const ids = readList("ids", given.ids, idsMax, isId);
  const owners = readList("owners", given.owners, listMax, isOwnerAddress);
  const recipients = readList("recipients", given.recipients, listMax, isAddress);
  const bundledIn = readBundledIn(given);
  const block = readBounds(given.block, pendingHeight - 1);
  const ingestedAt = readBounds(given.ingested_at, secondsMax);
  const tags = readTags(given.tags);
  const after = readAfter("transaction", given.after, readTransactionCursor);
  const limit = readFirst(given.first);
  if (ids === nothing || owners === nothing || recipients === nothing) return nothing;
  if (bundledIn === nothing || block === nothing || ingestedAt === nothing) return nothing;
  return {
    ...present({ ids, owners, recipients, tags, bundledIn, block, ingestedAt, after }),
    order: readOrder(given.sort),
    limit,
    columns,
  };
}

/**
 * Reads the arguments of `blocks`.
 *
 * @throws GraphQLError as `readTransactionsPlan`.
 */
export function readBlocksPlan(given: BlocksArguments): BlocksPlan | typeof nothing {
  const hashes = readList("ids", given.ids, idsMax, isBlockHash);
  const height = readBounds(given.height, pendingHeight - 1);
  const afterHeight = readAfter("block", given.after, readBlockCursor);
  const limit = readFirst(given.first);
  if (hashes === nothing || height === nothing) return nothing;
  return { ...present({ hashes, height, afterHeight }), order: readOrder(given.sort), limit };
}

/** An error that is the caller's: its message is shown. */
export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_USER_INPUT" } });
}

function readFirst(first: number | null | undefined): number {
  const rows = first ?? defaultRows;
  if (rows < 1) throw badInput(`"first" is ${rows}; it must be 1 or more.`);
  return Math.min(rows, pageRowsMax);
}

function readOrder(sort: SortOrder | null | undefined): "asc" | "desc" {
  return sort === "HEIGHT_ASC" ? "asc" : "desc";
}

function readAfter<Position>(
  what: "transaction" | "block",
  text: string | null | undefined,
  read: (text: string) => Position | undefined,
): Position | undefined {
  // ar-gql sends "" for the first page.
  if (text === undefined || text === null || text === "") return undefined;
  const position = read(text);
  if (position === undefined) throw badInput(`Invalid ${what} cursor`);
  return position;
}

/** A list of names without repeats; entries that cannot be names match nothing and go. */
function readList<Name extends string>(
  argument: string,
  list: readonly string[] | null | undefined,
  max: number,
  isName: (text: string) => text is Name,
): readonly Name[] | undefined | typeof nothing {
  if (list === undefined || list === null || list.length === 0) return undefined;
  checkLength(argument, list.length, max);
  const names = [...new Set(list)].filter(isName);
  return names.length === 0 ? nothing : names;
}

function readBundledIn(given: TransactionsArguments): ReturnType<typeof readList<Id>> | null {
  const argument = given.bundledIn === undefined ? "parent" : "bundledIn";
  const list = given[argument];
  return list === null ? null : readList(argument, list, listMax, isId);
}

function readTags(filters: readonly TagFilterArgument[] | null | undefined): readonly TagPlan[] | undefined {
  if (filters === undefined || filters === null || filters.length === 0) return undefined;
  checkLength("tags", filters.length, tagFiltersMax);
  return filters.map(({ name, values, op }) => {
    checkLength("values", values.length, listMax);
    return { name, values: [...new Set(values)], op: op ?? "EQ" };
  });
}

function readBounds(range: RangeArgument | null | undefined, max: number): Bounds | undefined | typeof nothing {
  const least = range?.min ?? undefined;
  const most = range?.max ?? undefined;
  if (least === undefined && most === undefined) return undefined;
  const bounds = { min: Math.max(least ?? 0, 0), max: Math.min(most ?? max, max) };
  return bounds.min > bounds.max ? nothing : bounds;
}

function checkLength(argument: string, length: number, max: number): void {
  if (length > max) throw badInput(`"${argument}" has ${length} entries; at most ${max} are allowed.`);
}

/** The same fields without those that are undefined. */
function present<Fields extends object>(fields: Fields): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };
}
