/**
 * `/graphql`: the main thread reads the request and sends the response; a query thread does everything between
 * (src/graphql/graphql-server.ts).
 * Source: docs/reference/graphql.md#execution.
 * @module
 */

import { Failure, type FailureRow, failures } from "../../failures.ts";
import type { GraphqlJob } from "../../graphql/graphql-server.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type Span, traced } from "../../lib/spans.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { contextOf } from "../request-context.ts";
import { noStore } from "../responses.ts";
import { graphqlEndpoint } from "./graphiql.ts";
import { acceptedMediaType, disconnectedResponse, errorResponse, readQueryRequest } from "./graphql-request.ts";

export type GraphqlOptions = Readonly<{
  /** Query threads. Their timeout is above `timeoutMs`, for statements that cannot be interrupted. */
  pool: Pool<Workers["graphql"]>;
  /** The index file. */
  indexPath: string;
  /** The folder of cached content. */
  contentFolder: string;
  /** The columnar store; undefined without one. */
  store?: GraphqlJob["store"];
  /** Timeout of a request, including the wait for a free thread but not the start of threads. Milliseconds. */
  timeoutMs: number;
  clock: Clock;
  log: Log;
}>;

/** Creates the route `/graphql`. */
export function graphql(options: GraphqlOptions) {
  return graphqlEndpoint((request) => traced("graphql", (span) => respond(request, options, span)));
}

async function respond(request: Request, options: GraphqlOptions, span: Span | undefined): Promise<Response> {
  const type = acceptedMediaType(request.headers.get("accept"));
  if (type === undefined)
    return errorResponse(406, "Responses are application/json or application/graphql-response+json.");
  const { pool, indexPath, contentFolder, store, timeoutMs, clock, log } = options;
  const { requestId, memory } = contextOf(request);
  const reject = (status: number, message: string, headers = {}) =>
    errorResponse(status, message, { ...noStore, ...headers }, type);
  try {
    const sent = await readQueryRequest(request, type);
    if (sent instanceof Response) return sent;
    const endsAtMs = clock() + timeoutMs;
    const job = (startMs: number): GraphqlJob => ({
      request: sent,
      mediaType: type,
      indexPath,
      contentFolder,
      store,
      endsAtMs: endsAtMs + startMs,
    });
    const { status, body, defects } = await pool.run("executeQuery", job, { signal: request.signal });
    if (span !== undefined) span.attributes = { "graphql.operation.type": "query", "cairn.graphql.status": status };
    for (const error of defects) log.error("defect", { requestId, error });
    await memory.holdComposed(body.byteLength);
    return new Response(body, { status, headers: { "Content-Type": `${type}; charset=utf-8` } });
  } catch (error) {
    if (request.signal.aborted) return disconnectedResponse();
    if (error instanceof Failure) {
      log.warn("query failed", { requestId, code: error.code, context: error.context });
      if (error.context["hung"] === true) return reject(504, "The query took too long.");
      const row: FailureRow = failures[error.code];
      const retry = row.retryAfterSeconds === undefined ? {} : { "Retry-After": String(row.retryAfterSeconds) };
      return reject(row.status, row.message, retry);
    }
    log.error("defect", { requestId, error });
    return reject(500, "Internal Server Error");
  }
}
