/**
 * Parameters of a path or a query, each with its kind: what judges a parameter is what the API reference shows of it.
 * @module
 */
import type { Kind, Schema } from "../lib/kind.ts";

/** One parameter of a route. */
export type Parameter = Readonly<{
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: Schema;
  example?: string | number;
}>;

/** A parameter that can judge a text. */
export type JudgedParameter<Value extends string> = Parameter & Pick<Kind<Value>, "is">;

/** A parameter of a path; the example is of its kind. */
export function pathParameter<Value extends string>(
  name: string,
  { schema, is }: Kind<Value>,
  example: string,
  description: string,
): JudgedParameter<Value> {
  return { name, in: "path", required: true, description, schema, example, is };
}

/** A parameter of a query, which may be absent. */
export function queryParameter<Value extends string>(
  name: string,
  { schema, is }: Kind<Value>,
  description: string,
): JudgedParameter<Value> {
  return { name, in: "query", required: false, description, schema, is };
}
