/**
 * Kinds of values that a request may carry, each said once: what judges a value is what the API reference shows of it.
 *
 * Elysia's own schemas are not used for this: they turn digits into numbers, and refuse in words of their own
 * (docs/decisions/080-api-reference.md).
 * @module
 */

/** A JSON schema, as far as OpenAPI 3.0 goes. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One kind of value. */
export type ValueSchema<Value> = Readonly<{
  schema: JsonSchema;
  /** Whether a value is of this kind: what the schema says, and no more. */
  is: (value: unknown) => value is Value;
}>;

/** What a text of a request stands for, said once: what reads it is what the API reference shows of it. */
export type TextParser<Value> = Readonly<{
  schema: JsonSchema;
  /** `undefined` for a text that stands for nothing. */
  read: (text: string) => Value | undefined;
}>;

/** What is said of texts. Lengths are in UTF-16 units, inclusive. */
type TextRules = Readonly<{ pattern?: string; minLength?: number; maxLength?: number; description?: string }>;

/** Texts. */
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

/** Texts of a list. */
export function enumSchema<Word extends string>(words: readonly Word[]): ValueSchema<Word> {
  return {
    schema: { type: "string", enum: words },
    is: (value): value is Word => words.some((word) => word === value),
  };
}

/** Whole numbers that JavaScript has exactly; bounds are inclusive. */
export function integerSchema(minimum = 0, maximum = Number.MAX_SAFE_INTEGER): ValueSchema<number> {
  const bound = maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum };
  return {
    schema: { type: "integer", minimum, ...bound },
    is: (value): value is number =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum,
  };
}

/** Whole numbers as paths and queries have them: decimal digits without zeros before them; bounds are inclusive. */
export function digitsSchema(minimum: number, maximum: number): ValueSchema<string> {
  const isWithin = (text: string) => Number(text) >= minimum && Number(text) <= maximum;
  return {
    schema: { type: "integer", minimum, maximum },
    is: (value): value is string =>
      typeof value === "string" && /^(0|[1-9][0-9]{0,15})$/.test(value) && isWithin(value),
  };
}

/**
 * Whole numbers in decimal digits, which may begin with zeros; bounds are inclusive.
 *
 * @param digitsMax - Longer texts are not looked into; 15 digits are below 2^53.
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

/** Reads texts of a kind. @param read - What it asks beyond the kind, the kind's description says. */
export function textParser<Value>(
  { schema, is }: ValueSchema<string>,
  read: (text: string) => Value | undefined,
): TextParser<Value> {
  return { schema, read: (text) => (is(text) ? read(text) : undefined) };
}

/** True or false. */
export const booleanSchema: ValueSchema<boolean> = {
  schema: { type: "boolean" },
  is: (value) => typeof value === "boolean",
};

/** JSON objects, whatever is in them. */
export const anyObjectSchema: ValueSchema<Readonly<Record<string, unknown>>> = {
  schema: { type: "object" },
  is: (value): value is Readonly<Record<string, unknown>> =>
    typeof value === "object" && value !== null && !Array.isArray(value),
};

type Kinds = Readonly<Record<string, ValueSchema<unknown>>>;
type ValueOf<Of> = Of extends ValueSchema<infer Value> ? Value : never;
type ObjectOf<Needed, Optional> = { readonly [Name in keyof Needed]: ValueOf<Needed[Name]> } & {
  readonly [Name in keyof Optional]?: ValueOf<Optional[Name]> | undefined;
};

/** Objects of which some fields are of a kind; other fields may be there. */
export type ObjectSchema<Value, Name> = ValueSchema<Value> &
  Readonly<{
    /** Tells the first field that is not of its kind, in the order of the kinds; or the object as what it is. */
    parse: (
      record: Readonly<Record<string, unknown>>,
    ) => Readonly<{ wrongField: Name; value?: undefined }> | Readonly<{ wrongField: undefined; value: Value }>;
  }>;

/** Objects with fields that must be there, and fields that may be absent. */
export function objectSchema<Needed extends Kinds, Optional extends Kinds>(
  needed: Needed,
  optional: Optional,
): ObjectSchema<ObjectOf<Needed, Optional>, keyof Needed | keyof Optional> {
  const all = Object.entries<ValueSchema<unknown>>({ ...needed, ...optional });
  const isRight = ([name, { is }]: readonly [string, ValueSchema<unknown>], value: unknown) =>
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
    is: (value): value is ObjectOf<Needed, Optional> => anyObjectSchema.is(value) && isWhole(value),
    parse: (record) => {
      if (isWhole(record)) return { wrongField: undefined, value: record };
      const wrong = all.find((field) => !isRight(field, record[field[0]]));
      // Its names are those of the kinds that were given.
      return { wrongField: wrong?.[0] as keyof Needed | keyof Optional };
    },
  };
}

/** Lists of a kind; lengths are inclusive. */
export function listSchema<Value>(of: ValueSchema<Value>, minItems: number, maxItems: number): ValueSchema<readonly Value[]> {
  return {
    schema: { type: "array", ...(minItems === 0 ? {} : { minItems }), maxItems, items: of.schema },
    is: (value): value is readonly Value[] =>
      Array.isArray(value) && value.length >= minItems && value.length <= maxItems && value.every(of.is),
  };
}

/** A kind, or null. */
export function nullable<Value>({ schema, is }: ValueSchema<Value>): ValueSchema<Value | null> {
  return { schema: { ...schema, nullable: true }, is: (value) => value === null || is(value) };
}

/** Those of a kind that keep a rule beyond what schemas can say; it is said in words. */
export function refined<Wide, Value extends Wide>(
  { schema, is }: ValueSchema<Wide>,
  rule: (value: Wide) => value is Value,
  description: string,
): ValueSchema<Value> {
  return { schema: { ...schema, description }, is: (value): value is Value => is(value) && rule(value) };
}
