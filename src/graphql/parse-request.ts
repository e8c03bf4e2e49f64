/**
 * Parses the parameters of a GraphQL request from the text that the client sent.
 * Source: docs/reference/graphql.md#errors; GraphQL over HTTP (draft 2024) §5.
 * @module
 */
import { GraphQLError } from "graphql";
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

/** @throws GraphQLError with status 400. */
export function parseRequest({ form, text }: SentRequest): RequestParameters {
  if (form === "document") return checkParameters({ query: text });
  return form === "form" ? parseForm(new URLSearchParams(text)) : checkParameters(parseJson(text, "The body"));
}

function parseForm(form: URLSearchParams): RequestParameters {
  const text = form.get("variables");
  return checkParameters({
    query: form.get("query"),
    operationName: form.get("operationName"),
    variables: text === null || text === "" ? null : parseJson(text, 'The "variables"'),
  });
}

function parseJson(text: string, subject: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (isJsonFault(error)) throw malformed(`${subject} is not JSON.`);
    throw error;
  }
}

function checkParameters(parameters: unknown): RequestParameters {
  if (Array.isArray(parameters)) throw malformed("Batching is not supported.");
  if (!anyObjectSchema.is(parameters)) throw malformed("The body must be a JSON object.");
  const { wrongField, value } = queryRequestSchema.parse(parameters);
  if (wrongField !== undefined) throw malformed(wrongFieldMessages[wrongField]);
  const { query, variables, operationName } = value;
  return {
    query,
    ...(isAbsent(variables) ? {} : { variables }),
    ...(isAbsent(operationName) || operationName === "" ? {} : { operationName }),
  };
}

function malformed(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { http: { status: 400 } } });
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
