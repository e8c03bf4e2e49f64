/**
 * A GraphQL request off the wire: method, media types, body and query string to the text that a thread reads.
 *
 * Stricter and clearer than yoga's own readers: bodies are bounded, and every fault says what was wrong.
 * Source: docs/reference/graphql.md#limits; GraphQL over HTTP (draft 2024) §4, §5.
 * @module
 */
import { GraphQLError } from "graphql";
import { Failure, failures } from "../../failures.ts";
import { documentKind, operationNameKind, type SentRequest } from "../../graphql/graphql-response.ts";
import { bodyBytesMax } from "../../graphql/query-limits.ts";
import { textKind } from "../../lib/kind.ts";
import { readBody } from "../body.ts";
import { callerLeft, reportsDisconnect } from "../client-disconnect.ts";
import { queryParameter } from "../parameter.ts";
import { readTarget } from "../target.ts";

/** Media types in which answers are given. */
export type GraphqlMediaType = "application/json" | "application/graphql-response+json";

/** Status and headers of an answer to an error, as yoga understands them. */
export type ErrorResponse = Readonly<{
  status: number;
  headers?: Readonly<Record<string, string>>;
}>;

/** A request as `GET` has it. */
export const queryRequestParameters = {
  query: queryParameter("query", documentKind, "The document."),
  variables: queryParameter("variables", textKind(), "An object, as JSON; or nothing."),
  operationName: queryParameter("operationName", operationNameKind, "Which operation of the document."),
} as const;

/** An error with the status that answers it. */
export function graphqlError(message: string, http: ErrorResponse): GraphQLError {
  return new GraphQLError(message, { extensions: { http } });
}

/** The error of a request whose client has disconnected: nobody reads it, and it is no defect. */
export function clientLeft(): GraphQLError {
  return graphqlError("The client has left.", { status: callerLeft });
}

/**
 * The media type of the answer: the first that the client lists and that is ours.
 *
 * @param accept - The request's Accept header; null takes JSON.
 * @returns `undefined` when the client takes none of ours.
 */
export function acceptedMediaType(accept: string | null): GraphqlMediaType | undefined {
  for (const entry of (accept ?? "*/*").toLowerCase().split(",")) {
    const [type = "", ...parameters] = entry.split(";").map((part) => part.trim());
    if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) continue;
    if (type === "application/graphql-response+json") return type;
    if (["application/json", "application/*", "*/*", ""].includes(type)) return "application/json";
  }
  return undefined;
}

/**
 * Takes a request's text.
 *
 * @throws GraphQLError with the status that answers it.
 */
export async function takeQueryRequest(request: Request): Promise<SentRequest> {
  if (acceptedMediaType(request.headers.get("accept")) === undefined)
    throw graphqlError("Not acceptable", { status: 406 });
  if (request.method === "GET") return { form: "form", text: takeQueryString(request.url) };
  const type = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const form = forms[type];
  if (form === undefined)
    throw graphqlError(`A body of type "${type}" cannot be read; send application/json.`, { status: 415 });
  return { form, text: await takeBody(request) };
}

const forms: Readonly<Record<string, SentRequest["form"]>> = {
  "application/json": "json",
  "application/graphql+json": "json",
  "application/graphql": "document",
  "application/x-www-form-urlencoded": "form",
};

function takeQueryString(url: string): string {
  const { query } = readTarget(url);
  if (query.length > bodyBytesMax)
    throw graphqlError(`The query string is larger than ${bodyBytesMax} bytes.`, { status: 413 });
  return query;
}

const busyHeaders = { "Cache-Control": "no-store", "Retry-After": String(failures.busy.retryAfterSeconds) };

async function takeBody(request: Request): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await readBody(request, bodyBytesMax));
  } catch (error) {
    if (error instanceof Failure && error.code === "too_large")
      throw graphqlError(`The body is larger than ${bodyBytesMax} bytes.`, { status: 413 });
    if (error instanceof Failure && error.code === "body_timeout")
      throw graphqlError("The body did not arrive in time.", { status: 408 });
    if (error instanceof Failure && error.code === "busy")
      throw graphqlError(failures.busy.message, { status: failures.busy.status, headers: busyHeaders });
    if (error instanceof TypeError) throw graphqlError("The body is not UTF-8.", { status: 400 });
    if (reportsDisconnect(error, request.signal)) throw clientLeft();
    throw error;
  }
}
