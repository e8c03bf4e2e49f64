/**
 * `/graphql`: yoga is the front (methods, statuses, media types, errors), a thread does the work.
 *
 * The main thread neither parses nor validates nor executes: it hands the request over and sends the bytes that come
 * back. Requests that are refused come back as faults and go through yoga, which knows their status.
 * Source: design.md §7; contract.md §4; reference/graphql.md §0, §4B.
 * @module
 */
import { yoga } from "@elysiajs/graphql-yoga";
import { Elysia } from "elysia";
import { GraphQLError, Source } from "graphql";
import { Failure, type FailureRow, failures } from "../../failures.ts";
import type { QueryAnswer, QueryFault, QueryRequest } from "../../gateway/query/execute.ts";
import type { QueryJob } from "../../gateway/query/job.ts";
import { schema } from "../../gateway/query/schema.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Pool } from "../../threads/pool.ts";
import { jsonAnswer } from "../answers.ts";
import { createAssetSource } from "../assets.ts";
import { contextOf } from "../context.ts";
import { callerLeft } from "../request-figures.ts";
import { graphiqlFilesRoutes, graphiqlPage, wantsPage } from "./graphiql.ts";
import { bundleGraphiql, graphiqlFiles } from "./graphiql-assets.ts";
import { acceptedMediaType, graphqlError, readQueryRequest } from "./graphql-request.ts";

/** What the route is made of. */
export type GraphqlOptions = Readonly<{
  /** Threads of entry `query`; their time-out lies above `timeoutMs`, for statements that cannot be ended. */
  pool: Pool;
  /** The index file. */
  indexPath: string;
  /** The folder of cached content. */
  contentFolder: string;
  /** Longest that a request may take, its wait for a thread included. Milliseconds. */
  timeoutMs: number;
  clock: Clock;
  log: Log;
}>;

/** Message of everything that is not the caller's fault. */
const defectMessage = "Internal Server Error";

/** Creates the route `/graphql`. */
export function graphql(options: GraphqlOptions) {
  // Finished bodies by the result that stands for them inside yoga.
  const bodies = new WeakMap<object, Uint8Array<ArrayBuffer>>();
  const source = createAssetSource(graphiqlFiles, bundleGraphiql);
  return new Elysia().use(graphiqlFilesRoutes(source)).use(
    yoga({
      schema,
      graphiql: false,
      landingPage: false,
      // yoga takes every URL that ends with it, also by its query string; a space stands in no URL.
      healthCheckEndpoint: "no such endpoint",
      maskedErrors: { errorMessage: defectMessage },
      logging: yogaLog(options.log),
      plugins: [
        {
          onRequest: async ({ request, endResponse }) => {
            if (wantsPage(request)) endResponse(await graphiqlPage(source));
          },
          onRequestParse: ({ setRequestParser }) => setRequestParser(readQueryRequest),
          onParams: async ({ params, request, setResult }) => {
            const query = params.query ?? "";
            const answer = await answerInThread({ ...params, query }, request, options);
            const result = answer.kind === "refused" ? { errors: errorsOf(answer.faults, query) } : {};
            if (answer.kind === "answered") bodies.set(result, answer.body);
            setResult(result);
          },
          onResultProcess: ({ request, result, setResultProcessor }) => {
            const body = bodies.get(result);
            const type = acceptedMediaType(request.headers.get("accept"));
            // Before yoga answers a client that takes no media type of ours with a stream of events.
            if (type === undefined) setResultProcessor(() => notAcceptable(), "application/json");
            if (body === undefined || type === undefined) return;
            const headers = { "Content-Type": `${type}; charset=utf-8` };
            setResultProcessor(() => new Response(body, { headers }), type);
          },
        },
      ],
    }),
  );
}

/**
 * Has a thread answer a request, unless its client leaves before a thread is free.
 *
 * @throws GraphQLError with the status that answers it.
 */
async function answerInThread(
  { query, variables, operationName }: QueryRequest,
  request: Request,
  { pool, indexPath, contentFolder, timeoutMs, clock, log }: GraphqlOptions,
): Promise<QueryAnswer> {
  const { requestId } = contextOf(request);
  const job: QueryJob = {
    request: {
      query,
      ...(variables === undefined ? {} : { variables }),
      ...(operationName === undefined ? {} : { operationName }),
    },
    indexPath,
    contentFolder,
    endsAtMs: clock() + timeoutMs,
  };
  try {
    const answer = await pool.run<QueryAnswer>("answerQuery", job, { signal: request.signal });
    if (answer.kind === "answered")
      for (const error of answer.defects) log.error("defect", { requestId, error });
    return answer;
  } catch (error) {
    if (request.signal.aborted) throw graphqlError("The client has left.", { status: callerLeft });
    if (error instanceof Failure) {
      log.warn("query failed", { requestId, code: error.code, facts: error.facts });
      throw failureError(error);
    }
    log.error("defect", { requestId, error });
    throw graphqlError(defectMessage, { status: 500, headers: notKept });
  }
}

function notAcceptable(): Response {
  const message = "Answers are application/json or application/graphql-response+json.";
  return jsonAnswer({ errors: [{ message }] }, 406);
}

/** Nobody may keep an answer to trouble of ours. */
const notKept = { "Cache-Control": "no-store" };

function failureError(failure: Failure): GraphQLError {
  if (failure.facts["hung"] === true)
    return graphqlError("The query took too long.", { status: 504, headers: notKept });
  const row: FailureRow = failures[failure.code];
  const retry = row.retryAfterSeconds === undefined ? {} : { "Retry-After": String(row.retryAfterSeconds) };
  return graphqlError(row.message, { status: row.status, headers: { ...notKept, ...retry } });
}

/** Faults of a document: 400, or 200 for clients that ask for `application/json`. Source: contract.md §4. */
function errorsOf(faults: readonly QueryFault[], query: string): GraphQLError[] {
  const source = new Source(query);
  return faults.map(
    ({ message, positions, extensions }) =>
      new GraphQLError(message, {
        source,
        positions: positions.length === 0 ? null : positions,
        extensions: { ...extensions, http: { status: 400, spec: true } },
      }),
  );
}

function yogaLog(log: Log) {
  const quiet = () => undefined;
  return {
    debug: quiet,
    info: quiet,
    warn: (error: unknown) => log.warn("graphql", { error }),
    error: (error: unknown) => log.error("defect", { error }),
  };
}
