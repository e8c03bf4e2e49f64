/**
 * `/graphql` for a gateway whose queries another host answers (`GRAPHQL_HOST`): requests go there, answers come back.
 *
 * Only method, query string, body, Content-Type and Accept go out; only status, Content-Type and body come back.
 * Source: docs/reference/graphql.md#forwarding.
 * @module
 */
import { Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { bodyBytesMax } from "../../graphql/query-limits.ts";
import type { Http, HttpRequest, HttpResponse } from "../../lib/http-client.ts";
import type { Log } from "../../lib/log.ts";
import { createAssetSource } from "../assets.ts";
import { readBody } from "../body.ts";
import { withBodySize } from "../body-size.ts";
import { composingOf, contextOf } from "../context.ts";
import { jsonResponse, jsonType } from "../responses.ts";
import { readTarget } from "../target.ts";
import { graphiqlFilesRoutes, graphiqlPage, wantsPage } from "./graphiql.ts";
import { bundleGraphiql, graphiqlFiles } from "./graphiql-assets.ts";

/** What the route is made of. */
export type GraphqlForwardOptions = Readonly<{
  /** Origin of the other host, without a path: `graphqlOrigin`. */
  origin: string;
  /** A client of that host. */
  http: Http;
  /** A name of this process that no other has; by it a request that comes back is known. */
  name: string;
  log: Log;
}>;

/** Names of the forwarders that a request has passed, separated by commas. */
const passedHeader = "x-cairn-graphql-passed";

/** Forwarders in a row; more is a mistake even without a loop. */
const passedMax = 8;

/** Bytes of an answer that is taken from the other host: a page of a thousand rows has 3 MiB. */
const responseBytesMax = 64 * 2 ** 20;

/**
 * Reads the value of `GRAPHQL_HOST`.
 *
 * @param host - A host, a host and a port, or an origin; without a scheme it is asked by http.
 * @param port - The port where the value names none and no scheme; 443 is asked by https.
 * @returns The origin; `undefined` when the value is none of the three.
 */
export function graphqlOrigin(host: string, port: number): string | undefined {
  const hasScheme = /^https?:\/\//.test(host);
  const url = URL.parse(hasScheme ? host : `${port === 443 ? "https" : "http"}://${host}`);
  if (url === null || url.username !== "" || url.password !== "" || url.host === "") return undefined;
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") return undefined;
  // A port that is the scheme's own is not in `url.port`, whether it was written or not.
  if (!hasScheme && !/:\d+$/.test(host)) url.port = String(port);
  return url.origin;
}

/** Creates the route `/graphql` that forwards. */
export function graphqlForward(options: GraphqlForwardOptions) {
  const source = createAssetSource(graphiqlFiles, bundleGraphiql);
  const reply = ({ request }: { request: Request }) =>
    wantsPage(request) ? graphiqlPage(source) : forward(request, options);
  return new Elysia()
    .use(graphiqlFilesRoutes(source))
    .get("/graphql", reply)
    .post("/graphql", reply, { parse: "none" });
}

async function forward(request: Request, { origin, http, name, log }: GraphqlForwardOptions): Promise<Response> {
  const passed = (request.headers.get(passedHeader) ?? "").split(",").filter((part) => part !== "");
  if (passed.includes(name) || passed.length >= passedMax)
    return errorResponse(508, "The query was forwarded in a loop.");
  let outgoing: HttpRequest;
  try {
    outgoing = await outgoingOf(request, origin, [...passed, name]);
  } catch (error) {
    if (error instanceof Failure && error.code === "too_large")
      return errorResponse(413, `The body is larger than ${bodyBytesMax} bytes.`);
    throw error;
  }
  const { hold, signal } = composingOf(request);
  const reply = await http.whole({ ...outgoing, hold }, responseBytesMax, signal);
  if (reply.kind === "answer" && isJson(reply)) return passedOn(reply);
  const { requestId } = contextOf(request);
  const facts = reply.kind === "answer" ? { status: reply.status, type: reply.headers.get("content-type") } : reply;
  log.warn("query could not be forwarded", { requestId, origin, ...facts });
  return reply.kind === "trouble" && reply.reason === "timeout"
    ? errorResponse(504, "The host that answers queries did not answer in time.")
    : errorResponse(502, "The host that answers queries gave no answer.");
}

async function outgoingOf(request: Request, origin: string, passed: readonly string[]): Promise<HttpRequest> {
  const { query } = readTarget(request.url);
  const url = `${origin}/graphql${query === "" ? "" : `?${query}`}`;
  const headers: Record<string, string> = { [passedHeader]: passed.join(",") };
  for (const name of ["content-type", "accept"]) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  if (request.method !== "POST") return { method: "GET", url, headers };
  return { method: "POST", url, headers, body: await readBody(request, bodyBytesMax) };
}

/** A redirect, a page of a proxy, or an empty error is no answer to a query. */
function isJson({ status, headers }: HttpResponse): boolean {
  const isRedirect = status >= 300 && status < 400;
  return !isRedirect && /^application\/([a-z.-]+\+)?json\b/i.test(headers.get("content-type") ?? "");
}

function passedOn({ status, headers, body }: HttpResponse): Response {
  const type = headers.get("content-type") ?? jsonType;
  const response = new Response(new Uint8Array(body), { status, headers: { "Content-Type": type } });
  return withBodySize(response, body.byteLength);
}

function errorResponse(status: number, message: string): Response {
  return jsonResponse({ errors: [{ message }] }, status, { "Cache-Control": "no-store" });
}
