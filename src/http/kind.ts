/**
 * Kinds of values that a request may carry, each said once: what judges a value is what the API reference shows of it.
 *
 * Elysia's own schemas are not used for this: they turn digits into numbers, and refuse in words of their own
 * (docs/decisions/080-api-reference.md).
 * @module
 */

/** A JSON schema, as far as OpenAPI 3.0 goes. */
export type Schema = Readonly<Record<string, unknown>>;

/** One kind of value. */
export type Kind<Value> = Readonly<{
  schema: Schema;
  /** Whether a value is of this kind: what the schema says, and no more. */
  is: (value: unknown) => value is Value;
}>;

/** What is said of texts. Lengths are in UTF-16 units, inclusive. */
type TextRules = Readonly<{ pattern?: string; minLength?: number; maxLength?: number; description?: string }>;

/** Texts. */
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

/** Whole numbers that JavaScript has exactly; bounds are inclusive. */
export function countKind(minimum = 0, maximum = Number.MAX_SAFE_INTEGER): Kind<number> {
  const bound = maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum };
  return {
    schema: { type: "integer", minimum, ...bound },
    is: (value): value is number =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum,
  };
}

/** Whole numbers as paths and queries have them: decimal digits without zeros before them; bounds are inclusive. */
export function digitsKind(minimum: number, maximum: number): Kind<string> {
  const isWithin = (text: string) => Number(text) >= minimum && Number(text) <= maximum;
  return {
    schema: { type: "integer", minimum, maximum },
    is: (value): value is string =>
      typeof value === "string" && /^(0|[1-9][0-9]{0,15})$/.test(value) && isWithin(value),
  };
}

/** True or false. */
export const flagKind: Kind<boolean> = {
  schema: { type: "boolean" },
  is: (value) => typeof value === "boolean",
};

/** A kind, or null. */
export function orNull<Value>({ schema, is }: Kind<Value>): Kind<Value | null> {
  return { schema: { ...schema, nullable: true }, is: (value) => value === null || is(value) };
}

/** Those of a kind that keep a rule beyond what schemas can say; it is said in words. */
export function narrowed<Wide, Value extends Wide>(
  { schema, is }: Kind<Wide>,
  rule: (value: Wide) => value is Value,
  description: string,
): Kind<Value> {
  return { schema: { ...schema, description }, is: (value): value is Value => is(value) && rule(value) };
}
