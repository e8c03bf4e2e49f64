/**
 * The fields of a JSON body, each with its kind and what is said when it is not so: what reads a body is what the API
 * reference shows of it.
 * @module
 */
import { Failure, type FailureCode } from "../failures.ts";
import type { JsonSchema, ValueSchema } from "../lib/value-schema.ts";
import { readBody } from "./request-body.ts";

/** Fields of a JSON object, none of them looked at yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** One field of a body. */
export type Field<Value> = Readonly<{
  schema: JsonSchema;
  needed: boolean;
  /** Said when the field is not of its kind. */
  refusal: FailureCode;
  /** @throws Failure `failure`. */
  read: (value: unknown) => Value;
}>;

/** The fields of one body. */
export type Body<Values> = Readonly<{
  schema: JsonSchema;
  /** What may be said of its fields. */
  refusals: readonly FailureCode[];
  /** Reads the fields in their order; others are ignored. @throws Failure one of `refusals`. */
  read: (fields: Fields) => Values;
}>;

type ValuesOf<Named> = {
  readonly [Name in keyof Named]: Named[Name] extends Field<infer Value> ? Value : never;
};

/** A field that must be there. */
export function needed<Value>({ schema, is }: ValueSchema<Value>, refusal: FailureCode): Field<Value> {
  const read = (value: unknown) => {
    if (!is(value)) throw new Failure(refusal, { value });
    return value;
  };
  return { schema, needed: true, refusal, read };
}

/** A field that may be absent, and then has its fallback. */
export function optional<Value, Fallback extends Value | undefined>(
  kind: ValueSchema<Value>,
  refusal: FailureCode,
  fallback: Fallback,
): Field<Value | Fallback> {
  const { schema, read } = needed(kind, refusal);
  return {
    schema: fallback === undefined ? schema : { ...schema, default: fallback },
    needed: false,
    refusal,
    read: (value) => (value === undefined ? fallback : read(value)),
  };
}

/** Puts fields together. */
export function bodyOf<Named extends Readonly<Record<string, Field<unknown>>>>(named: Named): Body<ValuesOf<Named>> {
  const all = Object.entries(named);
  const required = all.filter(([, field]) => field.needed).map(([name]) => name);
  return {
    schema: {
      type: "object",
      ...(required.length === 0 ? {} : { required }),
      properties: Object.fromEntries(all.map(([name, { schema }]) => [name, schema])),
    },
    refusals: [...new Set(all.map(([, { refusal }]) => refusal))],
    // Each value is what its field's reader gave.
    read: (fields) => Object.fromEntries(all.map(([name, { read }]) => [name, read(fields[name])])) as ValuesOf<Named>,
  };
}

/**
 * Reads a body as a JSON object; what is no object has no fields.
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
