/**
 * `/graphql`: yoga is the front (methods, statuses, media types, errors), a thread does the work.
 *
 * The main thread neither parses nor validates nor executes: it hands the request's text over and sends the bytes that
 * come back.
 * Source: docs/reference/graphql.md#execution.
 * @module
 */
import { yoga } from "@elysiajs/graphql-yoga";
import { Elysia } from "elysia";
import type { GraphQLError } from "graphql";
import { Failure, type FailureRow, failures } from "../../failures.ts";
import type { QueryJob } from "../../graphql/graphql-job.ts";
import type { QueryReply, SentRequest } from "../../graphql/graphql-response.ts";
import { schema } from "../../graphql/graphql-schema.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { createAssetSource } from "../assets.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { graphiqlFilesRoutes, graphiqlPage, wantsPage } from "./graphiql.ts";
import { bundleGraphiql, graphiqlFiles } from "./graphiql-assets.ts";
import {
  acceptedMediaType,
  clientLeft,
  type GraphqlMediaType,
  graphqlError,
  takeQueryRequest,
} from "./graphql-request.ts";

/** What the route is made of. */
export type GraphqlOptions = Readonly<{
  /** Threads of entry `query`; their time-out lies above `timeoutMs`, for statements that cannot be ended. */
  pool: Pool<Workers["graphql"]>;
  /** The index file. */
  indexPath: string;
  /** The folder of cached content. */
  contentFolder: string;
  /** Longest that a request may take, its wait for a free thread included, the start of threads not. Milliseconds. */
  timeoutMs: number;
  clock: Clock;
  log: Log;
}>;

/** Message of everything that is not the caller's fault. */
const defectMessage = "Internal Server Error";

/** What yoga takes for the document of every request. */
const documentOfNothing = "{ __typename }";

/** Creates the route `/graphql`. */
export function graphql(options: GraphqlOptions) {
  // What yoga is not to look into: requests, and finished bodies by the result that stands for them.
  const sent = new WeakMap<Request, SentRequest>();
  const replies = new WeakMap<object, QueryReply>();
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
          onRequestParse: ({ request, setRequestParser }) =>
            setRequestParser(async () => {
              sent.set(request, await takeQueryRequest(request));
              return { query: documentOfNothing };
            }),
          onParams: async ({ request, setResult }) => {
            const taken = sent.get(request);
            assert(taken !== undefined, "a request is taken before it is answered");
            const result = {};
            replies.set(result, await respondInThread(taken, request, options));
            setResult(result);
          },
          onResultProcess: ({ request, result, setResultProcessor }) => {
            const reply = replies.get(result);
            const type = acceptedMediaType(request.headers.get("accept"));
            // Before yoga answers a client that takes no media type of ours with a stream of events.
            if (type === undefined) setResultProcessor(() => notAcceptable(), "application/json");
            if (reply === undefined || type === undefined) return;
            const headers = { "Content-Type": `${type}; charset=utf-8` };
            setResultProcessor(() => new Response(reply.body, { status: statusOf(reply, type), headers }), type);
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
async function respondInThread(
  taken: SentRequest,
  request: Request,
  { pool, indexPath, contentFolder, timeoutMs, clock, log }: GraphqlOptions,
): Promise<QueryReply> {
  const { requestId, memory } = contextOf(request);
  const endsAtMs = clock() + timeoutMs;
  const job = (startMs: number): QueryJob => ({
    request: taken,
    indexPath,
    contentFolder,
    endsAtMs: endsAtMs + startMs,
  });
  try {
    const reply = await pool.run("executeQuery", job, { signal: request.signal });
    for (const error of reply.defects) log.error("defect", { requestId, error });
    await memory.holdComposed(reply.body.byteLength);
    return reply;
  } catch (error) {
    if (request.signal.aborted) throw clientLeft();
    if (error instanceof Failure) {
      log.warn("query failed", { requestId, code: error.code, context: error.context });
      throw failureError(error);
    }
    log.error("defect", { requestId, error });
    throw graphqlError(defectMessage, { status: 500, headers: notStored });
  }
}

function notAcceptable(): Response {
  const message = "Answers are application/json or application/graphql-response+json.";
  return jsonResponse({ errors: [{ message }] }, 406);
}

/** Nobody may keep an answer to trouble of ours. */
const notStored = { "Cache-Control": "no-store" };

function failureError(failure: Failure): GraphQLError {
  if (failure.context["hung"] === true)
    return graphqlError("The query took too long.", { status: 504, headers: notStored });
  const row: FailureRow = failures[failure.code];
  const retry = row.retryAfterSeconds === undefined ? {} : { "Retry-After": String(row.retryAfterSeconds) };
  return graphqlError(row.message, { status: row.status, headers: { ...notStored, ...retry } });
}

/** 400 for what is refused, but 200 for clients of `application/json`, whose libraries read `errors` only then. */
function statusOf({ kind }: QueryReply, type: GraphqlMediaType): number {
  if (kind === "answered") return 200;
  return kind === "refused" && type === "application/json" ? 200 : 400;
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
