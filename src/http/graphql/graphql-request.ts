/**
 * Reads a GraphQL request from HTTP: method, media types, body and query string, within the size limits.
 *
 * The text is parsed in a query thread (src/graphql/graphql-server.ts); a short one may be a lookup, and is parsed here
 * (src/graphql/lookups.ts).
 * Source: docs/reference/graphql.md#limits; GraphQL over HTTP (draft 2024) §4, §5.
 * @module
 */
import { Failure, failures } from "../../failures.ts";
import type { GraphqlMediaType } from "../../graphql/graphql-server.ts";
import { bodyBytesMax } from "../../graphql/query-limits.ts";
import { documentSchema, operationNameSchema, type SentRequest } from "../../graphql/request-parameters.ts";
import { stringSchema } from "../../lib/value-schema.ts";
import { clientClosedStatus, reportsDisconnect } from "../client-disconnect.ts";
import { queryParameter } from "../parameter.ts";
import { readBody } from "../request-body.ts";
import { readTarget } from "../request-target.ts";
import { jsonResponse, noStore } from "../responses.ts";

/** Query parameters of a GET request. */
export const queryRequestParameters = {
  query: queryParameter("query", documentSchema, "The document."),
  variables: queryParameter("variables", stringSchema(), "An object, as JSON; or empty."),
  operationName: queryParameter("operationName", operationNameSchema, "Name of the operation to execute."),
} as const;

/** A response without data. Responses to server errors carry `no-store` in `headers`. */
export function errorResponse(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
  type: GraphqlMediaType = "application/json",
): Response {
  return jsonResponse({ errors: [{ message }] }, status, { "Content-Type": `${type}; charset=utf-8`, ...headers });
}

/** The response to a disconnected client: not sent, and not logged as a defect. */
export function disconnectedResponse(): Response {
  return errorResponse(clientClosedStatus, "The client has disconnected.");
}

/** The forms of a response that a client accepts. */
export type AcceptedForms = Readonly<{
  /** The media type of a result: the first supported one that the client lists. Undefined: none. */
  type: GraphqlMediaType | undefined;
  /** Whether it accepts a stream of events. */
  events: boolean;
}>;

/** Reads the Accept header of a request; null means every form. */
export function acceptedForms(accept: string | null): AcceptedForms {
  let type: GraphqlMediaType | undefined;
  let events = false;
  for (const entry of acceptedTypes(accept ?? "*/*")) {
    if (entry === "application/graphql-response+json") type ??= entry;
    if (["application/json", "application/*", "*/*", ""].includes(entry)) type ??= "application/json";
    if (["text/event-stream", "*/*", ""].includes(entry)) events = true;
  }
  return { type, events };
}

/** The media types of a list, without those of quality 0. */
function acceptedTypes(accept: string): string[] {
  return accept
    .toLowerCase()
    .split(",")
    .map((entry) => entry.split(";").map((part) => part.trim()))
    .filter(([, ...parameters]) => !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)))
    .map(([type = ""]) => type);
}

type Reject = (status: number, message: string, headers?: Readonly<Record<string, string>>) => Response;

/** Reads a request's text; returns the error response when it cannot be read. */
export async function readQueryRequest(request: Request, type: GraphqlMediaType): Promise<SentRequest | Response> {
  const reject: Reject = (status, message, headers = {}) => errorResponse(status, message, headers, type);
  if (request.method === "GET") {
    const { query } = readTarget(request.url);
    return query.length > bodyBytesMax
      ? reject(413, `The query string is larger than ${bodyBytesMax} bytes.`)
      : { form: "form", text: query };
  }
  const sentType = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const form = forms[sentType];
  if (form === undefined) return reject(415, `A body of type "${sentType}" is not supported; send application/json.`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await readBody(request, bodyBytesMax));
    return { form, text };
  } catch (error) {
    if (error instanceof TypeError) return reject(400, "The body is not UTF-8.");
    const response = error instanceof Failure ? bodyFailure(error, reject) : undefined;
    if (response !== undefined) return response;
    if (reportsDisconnect(error, request.signal)) return disconnectedResponse();
    throw error;
  }
}

function bodyFailure({ code }: Failure, reject: Reject): Response | undefined {
  if (code === "too_large") return reject(413, `The body is larger than ${bodyBytesMax} bytes.`);
  if (code === "body_timeout") return reject(408, "The body did not arrive in time.");
  return code === "busy" ? reject(failures.busy.status, failures.busy.message, busyHeaders) : undefined;
}

const forms: Readonly<Record<string, SentRequest["form"]>> = {
  "application/json": "json",
  "application/graphql+json": "json",
  "application/graphql": "document",
  "application/x-www-form-urlencoded": "form",
};

const busyHeaders = { ...noStore, "Retry-After": String(failures.busy.retryAfterSeconds) };
