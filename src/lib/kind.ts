/**
 * Schemas of values in requests, each written once: the schema of the API reference and the validation of a value.
 *
 * Elysia's own schemas are not used: they convert digits to numbers, and reject with their own messages
 * (docs/decisions/080-api-reference.md).
 * @module
 */

/** A JSON schema, as far as OpenAPI 3.0 goes. */
export type Schema = Readonly<Record<string, unknown>>;

export type Kind<Value> = Readonly<{
  schema: Schema;
  /** Whether a value is valid by the schema. */
  is: (value: unknown) => value is Value;
}>;

/** A parser of text in a request, with its schema. */
export type Reading<Value> = Readonly<{
  schema: Schema;
  /** Returns `undefined` for an invalid text. */
  read: (text: string) => Value | undefined;
}>;

/** Rules of a text. Lengths are in UTF-16 units, inclusive. */
type TextRules = Readonly<{ pattern?: string; minLength?: number; maxLength?: number; description?: string }>;

export function textKind(rules: TextRules = {}): Kind<string> {
  const { pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = rules;
  const shape = pattern === undefined ? undefined : new RegExp(pattern);
  const isOfLength = ({ length }: string) => length >= minLength && length <= maxLength;
  return {
    schema: { type: "string", ...rules },
    is: (value): value is string =>
      typeof value === "string" && isOfLength(value) && (shape === undefined || shape.test(value)),
  };
}

/** One of some words. */
export function wordKind<Word extends string>(words: readonly Word[]): Kind<Word> {
  return {
    schema: { type: "string", enum: words },
    is: (value): value is Word => words.some((word) => word === value),
  };
}

/** Safe integers; bounds are inclusive. */
export function countKind(minimum = 0, maximum = Number.MAX_SAFE_INTEGER): Kind<number> {
  const bound = maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum };
  return {
    schema: { type: "integer", minimum, ...bound },
    is: (value): value is number =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum,
  };
}

/** Whole numbers in paths and queries: decimal digits without leading zeros; bounds are inclusive. */
export function digitsKind(minimum: number, maximum: number): Kind<string> {
  const isWithin = (text: string) => Number(text) >= minimum && Number(text) <= maximum;
  return {
    schema: { type: "integer", minimum, maximum },
    is: (value): value is string =>
      typeof value === "string" && /^(0|[1-9][0-9]{0,15})$/.test(value) && isWithin(value),
  };
}

/**
 * Parses whole numbers in decimal digits, with leading zeros allowed; bounds are inclusive.
 *
 * @param digitsMax - Longer texts are invalid; 15 digits are below 2^53.
 */
export function digitsReading(minimum: number, maximum: number, digitsMax = 15): Reading<number> {
  const shape = new RegExp(`^[0-9]{1,${digitsMax}}$`);
  return {
    schema: { type: "integer", minimum, maximum },
    read: (text) => {
      const number = shape.test(text) ? Number(text) : undefined;
      return number !== undefined && number >= minimum && number <= maximum ? number : undefined;
    },
  };
}

/** Parses texts of a schema. @param read - May have further rules, which the description of the schema states. */
export function reading<Value>(
  { schema, is }: Kind<string>,
  read: (text: string) => Value | undefined,
): Reading<Value> {
  return { schema, read: (text) => (is(text) ? read(text) : undefined) };
}

export const flagKind: Kind<boolean> = {
  schema: { type: "boolean" },
  is: (value) => typeof value === "boolean",
};

/** Any JSON object. */
export const recordKind: Kind<Readonly<Record<string, unknown>>> = {
  schema: { type: "object" },
  is: (value): value is Readonly<Record<string, unknown>> =>
    typeof value === "object" && value !== null && !Array.isArray(value),
};

type Kinds = Readonly<Record<string, Kind<unknown>>>;
type ValueOf<Of> = Of extends Kind<infer Value> ? Value : never;
type ObjectOf<Needed, Optional> = { readonly [Name in keyof Needed]: ValueOf<Needed[Name]> } & {
  readonly [Name in keyof Optional]?: ValueOf<Optional[Name]> | undefined;
};

/** Objects with schemas for some fields; other fields are allowed. */
export type ObjectKind<Value, Name> = Kind<Value> &
  Readonly<{
    /** Returns the first invalid field in the order of the schemas, or the typed object. */
    validate: (
      record: Readonly<Record<string, unknown>>,
    ) => Readonly<{ wrongField: Name; value?: undefined }> | Readonly<{ wrongField: undefined; value: Value }>;
  }>;

/** Objects with required and optional fields. */
export function objectKind<Needed extends Kinds, Optional extends Kinds>(
  needed: Needed,
  optional: Optional,
): ObjectKind<ObjectOf<Needed, Optional>, keyof Needed | keyof Optional> {
  const all = Object.entries<Kind<unknown>>({ ...needed, ...optional });
  const isRight = ([name, { is }]: readonly [string, Kind<unknown>], value: unknown) =>
    value === undefined ? !Object.hasOwn(needed, name) : is(value);
  const isWhole = (
    record: Readonly<Record<string, unknown>>,
  ): record is Readonly<Record<string, unknown>> & ObjectOf<Needed, Optional> =>
    all.every((field) => isRight(field, record[field[0]]));
  return {
    schema: {
      type: "object",
      // OpenAPI allows no empty list.
      ...(Object.keys(needed).length === 0 ? {} : { required: Object.keys(needed) }),
      properties: Object.fromEntries(all.map(([name, { schema }]) => [name, schema])),
    },
    is: (value): value is ObjectOf<Needed, Optional> => recordKind.is(value) && isWhole(value),
    validate: (record) => {
      if (isWhole(record)) return { wrongField: undefined, value: record };
      const wrong = all.find((field) => !isRight(field, record[field[0]]));
      // The name is one of the given schemas.
      return { wrongField: wrong?.[0] as keyof Needed | keyof Optional };
    },
  };
}

/** Lists of values of one schema; lengths are inclusive. */
export function listKind<Value>(of: Kind<Value>, minItems: number, maxItems: number): Kind<readonly Value[]> {
  return {
    schema: { type: "array", ...(minItems === 0 ? {} : { minItems }), maxItems, items: of.schema },
    is: (value): value is readonly Value[] =>
      Array.isArray(value) && value.length >= minItems && value.length <= maxItems && value.every(of.is),
  };
}

export function orNull<Value>({ schema, is }: Kind<Value>): Kind<Value | null> {
  return { schema: { ...schema, nullable: true }, is: (value) => value === null || is(value) };
}

/** Adds a rule that a schema cannot express, with its description. */
export function narrowed<Wide, Value extends Wide>(
  { schema, is }: Kind<Wide>,
  rule: (value: Wide) => value is Value,
  description: string,
): Kind<Value> {
  return { schema: { ...schema, description }, is: (value): value is Value => is(value) && rule(value) };
}
