/**
 * Lookups: queries for one row by its id, executed on the thread that serves.
 *
 * To pass such a query to a thread and back costs more than twice its execution. A query thread parses and validates a
 * document, and returns a plan if it is a lookup. From then on, requests with that document are executed here, whatever
 * id they have, in a variable or in the document: nothing here depends on graphql-js.
 * Source: docs/decisions/117-lookups.md.
 * @module
 */
import { LRUCache } from "lru-cache";
import { isId } from "../arweave/id.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import { parseRequest } from "./parse-request.ts";
import type { RequestParameters, SentRequest } from "./request-parameters.ts";
import { compileNullable, compileResult, createOutputs, type Output } from "./response-bytes.ts";
import { columnsOf, namesWithin, readBlock } from "./row-reads.ts";
import type { WrittenField } from "./selection.ts";
import { blockShape, transactionShape } from "./shapes.ts";
import { tagBytesOf } from "./tag-json.ts";

/** Characters of a document that can be a lookup. One that selects every field once has 260. */
export const documentCharactersMax = 1_024;

/**
 * Characters of a request that is parsed here: such a document, escaped, with an id. It takes 3 µs, and at most 0.2 ms
 * (objects of which each has another key).
 */
export const requestCharactersMax = 2 * documentCharactersMax;

/** Tags of a row that is written here: a megabyte of them, which an item may have, takes up to 20 ms. Bytes. */
const tagBytesMax = 16 * 2 ** 10;

/** Documents of which plans are cached. */
const plansMax = 128;

/** A query for one row by its id. */
export type LookupPlan = Readonly<{
  /** The text of the document. */
  query: string;
  operationName: string | undefined;
  root: "transaction" | "block";
  /** Where the document has it: what {@link findQuotedId} finds. Or the name of the variable that has it. */
  id: Readonly<{ at: number }> | Readonly<{ variable: string }>;
  /** The response key of the root field, and the fields of the row. */
  key: string;
  fields: readonly WrittenField[];
}>;

/** The reads of the index that lookups use. */
export type LookupIndex = Pick<IndexReader, "encodedRow" | "block">;

/** Executes requests whose documents are known lookups. */
export type Lookups = Readonly<{
  /** Remembers a document. */
  add: (plan: LookupPlan) => void;
  /** The body of the response; undefined for a request that a query thread must execute. */
  execute: (request: SentRequest) => Uint8Array<ArrayBuffer> | undefined;
}>;

/** An id or the hash of a block, as a text of a document. */
type QuotedId = Readonly<{
  name: string;
  /** Position of its first quote in the document. */
  at: number;
  /** The document without the name. */
  rest: string;
}>;

const quotedId = /"([A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{64})"/;

/** Finds the first name of a transaction or block in a document. */
export function findQuotedId(query: string): QuotedId | undefined {
  const match = quotedId.exec(query);
  const name = match?.[1];
  if (match === null || name === undefined) return undefined;
  const { index: at } = match;
  return { name, at, rest: query.slice(0, at + 1) + query.slice(at + 1 + name.length) };
}

type Lookup = Readonly<{ plan: LookupPlan; respond: (id: string) => Uint8Array<ArrayBuffer> | undefined }>;

/** Creates the lookups of one index. */
export function createLookups(index: LookupIndex): Lookups {
  const lookups = new LRUCache<string, Lookup>({ max: plansMax });
  const begin = createOutputs();
  return {
    add: (plan) => {
      const key = findQuotedId(plan.query)?.rest ?? plan.query;
      lookups.set(key, { plan, respond: compile(plan, index, begin) });
    },
    execute: (request) => {
      if (lookups.size === 0 || request.text.length > requestCharactersMax) return undefined;
      const asked = parseRequest(request);
      if ("malformed" in asked) return undefined;
      const quoted = findQuotedId(asked.query);
      const lookup = lookups.get(quoted?.rest ?? asked.query);
      const id = lookup === undefined ? undefined : idOf(lookup.plan, asked, quoted);
      return id === undefined ? undefined : lookup?.respond(id);
    },
  };
}

/**
 * The id that a request asks for.
 *
 * @param quoted - What its document has in quotes. If that is at the place of the plan's id, the document is the plan's
 *   but for the id; elsewhere it may be anything, and the document must be the same.
 * @returns Undefined where graphql-js has to check: another document, name of the operation, or type of the variable.
 */
function idOf(plan: LookupPlan, asked: RequestParameters, quoted: QuotedId | undefined): string | undefined {
  const { id, query, operationName } = plan;
  if (asked.operationName !== undefined && asked.operationName !== operationName) return undefined;
  if ("at" in id) return quoted?.at === id.at ? quoted.name : undefined;
  if (asked.query !== query) return undefined;
  const value = asked.variables?.[id.variable];
  return typeof value === "string" ? value : undefined;
}

function compile({ root, key, fields }: LookupPlan, index: LookupIndex, begin: () => Output): Lookup["respond"] {
  if (root === "block") {
    const respond = compileResult(begin, key, compileNullable(blockShape, fields));
    return (hash) => respond(readBlock(index, hash));
  }
  const respond = compileResult(begin, key, compileNullable(shape, fields));
  const columns = columnsOf(namesWithin(fields));
  return (id) => {
    const row = isId(id) ? index.encodedRow(id, columns) : undefined;
    return row !== undefined && tagBytesOf(row.stored.tags) > tagBytesMax ? undefined : respond(row);
  };
}

/** A lookup selects no signature. */
const shape = transactionShape(() => undefined);
