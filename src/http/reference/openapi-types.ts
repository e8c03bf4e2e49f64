/**
 * Types of route descriptions: parameters, bodies and responses of OpenAPI 3.0.
 * @module
 */
import { type FailureCode, type FailureRow, failures } from "../../failures.ts";
import type { JsonSchema } from "../../lib/value-schema.ts";
import type { Parameter } from "../parameter.ts";

export type { JsonSchema as Schema, Parameter };

/** One response of a route. */
export type Result = Readonly<{
  description: string;
  headers?: Readonly<Record<string, unknown>>;
  content?: Readonly<Record<string, Readonly<{ schema: JsonSchema; example?: unknown }>>>;
}>;

/** Responses by status. */
export type Responses = Readonly<Record<number, Result>>;

/** The patterns of identifiers. Source: docs/reference/formats.md#identifiers. */
export const patterns = {
  id: "^[0-9a-zA-Z_-]{43}$",
  blockHash: "^[0-9a-zA-Z_-]{64}$",
  digits: "^[0-9]+$",
  range: "^bytes=\\d*-\\d*(?:,\\d*-\\d*)*$",
} as const;

/** Ids and hashes that are valid and unknown: 32 and 48 bytes of zero. */
export const sampleId = "A".repeat(43);
export const sampleBlockHash = "A".repeat(64);

export const textSchema: JsonSchema = { type: "string" };
export const idSchema: JsonSchema = { type: "string", pattern: patterns.id };
export const countSchema: JsonSchema = { type: "integer", minimum: 0 };

/** A schema of the document's components. */
export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** The schema of an object; fields whose name ends with "?" may be absent. */
export function record(fields: Readonly<Record<string, JsonSchema>>, description?: string): JsonSchema {
  const names = Object.keys(fields);
  return {
    type: "object",
    ...(description === undefined ? {} : { description }),
    ...requiring(names.filter((name) => !name.endsWith("?"))),
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ""), fields[name]])),
  };
}

/** OpenAPI allows no empty list of required fields. */
function requiring(names: readonly string[]): JsonSchema {
  return names.length === 0 ? {} : { required: names };
}

export function inPath(name: string, schema: JsonSchema, example: string, description: string): Parameter {
  return { name, in: "path", required: true, description, schema, example };
}

export function inQuery(name: string, schema: JsonSchema, description: string): Parameter {
  return { name, in: "query", required: false, description, schema };
}

export function inHeader(name: string, schema: JsonSchema, description: string): Parameter {
  return { name, in: "header", required: false, description, schema };
}

/** A JSON response. */
export function json(description: string, schema: JsonSchema): Result {
  return { description, content: { "application/json": { schema } } };
}

/** A plain text response. */
export function text(description: string, schema: JsonSchema = textSchema): Result {
  return { description, content: { "text/plain": { schema } } };
}

/** A response with any bytes. */
export function bytes(description: string): Result {
  return { description, content: { "*/*": { schema: { type: "string", format: "binary" } } } };
}

/** A response without a body. */
export function empty(description: string): Result {
  return { description };
}

/** The responses of failures, with their messages from src/failures.ts; one response a status. */
export function failureResponses(...codes: readonly FailureCode[]): Responses {
  const rows = new Map<number, Set<FailureRow>>();
  for (const code of codes) {
    const row: FailureRow = failures[code];
    rows.set(row.status, (rows.get(row.status) ?? new Set()).add(row));
  }
  return Object.fromEntries([...rows].map(([status, all]) => [status, failureResult([...all])]));
}

/** The responses when sources fail or are late. */
export const sourceFault = failureResponses("source_failed", "busy", "not_synced", "source_timeout");

function failureResult(rows: readonly FailureRow[]): Result {
  const said = rows.filter(({ message, explained }) => message !== "" || explained === true);
  if (said.length === 0) return empty("Rejected; the body is empty.");
  // A message with a reason can be any text.
  const isFixed = said.every(({ explained }) => explained === undefined);
  return {
    description: said.map(saying).join(", or "),
    content: {
      "application/json": {
        schema: isFixed ? oneOfMessages(said.map(({ message }) => message)) : textSchema,
      },
    },
  };
}

/** Generators of clients fail to quote an apostrophe in an enumeration (orval 7.13), so such lists are a pattern. */
function oneOfMessages(messages: readonly string[]): JsonSchema {
  if (!messages.some((message) => message.includes("'"))) return { type: "string", enum: messages };
  const escaped = messages.map((message) => message.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return { type: "string", pattern: `^(?:${escaped.join("|")})$` };
}

function saying({ message, explained }: FailureRow): string {
  if (message === "") return "the reason";
  return explained === undefined ? `\`${message}\`` : `\`${message}\`, with the reason`;
}
