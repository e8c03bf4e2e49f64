/**
 * From a request's text to a document that may be executed: parsed, within limits, valid. Known texts are remembered.
 * @module
 */
import { type DocumentNode, GraphQLError, parse, validate } from "graphql";
import { LRUCache } from "lru-cache";
import { schema } from "./graphql-schema.ts";
import { exceededLimits, tokensMax } from "./query-limits.ts";

/** A document, or why it is none. */
export type DocumentReading =
  | Readonly<{ kind: "document"; document: DocumentNode }>
  | Readonly<{ kind: "errors"; errors: readonly GraphQLError[] }>;

/** Reads documents. */
export type DocumentReader = (text: string) => DocumentReading;

/** Characters of query text whose documents are remembered; a syntax tree takes some 50 times its text. */
const rememberedCharactersMax = 256 * 2 ** 10;

/** Validation errors that one answer lists. */
const errorsMax = 20;

/** Creates a reader that remembers the documents it found good. */
export function createDocumentReader(): DocumentReader {
  const known = new LRUCache<string, DocumentNode>({ maxSize: rememberedCharactersMax });
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return { kind: "document", document: before };
    const reading = readDocument(text);
    if (reading.kind === "document") known.set(text, reading.document, { size: Math.max(text.length, 1) });
    return reading;
  };
}

function readDocument(text: string): DocumentReading {
  let document: DocumentNode;
  try {
    document = parse(text, { maxTokens: tokensMax });
  } catch (error) {
    if (error instanceof GraphQLError) return { kind: "errors", errors: [error] };
    throw error;
  }
  const limits = exceededLimits(document);
  if (limits.length > 0) return { kind: "errors", errors: limits };
  const faults = validate(schema, document, undefined, { maxErrors: errorsMax });
  return faults.length > 0 ? { kind: "errors", errors: faults.map(explain) } : { kind: "document", document };
}

/** graphql-js gives up on fields whose merging would take too many comparisons, and does not say so. */
function explain(fault: GraphQLError): GraphQLError {
  return fault.message === "Validation aborted."
    ? new GraphQLError("The query repeats fields too often to be checked.")
    : fault;
}
