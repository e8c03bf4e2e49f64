/**
 * Parameters of a path or a query, each with its kind: what judges a parameter is what the API reference shows of it.
 * @module
 */
import type { Schema } from "../lib/kind.ts";

/** One parameter of a route. */
export type Parameter = Readonly<{
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: Schema;
  example?: string | number;
}>;

/** What judges the value of a parameter: a kind, or a reading. */
type Judge = Readonly<{ schema: Schema }>;

/** A parameter of a path; the example is one that is taken. */
export function pathParameter<Own extends Judge>(
  name: string,
  judge: Own,
  example: string,
  description: string,
): Parameter & Own {
  return { ...judge, name, in: "path", required: true, description, example };
}

/** A parameter of a query, which may be absent. @param fallback - What stands for it then, if anything does. */
export function queryParameter<Own extends Judge>(
  name: string,
  judge: Own,
  description: string,
  fallback?: string | number,
): Parameter & Own {
  const schema = fallback === undefined ? judge.schema : { ...judge.schema, default: fallback };
  return { ...judge, schema, name, in: "query", required: false, description };
}

/** A parameter that must be there; the example is one that is taken. */
export function requiredParameter<Own extends Parameter>(parameter: Own, example: string): Own {
  return { ...parameter, required: true, example };
}
