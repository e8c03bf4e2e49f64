/**
 * Parses the parameters of a GraphQL request from the text that the client sent. Without graphql-js, because the main
 * thread also calls it (lookups.ts).
 * Source: docs/reference/graphql.md#errors; GraphQL over HTTP (draft 2024) §5.
 * @module
 */
import { isJsonFault } from "../lib/json.ts";
import { anyObjectSchema } from "../lib/value-schema.ts";
import { queryRequestSchema, type RequestParameters, type SentRequest } from "./request-parameters.ts";

/** Messages for parameters that do not match the schema. */
const wrongFieldMessages = {
  query: '"query" must be a non-empty string.',
  variables: '"variables" must be an object.',
  operationName: '"operationName" must be a string.',
  extensions: '"extensions" must be an object.',
} as const;

/** Why a text has no parameters: the message of a response with status 400. */
export type MalformedRequest = Readonly<{ malformed: string }>;

/** Parses the text of a request. */
export function parseRequest({ form, text }: SentRequest): RequestParameters | MalformedRequest {
  if (form === "document") return checkParameters({ query: text });
  return form === "form" ? parseForm(new URLSearchParams(text)) : parseBody(text);
}

function parseBody(text: string): RequestParameters | MalformedRequest {
  const parameters = parseJson(text);
  return parameters === notJson ? { malformed: "The body is not JSON." } : checkParameters(parameters);
}

function parseForm(form: URLSearchParams): RequestParameters | MalformedRequest {
  const text = form.get("variables");
  const variables = text === null || text === "" ? null : parseJson(text);
  if (variables === notJson) return { malformed: 'The "variables" is not JSON.' };
  return checkParameters({ query: form.get("query"), operationName: form.get("operationName"), variables });
}

const notJson = Symbol("not JSON");

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (isJsonFault(error)) return notJson;
    throw error;
  }
}

function checkParameters(parameters: unknown): RequestParameters | MalformedRequest {
  if (Array.isArray(parameters)) return { malformed: "Batching is not supported." };
  if (!anyObjectSchema.is(parameters)) return { malformed: "The body must be a JSON object." };
  const { wrongField, value } = queryRequestSchema.parse(parameters);
  if (wrongField !== undefined) return { malformed: wrongFieldMessages[wrongField] };
  const { query, variables, operationName } = value;
  return {
    query,
    ...(isAbsent(variables) ? {} : { variables }),
    ...(isAbsent(operationName) || operationName === "" ? {} : { operationName }),
  };
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
