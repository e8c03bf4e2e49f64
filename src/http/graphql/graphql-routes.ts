/**
 * `/graphql`: the main thread reads the request and sends the response; a query thread does everything between
 * (src/graphql/graphql-server.ts). A subscription is planned there, and its events are sent from here; so is a lookup,
 * whose document is executed here from then on (src/graphql/lookups.ts).
 * Source: docs/reference/graphql.md#execution.
 * @module
 */
import { Failure, type FailureRow, failures } from "../../failures.ts";
import type { EventHub } from "../../gateway/events/event-hub.ts";
import type { GraphqlJob, GraphqlMediaType, GraphqlReply } from "../../graphql/graphql-server.ts";
import { createLookups, type LookupIndex, type Lookups } from "../../graphql/lookups.ts";
import type { SentRequest } from "../../graphql/request-parameters.ts";
import type { SubscriptionPlan } from "../../graphql/subscription-plan.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type Span, traced } from "../../lib/spans.ts";
import type { IndexReader } from "../../store/index/index-types.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { eventHeaders } from "../live-events.ts";
import { contextOf } from "../request-context.ts";
import { noStore } from "../responses.ts";
import { graphqlEndpoint } from "./graphiql.ts";
import { acceptedForms, disconnectedResponse, errorResponse, readQueryRequest } from "./graphql-request.ts";
import { errorAsEvents, readLastEventId, resultAsEvents, subscriptionResponse } from "./subscription-response.ts";

export type GraphqlOptions = Readonly<{
  /** Query threads. Their timeout is above `timeoutMs`, for statements that cannot be interrupted. */
  pool: Pool<Workers["graphql"]>;
  /** The index: its file for query threads, and a connection to it in this thread for lookups. */
  index: LookupIndex & Pick<IndexReader, "path">;
  /** The folder of cached content. */
  contentFolder: string;
  /** The columnar store; undefined without one. */
  store?: GraphqlJob["store"];
  /** Timeout of a request, including the wait for a free thread but not the start of threads. Milliseconds. */
  timeoutMs: number;
  /** Live events for subscriptions; undefined without them. */
  live?: Pick<EventHub, "subscribe"> | undefined;
  clock: Clock;
  log: Log;
}>;

/** Creates the route `/graphql`. */
export function graphql(options: GraphqlOptions) {
  // Only query threads read the columnar store.
  const lookups = options.store === undefined ? createLookups(options.index) : undefined;
  return graphqlEndpoint((request) => traced("graphql", (span) => respond(request, { ...options, lookups }, span)));
}

type Endpoint = GraphqlOptions & Readonly<{ lookups: Lookups | undefined }>;

async function respond(request: Request, endpoint: Endpoint, span: Span | undefined): Promise<Response> {
  const accepted = acceptedForms(request.headers.get("accept"));
  if (accepted.type === undefined && !accepted.events)
    return errorResponse(
      406,
      "Responses are application/json or application/graphql-response+json, and text/event-stream for subscriptions.",
    );
  const { type = "application/json" } = accepted;
  const { requestId } = contextOf(request);
  const reject = (status: number, message: string, headers = {}) =>
    errorResponse(status, message, { ...noStore, ...headers }, type);
  try {
    const sent = await readQueryRequest(request, type);
    if (sent instanceof Response) return sent;
    const job = { request: sent, mediaType: type, acceptsEvents: accepted.events };
    const reply = lookUp(sent, endpoint, requestId) ?? (await runQuery(job, endpoint, request.signal));
    const { status, subscription, defects } = reply;
    const kind = subscription === undefined ? "query" : "subscription";
    if (span !== undefined) span.attributes = { "graphql.operation.type": kind, "cairn.graphql.status": status };
    for (const error of defects) endpoint.log.error("defect", { requestId, error });
    return subscription === undefined
      ? await resultResponse(request, reply, accepted.type)
      : subscribe(request, subscription, endpoint.live, reject);
  } catch (error) {
    return failedResponse(error, request, endpoint.log, reject);
  }
}

/** Executes a request in this thread; undefined where a query thread must. */
function lookUp(sent: SentRequest, { lookups, log }: Endpoint, requestId: string): GraphqlReply | undefined {
  try {
    const body = lookups?.execute(sent);
    return body === undefined ? undefined : { status: 200, body, defects: [] };
  } catch (error) {
    // A query thread makes the response if it cannot read the row either.
    log.error("lookup failed", { requestId, error });
    return undefined;
  }
}

async function runQuery(
  job: Pick<GraphqlJob, "request" | "mediaType" | "acceptsEvents">,
  { pool, index, contentFolder, store, timeoutMs, lookups, clock }: Endpoint,
  signal: AbortSignal,
): Promise<GraphqlReply> {
  const endsAtMs = clock() + timeoutMs;
  const folders = { indexPath: index.path, contentFolder, store };
  const jobAt = (startMs: number) => ({ ...job, ...folders, endsAtMs: endsAtMs + startMs });
  const reply = await pool.run("executeQuery", jobAt, { signal });
  if (reply.lookup !== undefined) lookups?.add(reply.lookup);
  return reply;
}

/** @param type - Undefined: the client accepts only a stream of events. */
async function resultResponse(
  request: Request,
  { status, body }: GraphqlReply,
  type: GraphqlMediaType | undefined,
): Promise<Response> {
  await contextOf(request).memory.holdComposed(body.byteLength);
  if (type === undefined && status === 200) return resultAsEvents(body);
  return new Response(body, { status, headers: { "Content-Type": `${type ?? "application/json"}; charset=utf-8` } });
}

type Reject = (status: number, message: string, headers?: Readonly<Record<string, string>>) => Response;

function subscribe(request: Request, plan: SubscriptionPlan, live: GraphqlOptions["live"], reject: Reject): Response {
  if (live === undefined) return errorAsEvents("This gateway has no live events.");
  const lastEventId = readLastEventId(request);
  if (lastEventId === "invalid") return reject(400, "Last-Event-ID is not a valid cursor.");
  // The body does not end, so its length cannot be waited for.
  if (contextOf(request).headOnly) return new Response(null, { headers: eventHeaders });
  return subscriptionResponse(live, request, plan, lastEventId);
}

function failedResponse(error: unknown, request: Request, log: Log, reject: Reject): Response {
  if (request.signal.aborted) return disconnectedResponse();
  const { requestId } = contextOf(request);
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
