/**
 * The GraphQL server of a query thread: graphql-yoga, with parsing, validation and execution set by its plugin hooks.
 *
 * What depends on a request's text runs here and not on the thread that serves: a small text can take milliseconds to
 * parse (6 ms for variables nested 20,000 deep), and content requests would wait for it. Only text and finished bytes
 * cross between threads, and plans: of subscriptions and of lookups, short requests for which that thread executes.
 * Source: docs/reference/graphql.md#execution; docs/decisions/095-graphql-yoga.md.
 * @module
 */
import { yoga } from "@elysiajs/graphql-yoga";
import { Elysia } from "elysia";
import { type DocumentNode, type ExecutionArgs, GraphQLError, parse, validate } from "graphql";
import { LRUCache } from "lru-cache";
import type { ColumnStoreOptions } from "../columnar/open-store.ts";
import { assert } from "../lib/assert.ts";
import { exceededLimits } from "./document-size.ts";
import { createQueryExecutor, type ExecutionResult, type QuerySources } from "./execute.ts";
import { schema } from "./graphql-schema.ts";
import { planLookup } from "./lookup-plan.ts";
import type { LookupPlan } from "./lookups.ts";
import { type ExecutionRequest, prepareOperation } from "./operation.ts";
import { parseRequest } from "./parse-request.ts";
import { tokensMax } from "./query-limits.ts";
import type { RequestParameters, SentRequest } from "./request-parameters.ts";
import { planSubscription, type SubscriptionPlan } from "./subscription-plan.ts";

/** Media types of responses. */
export type GraphqlMediaType = "application/json" | "application/graphql-response+json";

/** One request as the main thread passes it to a query thread. */
export type GraphqlJob = Readonly<{
  request: SentRequest;
  /** The media type of a result that is not a stream. */
  mediaType: GraphqlMediaType;
  /** Whether the client accepts a stream of events: subscriptions need it. */
  acceptsEvents: boolean;
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
  /** A subscription, which the main thread streams; then the body is empty. */
  subscription?: SubscriptionPlan | undefined;
  /** How the main thread executes this document from now on; undefined where it must not. */
  lookup?: LookupPlan | undefined;
}>;

/**
 * Responds to requests, one at a time. `checkpoint` is called between steps of the execution and throws to end it.
 *
 * @throws What an unexpected error outside the fields was.
 */
export type GraphqlServer = (
  job: Pick<GraphqlJob, "request" | "mediaType" | "acceptsEvents">,
  checkpoint: () => void,
) => Promise<GraphqlReply>;

/** The parameters of a request, or why it has none. */
type Parsed = RequestParameters | GraphQLError;

type PendingRequest = {
  readonly parsed: Parsed;
  readonly acceptsEvents: boolean;
  readonly checkpoint: () => void;
  readonly defects: unknown[];
  subscription: SubscriptionPlan | undefined;
};

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
  const subscribe = ({ document, variableValues, operationName, contextValue }: ExecutionArgs) => {
    const asked = pendingOf((contextValue as { request: Request }).request);
    const plan = planOf({ document, variables: variableValues, operationName }, asked.acceptsEvents);
    if (Array.isArray(plan)) return { errors: plan };
    asked.subscription = plan;
    const finished = {};
    bodies.set(finished, noBody);
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
          onSubscribe: ({ setSubscribeFn }) => setSubscribeFn(subscribe),
          onResultProcess: ({ request, result, setResultProcessor }) => {
            const body = bodies.get(result);
            const type = request.headers.get("accept");
            if (body !== undefined && type !== null) setResultProcessor(() => new Response(body), type);
          },
        },
      ],
    }),
  );

  const lookupOf = (parsed: Parsed) =>
    parsed instanceof GraphQLError ? undefined : documents.known(parsed.query)?.lookup;

  return async ({ request: sent, mediaType, acceptsEvents }, checkpoint) => {
    const parsed = parsedOf(sent);
    const known = await executeKnown(parsed, documents, (request) => execute(request, checkpoint));
    if (known !== undefined) return known;
    unexpected = undefined;
    const defects: unknown[] = [];
    const request = new Request("http://localhost/graphql", { method: "POST", headers: { Accept: mediaType } });
    const asked: PendingRequest = { parsed, acceptsEvents, checkpoint, defects, subscription: undefined };
    pending.set(request, asked);
    const response = await app.handle(request);
    if (unexpected !== undefined) throw unexpected;
    const body = await response.bytes();
    return { status: response.status, body, defects, subscription: asked.subscription, lookup: lookupOf(parsed) };
  };
}

/** Executes a document that was valid before; undefined where yoga must make the response. */
async function executeKnown(
  parsed: Parsed,
  documents: Documents,
  execute: (request: ExecutionRequest) => Promise<ExecutionResult>,
): Promise<GraphqlReply | undefined> {
  const known = parsed instanceof GraphQLError ? undefined : documents.known(parsed.query);
  if (parsed instanceof GraphQLError || known === undefined) return undefined;
  const { document, lookup } = known;
  const { variables, operationName } = parsed;
  const result = await execute({ document, variables, operationName });
  return result.kind === "rejected" ? undefined : { status: 200, body: result.body, defects: result.defects, lookup };
}

function parsedOf(sent: SentRequest): Parsed {
  const parsed = parseRequest(sent);
  return "malformed" in parsed ? new GraphQLError(parsed.malformed, { extensions: { http: { status: 400 } } }) : parsed;
}

/** Plans what a request subscribes to, or returns why it cannot. */
function planOf(request: ExecutionRequest, acceptsEvents: boolean): SubscriptionPlan | GraphQLError[] {
  if (!acceptsEvents) return [eventsNotAccepted()];
  const prepared = prepareOperation(request);
  if (!("operation" in prepared)) return prepared.map(withoutExecution);
  const plan = planSubscription(prepared);
  return plan instanceof GraphQLError ? [withoutExecution(plan)] : plan;
}

function eventsNotAccepted(): GraphQLError {
  return new GraphQLError("A subscription is sent as text/event-stream, which the request does not accept.", {
    extensions: { http: { status: 406 } },
  });
}

const noBody = new Uint8Array(0);

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined };

/** Parses and validates documents. */
export type Documents = Readonly<{
  /** @throws GraphQLError */
  parse: (text: string | Readonly<{ body: string }>) => DocumentNode;
  validate: (document: DocumentNode) => readonly GraphQLError[];
  /** The document of a text that was valid before, while it is cached. */
  known: (text: string) => KnownDocument | undefined;
}>;

type KnownDocument = Readonly<{ document: DocumentNode; lookup: LookupPlan | undefined }>;

/**
 * Characters of query text whose documents are cached. A syntax tree takes 70 to 100 times its text, and what is
 * compiled of it as much as 32 characters do (measured).
 */
const cachedCharactersMax = 256 * 2 ** 10;
const documentCharacters = 32;

/** Validation errors that one response lists. */
const errorsMax = 20;

/** Creates a parser with a cache of valid documents. */
export function createDocuments(): Documents {
  const valid = new LRUCache<string, KnownDocument>({ maxSize: cachedCharactersMax });
  return {
    known: (text) => valid.get(text),
    parse: (source) => {
      const text = typeof source === "string" ? source : source.body;
      try {
        return valid.get(text)?.document ?? parse(text, { maxTokens: tokensMax });
      } catch (error) {
        throw error instanceof GraphQLError ? withoutExecution(error) : error;
      }
    },
    validate: (document) => {
      const text = document.loc?.source.body ?? "";
      if (valid.peek(text)?.document === document) return [];
      const errors = validationErrors(document);
      if (errors.length > 0) return errors;
      valid.set(text, { document, lookup: planLookup(document, text) }, { size: text.length + documentCharacters });
      return [];
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
