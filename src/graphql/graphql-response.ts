/**
 * A GraphQL request as its client sent it: from text to what is executed, and from there to a finished body.
 *
 * All of it is a thread's work: a small text can take milliseconds to read (measured: 6 ms for variables nested 20,000
 * deep, for which content would wait), and nothing but text and bytes crosses between threads.
 * Source: docs/reference/graphql.md#errors; GraphQL over HTTP (draft 2024) §5.
 * @module
 */
import { GraphQLError, type GraphQLFormattedError } from "graphql";
import { isJsonFault } from "../lib/json.ts";
import { objectKind, orNull, recordKind, textKind } from "../lib/kind.ts";
import type { QueryExecutor, QueryRequest } from "./execute.ts";

/** The text of a document. */
export const documentKind = textKind({ minLength: 1 });

/** Which of its operations is meant. */
export const operationNameKind = textKind();

/** A request, as it is judged and as the API reference shows it; other keys are ignored, as GraphQL over HTTP asks. */
export const queryRequestKind = objectKind(
  { query: documentKind },
  { variables: orNull(recordKind), operationName: orNull(operationNameKind), extensions: orNull(recordKind) },
);

/** What is said of each field that is not of its kind. */
const wrongFieldMessages = {
  query: '"query" must be a text that is not empty.',
  variables: '"variables" must be an object.',
  operationName: '"operationName" must be a text.',
  extensions: '"extensions" must be an object.',
} as const;

/** A request off the wire, within its limit of size; it may still be anything. */
export type SentRequest = Readonly<{
  /** How the text is read: an object of parameters, a form of them, or the document alone. */
  form: "json" | "form" | "document";
  text: string;
}>;

/** What comes of one. */
export type QueryReply = Readonly<{
  /** Answered, refused for what its document or variables say, or not to be read at all. */
  kind: "answered" | "refused" | "malformed";
  /** The whole body of the answer. */
  body: Uint8Array<ArrayBuffer>;
  /** For the log only. */
  defects: readonly unknown[];
}>;

/**
 * Reads a request and has it executed.
 *
 * @param checkpoint - Called between steps; throws to end the request.
 */
export function executeSent(sent: SentRequest, execute: QueryExecutor, checkpoint: () => void): QueryReply {
  const request = readSent(sent);
  if (request instanceof GraphQLError) return without("malformed", [request.toJSON()]);
  const response = execute(request, checkpoint);
  return response.kind === "refused" ? without("refused", response.errors) : response;
}

/** An answer without data. */
function without(kind: QueryReply["kind"], errors: readonly GraphQLFormattedError[]): QueryReply {
  return { kind, body: new TextEncoder().encode(JSON.stringify({ errors })), defects: [] };
}

function readSent({ form, text }: SentRequest): QueryRequest | GraphQLError {
  if (form === "document") return readParameters({ query: text });
  if (form === "form") return readForm(new URLSearchParams(text));
  const body = readJsonText(text);
  return body === undefined ? new GraphQLError("The body is not JSON.") : readParameters(body.value);
}

function readForm(form: URLSearchParams): QueryRequest | GraphQLError {
  const text = form.get("variables");
  const variables = text === null || text === "" ? { value: null } : readJsonText(text);
  if (variables === undefined) return new GraphQLError('The "variables" is not JSON.');
  return readParameters({
    query: form.get("query"),
    operationName: form.get("operationName"),
    variables: variables.value,
  });
}

/** `undefined` for what is none; which of its characters is at fault is the client's to find. */
function readJsonText(text: string): Readonly<{ value: unknown }> | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    if (isJsonFault(error)) return undefined;
    throw error;
  }
}

function readParameters(parameters: unknown): QueryRequest | GraphQLError {
  if (Array.isArray(parameters)) return new GraphQLError("Batching is not supported.");
  if (!recordKind.is(parameters)) return new GraphQLError("The body must be a JSON object.");
  const { wrongField, value } = queryRequestKind.judge(parameters);
  if (wrongField !== undefined) return new GraphQLError(wrongFieldMessages[wrongField]);
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
