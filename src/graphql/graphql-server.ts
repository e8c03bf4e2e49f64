/**
 * The GraphQL server of a query thread: graphql-yoga, with parsing, validation and execution set by its plugin hooks.
 *
 * Everything that depends on a request's text runs here and not on the thread that serves: a small text can take
 * milliseconds to parse (6 ms for variables nested 20,000 deep), and content requests would wait for it. Only text and
 * finished bytes cross between threads.
 * Source: docs/reference/graphql.md#execution; docs/decisions/095-graphql-yoga.md.
 * @module
 */
import { yoga } from "@elysiajs/graphql-yoga";
import { Elysia } from "elysia";
import { type DocumentNode, type ExecutionArgs, GraphQLError, parse, validate } from "graphql";
import { LRUCache } from "lru-cache";
import type { ColumnStoreOptions } from "../columnar/open-store.ts";
import { assert } from "../lib/assert.ts";
import { createQueryExecutor, type QuerySources } from "./execute.ts";
import { schema } from "./graphql-schema.ts";
import { exceededLimits, tokensMax } from "./query-limits.ts";
import { parseRequest, type RequestParameters, type SentRequest } from "./request-parameters.ts";

/** Media types of responses. */
export type GraphqlMediaType = "application/json" | "application/graphql-response+json";

/** One request as the main thread passes it to a query thread. */
export type GraphqlJob = Readonly<{
  request: SentRequest;
  /** The media type that the client accepts. */
  mediaType: GraphqlMediaType;
  /** The index file. */
  indexPath: string;
  /** The folder of cached content. */
  contentFolder: string;
  /** The columnar store with the rows of stored heights; undefined without one. */
  store?: ColumnStoreOptions | undefined;
  /** Deadline, including the wait for a thread. Unix milliseconds. */
  endsAtMs: number;
}>;

/** A finished response. */
export type GraphqlReply = Readonly<{
  status: number;
  body: Uint8Array<ArrayBuffer>;
  /** For the log only: the body masks them. */
  defects: readonly unknown[];
}>;

/**
 * Responds to requests, one at a time. `checkpoint` is called between steps of the execution and throws to end it.
 *
 * @throws What an unexpected error outside the fields was.
 */
export type GraphqlServer = (
  request: SentRequest,
  mediaType: GraphqlMediaType,
  checkpoint: () => void,
) => Promise<GraphqlReply>;

/** The parameters of a request, or why it has none. */
type Parsed = RequestParameters | GraphQLError;

type PendingRequest = Readonly<{ parsed: Parsed; checkpoint: () => void; defects: unknown[] }>;

/** Creates the server of one index. */
export function createGraphqlServer(sources: QuerySources): GraphqlServer {
  const documents = createDocuments();
  const execute = createQueryExecutor(sources);
  const pending = new WeakMap<Request, PendingRequest>();
  const bodies = new WeakMap<object, Uint8Array<ArrayBuffer>>();
  let unexpected: unknown;

  const pendingOf = (request: Request): PendingRequest => {
    const found = pending.get(request);
    assert(found !== undefined, "yoga passes on the request that it was given");
    return found;
  };
  const run = async ({ document, variableValues, operationName, contextValue }: ExecutionArgs) => {
    const { checkpoint, defects } = pendingOf((contextValue as { request: Request }).request);
    const result = await execute({ document, variables: variableValues, operationName }, checkpoint);
    if (result.kind === "rejected") return { errors: result.errors.map(withoutExecution) };
    defects.push(...result.defects);
    const finished = {};
    bodies.set(finished, result.body);
    return finished;
  };

  const app = new Elysia().use(
    yoga({
      schema,
      graphiql: false,
      landingPage: false,
      parserCache: false,
      validationCache: false,
      logging: { ...quiet, error: (error: unknown) => (unexpected = error) },
      plugins: [
        {
          onRequestParse: ({ request, setRequestParser }) =>
            setRequestParser(() => {
              const { parsed } = pendingOf(request);
              if (parsed instanceof GraphQLError) throw parsed;
              return parsed;
            }),
          onParse: ({ setParseFn }) => setParseFn(documents.parse),
          onValidate: ({ setValidationFn }) => setValidationFn((_schema, document) => documents.validate(document)),
          onExecute: ({ setExecuteFn }) => setExecuteFn(run),
          onSubscribe: ({ setSubscribeFn }) => setSubscribeFn(run),
          onResultProcess: ({ request, result, setResultProcessor }) => {
            const body = bodies.get(result);
            const type = request.headers.get("accept");
            if (body !== undefined && type !== null) setResultProcessor(() => new Response(body), type);
          },
        },
      ],
    }),
  );

  /** Executes a document that was valid before; undefined where yoga must make the response. */
  const executeKnown = async (parsed: Parsed, checkpoint: () => void): Promise<GraphqlReply | undefined> => {
    const document = parsed instanceof GraphQLError ? undefined : documents.known(parsed.query);
    if (parsed instanceof GraphQLError || document === undefined) return undefined;
    const { variables, operationName } = parsed;
    const result = await execute({ document, variables, operationName }, checkpoint);
    return result.kind === "rejected" ? undefined : { status: 200, body: result.body, defects: result.defects };
  };

  return async (sent, mediaType, checkpoint) => {
    const parsed = parsedOf(sent);
    const known = await executeKnown(parsed, checkpoint);
    if (known !== undefined) return known;
    unexpected = undefined;
    const defects: unknown[] = [];
    const request = new Request("http://localhost/graphql", { method: "POST", headers: { Accept: mediaType } });
    pending.set(request, { parsed, checkpoint, defects });
    const response = await app.handle(request);
    if (unexpected !== undefined) throw unexpected;
    return { status: response.status, body: await response.bytes(), defects };
  };
}

function parsedOf(sent: SentRequest): Parsed {
  try {
    return parseRequest(sent);
  } catch (error) {
    if (error instanceof GraphQLError) return error;
    throw error;
  }
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined };

/** Parses and validates documents. */
export type Documents = Readonly<{
  /** @throws GraphQLError */
  parse: (text: string | Readonly<{ body: string }>) => DocumentNode;
  validate: (document: DocumentNode) => readonly GraphQLError[];
  /** The document of a text that was valid before, while it is cached. */
  known: (text: string) => DocumentNode | undefined;
}>;

/** Characters of query text whose documents are cached; a syntax tree takes some 50 times its text. */
const cachedCharactersMax = 256 * 2 ** 10;

/** Validation errors that one response lists. */
const errorsMax = 20;

/** Creates a parser with a cache of valid documents. */
export function createDocuments(): Documents {
  const valid = new LRUCache<string, DocumentNode>({ maxSize: cachedCharactersMax });
  return {
    known: (text) => valid.get(text),
    parse: (source) => {
      const text = typeof source === "string" ? source : source.body;
      try {
        return valid.get(text) ?? parse(text, { maxTokens: tokensMax });
      } catch (error) {
        throw error instanceof GraphQLError ? withoutExecution(error) : error;
      }
    },
    validate: (document) => {
      const text = document.loc?.source.body ?? "";
      if (valid.peek(text) === document) return [];
      const errors = validationErrors(document);
      if (errors.length === 0) valid.set(text, document, { size: Math.max(text.length, 1) });
      return errors;
    },
  };
}

/** graphql-js validates some rules in quadratic time, so the limits come first. */
function validationErrors(document: DocumentNode): readonly GraphQLError[] {
  const exceeded = exceededLimits(document);
  return exceeded.length > 0
    ? exceeded
    : validate(schema, document, undefined, { maxErrors: errorsMax }).map(explainAborted);
}

/** graphql-js stops comparing fields that repeat too often, and its message does not say so. */
function explainAborted(error: GraphQLError): GraphQLError {
  return error.message === "Validation aborted."
    ? new GraphQLError("The query repeats fields too often to be validated.")
    : error;
}

/** Marks an error that prevented execution: 200 for application/json, 400 for application/graphql-response+json. */
function withoutExecution(error: GraphQLError): GraphQLError {
  error.extensions["http"] = { spec: true, status: 400 };
  return error;
}
