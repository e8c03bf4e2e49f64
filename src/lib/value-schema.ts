/**
 * Schemas of request values. One value both validates and describes: the API reference shows the schema that is
 * enforced.
 *
 * Elysia's own schemas cannot do this everywhere: they convert digits to numbers and have their own messages
 * (docs/decisions/080-api-reference.md).
 * @module
 */

/** A JSON schema, as far as OpenAPI 3.0 goes. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The schema of a value, and its check. */
export type ValueSchema<Value> = Readonly<{
  schema: JsonSchema;
  /** Whether a value matches the schema. */
  is: (value: unknown) => value is Value;
}>;

/** A parser of a text in a request, with the schema that describes the text. */
export type TextParser<Value> = Readonly<{
  schema: JsonSchema;
  /** `undefined` for an invalid text. */
  read: (text: string) => Value | undefined;
}>;

/** Lengths are in UTF-16 units, inclusive. */
type TextRules = Readonly<{ pattern?: string; minLength?: number; maxLength?: number; description?: string }>;

export function stringSchema(rules: TextRules = {}): ValueSchema<string> {
  const { pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = rules;
  const shape = pattern === undefined ? undefined : new RegExp(pattern);
  const isOfLength = ({ length }: string) => length >= minLength && length <= maxLength;
  return {
    schema: { type: "string", ...rules },
    is: (value): value is string =>
      typeof value === "string" && isOfLength(value) && (shape === undefined || shape.test(value)),
  };
}

/** Texts without control characters (PostgreSQL stores no U+0000). Lengths are in UTF-16 units, inclusive. */
export function lineSchema(minLength: number, maxLength: number): ValueSchema<string> {
  return stringSchema({ pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$", minLength, maxLength });
}

/** One of several texts. */
export function enumSchema<Word extends string>(words: readonly Word[]): ValueSchema<Word> {
  return {
    schema: { type: "string", enum: words },
    is: (value): value is Word => words.some((word) => word === value),
  };
}

/** Safe integers; bounds are inclusive. */
export function integerSchema(minimum = 0, maximum = Number.MAX_SAFE_INTEGER): ValueSchema<number> {
  const bound = maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum };
  return {
    schema: { type: "integer", minimum, ...bound },
    is: (value): value is number =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum,
  };
}

/** Integers in paths and queries: decimal digits without leading zeros; bounds are inclusive. */
export function digitsSchema(minimum: number, maximum: number): ValueSchema<string> {
  const isWithin = (text: string) => Number(text) >= minimum && Number(text) <= maximum;
  return {
    schema: { type: "integer", minimum, maximum },
    is: (value): value is string =>
      typeof value === "string" && /^(0|[1-9][0-9]{0,15})$/.test(value) && isWithin(value),
  };
}

/**
 * Integers in decimal digits, leading zeros allowed; bounds are inclusive.
 *
 * @param digitsMax - Longer texts are invalid; 15 digits are below 2^53.
 */
export function integerParser(minimum: number, maximum: number, digitsMax = 15): TextParser<number> {
  const shape = new RegExp(`^[0-9]{1,${digitsMax}}$`);
  return {
    schema: { type: "integer", minimum, maximum },
    read: (text) => {
      const number = shape.test(text) ? Number(text) : undefined;
      return number !== undefined && number >= minimum && number <= maximum ? number : undefined;
    },
  };
}

/** A parser behind a schema. @param read - Rules beyond the schema are in the schema's description. */
export function textParser<Value>(
  { schema, is }: ValueSchema<string>,
  read: (text: string) => Value | undefined,
): TextParser<Value> {
  return { schema, read: (text) => (is(text) ? read(text) : undefined) };
}

export const booleanSchema: ValueSchema<boolean> = {
  schema: { type: "boolean" },
  is: (value) => typeof value === "boolean",
};

/** JSON objects with any fields. */
export const anyObjectSchema: ValueSchema<Readonly<Record<string, unknown>>> = {
  schema: { type: "object" },
  is: (value): value is Readonly<Record<string, unknown>> =>
    typeof value === "object" && value !== null && !Array.isArray(value),
};

type Schemas = Readonly<Record<string, ValueSchema<unknown>>>;
type ValueOf<Of> = Of extends ValueSchema<infer Value> ? Value : never;
type ObjectOf<Needed, Optional> = { readonly [Name in keyof Needed]: ValueOf<Needed[Name]> } & {
  readonly [Name in keyof Optional]?: ValueOf<Optional[Name]> | undefined;
};

/** Objects whose named fields have schemas; other fields are allowed. */
export type ObjectSchema<Value, Name> = ValueSchema<Value> &
  Readonly<{
    /** The first invalid field, in the order of the schemas; otherwise the typed object. */
    parse: (
      record: Readonly<Record<string, unknown>>,
    ) => Readonly<{ wrongField: Name; value?: undefined }> | Readonly<{ wrongField: undefined; value: Value }>;
  }>;

/** Objects with required and optional fields. */
export function objectSchema<Needed extends Schemas, Optional extends Schemas>(
  needed: Needed,
  optional: Optional,
): ObjectSchema<ObjectOf<Needed, Optional>, keyof Needed | keyof Optional> {
  const all = Object.entries<ValueSchema<unknown>>({ ...needed, ...optional });
  const isValidField = ([name, { is }]: readonly [string, ValueSchema<unknown>], value: unknown) =>
    value === undefined ? !Object.hasOwn(needed, name) : is(value);
  const hasValidFields = (
    record: Readonly<Record<string, unknown>>,
  ): record is Readonly<Record<string, unknown>> & ObjectOf<Needed, Optional> =>
    all.every((field) => isValidField(field, record[field[0]]));
  return {
    schema: {
      type: "object",
      // OpenAPI allows no empty list.
      ...(Object.keys(needed).length === 0 ? {} : { required: Object.keys(needed) }),
      properties: Object.fromEntries(all.map(([name, { schema }]) => [name, schema])),
    },
    is: (value): value is ObjectOf<Needed, Optional> => anyObjectSchema.is(value) && hasValidFields(value),
    parse: (record) => {
      if (hasValidFields(record)) return { wrongField: undefined, value: record };
      const wrong = all.find((field) => !isValidField(field, record[field[0]]));
      // The names of `all` are those of both parameters.
      return { wrongField: wrong?.[0] as keyof Needed | keyof Optional };
    },
  };
}

/** Lists; lengths are inclusive. */
export function listSchema<Value>(
  of: ValueSchema<Value>,
  minItems: number,
  maxItems: number,
): ValueSchema<readonly Value[]> {
  return {
    schema: { type: "array", ...(minItems === 0 ? {} : { minItems }), maxItems, items: of.schema },
    is: (value): value is readonly Value[] =>
      Array.isArray(value) && value.length >= minItems && value.length <= maxItems && value.every(of.is),
  };
}

export function nullable<Value>({ schema, is }: ValueSchema<Value>): ValueSchema<Value | null> {
  return { schema: { ...schema, nullable: true }, is: (value) => value === null || is(value) };
}

/** A schema with a rule that JSON Schema cannot express; the description states it. */
export function refined<Wide, Value extends Wide>(
  { schema, is }: ValueSchema<Wide>,
  rule: (value: Wide) => value is Value,
  description: string,
): ValueSchema<Value> {
  return { schema: { ...schema, description }, is: (value): value is Value => is(value) && rule(value) };
}
