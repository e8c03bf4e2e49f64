/**
 * JSON schemas of the specification's records, as the tables of its parts state them, and the part of an OpenAPI
 * document that its tests read.
 * @module
 */

export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: "string" };
export const list = (items: Schema): Schema => ({ type: "array", items });
export const named = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

/** A record with these fields; `name?` may be absent. @param more - Further keywords of the schema. */
export function record(fields: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name.replace("?", ""), schema]),
  );
  const required = Object.keys(fields).filter((name) => !name.endsWith("?"));
  return { type: "object", properties, required, ...more };
}

/** An operation of an OpenAPI document. */
export type ReferenceOperation = Readonly<{
  summary?: string;
  tags?: readonly string[];
  parameters?: readonly Readonly<{
    name: string;
    in: string;
    required: boolean;
    schema: Schema;
    example?: string;
  }>[];
  requestBody?: Readonly<{ content: Readonly<Record<string, { example?: unknown; schema: Schema }>> }>;
  responses: Readonly<Record<string, { description?: string; content?: Record<string, { schema: Schema }> }>>;
  security?: unknown;
}>;

/** An OpenAPI document. */
export type Reference = Readonly<{
  openapi: string;
  info: { description: string };
  paths: Readonly<Record<string, Readonly<Record<string, ReferenceOperation>>>>;
  components: { schemas: Schema };
}>;
