/**
 * A GraphQL request off the wire: method, media types, body and query string to what is executed.
 *
 * Stricter and clearer than yoga's own readers: bodies are bounded, and every fault says what was wrong.
 * Source: contract.md §4; GraphQL over HTTP (draft 2024) §4, §5.
 * @module
 */
import { GraphQLError } from "graphql";
import { Failure } from "../../failures.ts";
import type { QueryRequest } from "../../gateway/query/execute.ts";
import { bodyBytesMax } from "../../gateway/query/limits.ts";
import { isJsonFault } from "../../lib/json.ts";
import { objectKind, orNull, recordKind, textKind } from "../../lib/kind.ts";
import { readBody } from "../body.ts";
import { queryParameter } from "../parameter.ts";
import { readTarget } from "../target.ts";

/** Media types in which answers are given. */
export type GraphqlMediaType = "application/json" | "application/graphql-response+json";

/** Status and headers of an answer to an error, as yoga understands them. */
export type ErrorAnswer = Readonly<{
  status: number;
  headers?: Readonly<Record<string, string>>;
  /** Whether clients that ask for `application/json` get status 200: their libraries read `errors` only then. */
  spec?: true;
}>;

const query = textKind({ minLength: 1 });
const operationName = orNull(textKind());

/** A request, as it is judged and as the API reference shows it; other keys are ignored, as GraphQL over HTTP asks. */
export const queryRequestKind = objectKind({ query }, { variables: orNull(recordKind), operationName });

/** The same as `GET` has it. */
export const queryRequestParameters = {
  query: queryParameter("query", query, "The document."),
  variables: queryParameter("variables", textKind(), "An object, as JSON; or nothing."),
  operationName: queryParameter("operationName", textKind(), "Which operation of the document."),
} as const;

/** What is said of each field that is not of its kind. */
const wrongFieldMessages = {
  query: '"query" must be a text that is not empty.',
  variables: '"variables" must be an object.',
  operationName: '"operationName" must be a text.',
} as const;

/** An error with the status that answers it. */
export function graphqlError(message: string, http: ErrorAnswer): GraphQLError {
  return new GraphQLError(message, { extensions: { http } });
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
 * Reads a request.
 *
 * @throws GraphQLError with the status that answers it.
 */
export async function readQueryRequest(request: Request): Promise<QueryRequest> {
  if (acceptedMediaType(request.headers.get("accept")) === undefined)
    throw graphqlError("Not acceptable", { status: 406 });
  if (request.method === "GET") return readForm(readTarget(request.url).query);
  const type = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const read = bodyReaders[type];
  if (read === undefined)
    throw graphqlError(`A body of type "${type}" cannot be read; send application/json.`, { status: 415 });
  return read(await readText(request));
}

const bodyReaders: Readonly<Record<string, (text: string) => QueryRequest>> = {
  "application/json": readJsonText,
  "application/graphql+json": readJsonText,
  "application/graphql": (query) => readParameters({ query }),
  "application/x-www-form-urlencoded": readForm,
};

async function readText(request: Request): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await readBody(request, bodyBytesMax));
  } catch (error) {
    if (error instanceof Failure && error.code === "too_large")
      throw graphqlError(`The body is larger than ${bodyBytesMax} bytes.`, { status: 413 });
    if (error instanceof Failure && error.code === "body_timeout")
      throw graphqlError("The body did not arrive in time.", { status: 408 });
    if (error instanceof TypeError) throw graphqlError("The body is not UTF-8.", { status: 400 });
    throw error;
  }
}

function readJsonText(text: string): QueryRequest {
  return readParameters(readJsonParameter("body", text));
}

function readForm(text: string): QueryRequest {
  if (text.length > bodyBytesMax)
    throw graphqlError(`The query string is larger than ${bodyBytesMax} bytes.`, { status: 413 });
  const form = new URLSearchParams(text);
  const variables = form.get("variables");
  return readParameters({
    query: form.get("query"),
    operationName: form.get("operationName"),
    variables: variables === null || variables === "" ? null : readJsonParameter('"variables"', variables),
  });
}

function readJsonParameter(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!isJsonFault(error)) throw error;
    // The reason is the client's text; which of its characters is at fault is theirs to find.
    throw graphqlError(`The ${what} is not JSON.`, { status: 400 });
  }
}

function readParameters(parameters: unknown): QueryRequest {
  if (Array.isArray(parameters)) throw graphqlError("Batching is not supported.", { status: 400 });
  if (!recordKind.is(parameters)) throw graphqlError("The body must be a JSON object.", { status: 400 });
  const { wrongField, value } = queryRequestKind.judge(parameters);
  if (wrongField !== undefined) throw graphqlError(wrongFieldMessages[wrongField], { status: 400 });
  const { variables, operationName: name } = value;
  return {
    query: value.query,
    ...(isAbsent(variables) ? {} : { variables }),
    ...(isAbsent(name) || name === "" ? {} : { operationName: name }),
  };
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
