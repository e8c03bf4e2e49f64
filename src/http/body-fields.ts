/**
 * The fields of a JSON body, each with its schema and the failure for invalid values. The API reference shows the same
 * schemas.
 * @module
 */
import { Failure, type FailureCode } from "../failures.ts";
import type { JsonSchema, ValueSchema } from "../lib/value-schema.ts";
import { readBody } from "./request-body.ts";

/** Fields of a JSON object, not validated yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** One field of a body. */
export type Field<Value> = Readonly<{
  schema: JsonSchema;
  needed: boolean;
  /** The failure of an invalid value. */
  failure: FailureCode;
  /** @throws Failure `failure`. */
  read: (value: unknown) => Value;
}>;

/** The fields of one body. */
export type Body<Values> = Readonly<{
  schema: JsonSchema;
  /** The failures of its fields. */
  failures: readonly FailureCode[];
  /** Reads the fields in their order; others are ignored. @throws Failure one of `failures`. */
  read: (fields: Fields) => Values;
}>;

type ValuesOf<Named> = {
  readonly [Name in keyof Named]: Named[Name] extends Field<infer Value> ? Value : never;
};

/** A required field. */
export function needed<Value>({ schema, is }: ValueSchema<Value>, failure: FailureCode): Field<Value> {
  const read = (value: unknown) => {
    if (!is(value)) throw new Failure(failure, { value });
    return value;
  };
  return { schema, needed: true, failure, read };
}

/** A field with a fallback for its absence. */
export function optional<Value, Fallback extends Value | undefined>(
  of: ValueSchema<Value>,
  failure: FailureCode,
  fallback: Fallback,
): Field<Value | Fallback> {
  const { schema, read } = needed(of, failure);
  return {
    schema: fallback === undefined ? schema : { ...schema, default: fallback },
    needed: false,
    failure,
    read: (value) => (value === undefined ? fallback : read(value)),
  };
}

export function bodyOf<Named extends Readonly<Record<string, Field<unknown>>>>(named: Named): Body<ValuesOf<Named>> {
  const all = Object.entries(named);
  const required = all.filter(([, field]) => field.needed).map(([name]) => name);
  return {
    schema: {
      type: "object",
      ...(required.length === 0 ? {} : { required }),
      properties: Object.fromEntries(all.map(([name, { schema }]) => [name, schema])),
    },
    failures: [...new Set(all.map(([, { failure }]) => failure))],
    // Each value has the type of its field.
    read: (fields) => Object.fromEntries(all.map(([name, { read }]) => [name, read(fields[name])])) as ValuesOf<Named>,
  };
}

/**
 * Reads a body as a JSON object; any other JSON has no fields.
 *
 * @param bytesMax - Inclusive.
 * @throws Failure `too_large`, `malformed_json`, `body_timeout`.
 */
export async function readFields(request: Request, bytesMax: number): Promise<Fields> {
  const bytes = await readBody(request, bytesMax);
  if (bytes.byteLength === 0) return {};
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Failure("malformed_json", { size: bytes.byteLength }, error);
  }
  return typeof body === "object" && body !== null && !Array.isArray(body) ? { ...body } : {};
}
