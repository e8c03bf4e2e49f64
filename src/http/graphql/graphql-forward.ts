/**
 * `/graphql` for a gateway that forwards queries to another host (`GRAPHQL_HOST`).
 *
 * Only method, query string, body, Content-Type and Accept are forwarded; only status, Content-Type and body are
 * returned.
 * Source: docs/reference/graphql.md#forwarding.
 * @module
 */
import { Failure } from "../../failures.ts";
import { bodyBytesMax } from "../../graphql/query-limits.ts";
import type { Http, HttpRequest, HttpResponse } from "../../lib/http-client.ts";
import type { Log } from "../../lib/log.ts";
import { readBody } from "../request-body.ts";
import { composingOf, contextOf } from "../request-context.ts";
import { readTarget } from "../request-target.ts";
import { jsonType, noStore, withBodySize } from "../responses.ts";
import { graphqlEndpoint } from "./graphiql.ts";
import { acceptedForms, errorResponse } from "./graphql-request.ts";

export type GraphqlForwardOptions = Readonly<{
  /** Origin of the other host, without a path: `graphqlOrigin`. */
  origin: string;
  /** A client of that host. */
  http: Http;
  /** Unique name of this process: a request that carries it has looped. */
  name: string;
  log: Log;
}>;

/** Header with the names of the forwarders that a request has passed, separated by commas. */
const passedHeader = "x-cairn-graphql-passed";

/** Forwarders in a chain; a longer chain is an error even without a loop. */
const passedMax = 8;

/** Bytes of a response of the other host; a page of a thousand rows has 3 MiB. */
const responseBytesMax = 64 * 2 ** 20;

/**
 * Reads the value of `GRAPHQL_HOST`.
 *
 * @param host - A host, a host and a port, or an origin; http is used if it has no scheme.
 * @param port - The port if the value has neither a port nor a scheme; 443 means https.
 * @returns The origin; `undefined` for any other value.
 */
export function graphqlOrigin(host: string, port: number): string | undefined {
  const hasScheme = /^https?:\/\//.test(host);
  const url = URL.parse(hasScheme ? host : `${port === 443 ? "https" : "http"}://${host}`);
  if (url === null || url.username !== "" || url.password !== "" || url.host === "") return undefined;
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") return undefined;
  // `url.port` is empty for the scheme's default port, even if the value has it.
  if (!hasScheme && !/:\d+$/.test(host)) url.port = String(port);
  return url.origin;
}

/** Creates the route `/graphql` that forwards. */
export function graphqlForward(options: GraphqlForwardOptions) {
  return graphqlEndpoint((request) => forward(request, options));
}

async function forward(request: Request, { origin, http, name, log }: GraphqlForwardOptions): Promise<Response> {
  const accepted = acceptedForms(request.headers.get("accept"));
  if (accepted.type === undefined && accepted.events)
    return errorResponse(406, "Subscriptions are not forwarded to the query host.", noStore);
  const passed = (request.headers.get(passedHeader) ?? "").split(",").filter((part) => part !== "");
  if (passed.includes(name) || passed.length >= passedMax)
    return errorResponse(508, "The query was forwarded in a loop.", noStore);
  let outgoing: HttpRequest;
  try {
    outgoing = await outgoingOf(request, origin, [...passed, name]);
  } catch (error) {
    if (error instanceof Failure && error.code === "too_large")
      return errorResponse(413, `The body is larger than ${bodyBytesMax} bytes.`, noStore);
    throw error;
  }
  const { hold, signal } = composingOf(request);
  const reply = await http.whole({ ...outgoing, hold }, responseBytesMax, signal);
  if (reply.kind === "response" && isJson(reply)) return returned(reply);
  const { requestId } = contextOf(request);
  const details = reply.kind === "response" ? { status: reply.status, type: reply.headers.get("content-type") } : reply;
  log.warn("query could not be forwarded", { requestId, origin, ...details });
  return reply.kind === "fault" && reply.reason === "timeout"
    ? errorResponse(504, "The query host did not respond in time.", noStore)
    : errorResponse(502, "The query host sent no valid response.", noStore);
}

async function outgoingOf(request: Request, origin: string, passed: readonly string[]): Promise<HttpRequest> {
  const { query } = readTarget(request.url);
  const url = `${origin}/graphql${query === "" ? "" : `?${query}`}`;
  const headers: Record<string, string> = { [passedHeader]: passed.join(",") };
  const contentType = request.headers.get("content-type");
  if (contentType !== null) headers["content-type"] = contentType;
  const accept = request.headers.get("accept");
  const { type, events } = acceptedForms(accept);
  // The other host must not respond with a stream that does not end.
  if (accept !== null) headers["accept"] = events && type !== undefined ? type : accept;
  if (request.method !== "POST") return { method: "GET", url, headers };
  return { method: "POST", url, headers, body: await readBody(request, bodyBytesMax) };
}

/** Redirects, HTML pages of proxies and empty errors are not valid responses to a query. */
function isJson({ status, headers }: HttpResponse): boolean {
  const isRedirect = status >= 300 && status < 400;
  return !isRedirect && /^application\/([a-z.-]+\+)?json\b/i.test(headers.get("content-type") ?? "");
}

function returned({ status, headers, body }: HttpResponse): Response {
  const type = headers.get("content-type") ?? jsonType;
  const response = new Response(new Uint8Array(body), { status, headers: { "Content-Type": type } });
  return withBodySize(response, body.byteLength);
}
