/**
 * Parameters of a path or a query: each is validated by the schema that the API reference shows.
 * @module
 */
import type { JsonSchema } from "../lib/value-schema.ts";

/** One parameter of a route. */
export type Parameter = Readonly<{
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: JsonSchema;
  example?: string | number;
}>;

/** Validates the value of a parameter: a schema, or a parser. */
type Validated = Readonly<{ schema: JsonSchema }>;

/** A parameter of a path; the example is one that is taken. */
export function pathParameter<Own extends Validated>(
  name: string,
  value: Own,
  example: string,
  description: string,
): Parameter & Own {
  return { ...value, name, in: "path", required: true, description, example };
}

/** A parameter of a query, which may be absent. @param fallback - The value of an absent parameter, if any. */
export function queryParameter<Own extends Validated>(
  name: string,
  value: Own,
  description: string,
  fallback?: string | number,
): Parameter & Own {
  const schema = fallback === undefined ? value.schema : { ...value.schema, default: fallback };
  return { ...value, schema, name, in: "query", required: false, description };
}

/** A parameter that must be there; the example is one that is taken. */
export function requiredParameter<Own extends Parameter>(parameter: Own, example: string): Own {
  return { ...parameter, required: true, example };
}
