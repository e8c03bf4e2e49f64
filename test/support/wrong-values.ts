/**
 * Values that break the rules of a schema, one each: what the API reference says of a request is to be rejected
 * otherwise.
 * @module
 */

type Schema = Readonly<Record<string, unknown>>;

/** Texts that are not of a kind, by each of its rules; none for a kind without rules. */
export function wrongTexts(schema: Schema): string[] {
  const { type, pattern, minLength, maxLength, minimum, maximum } = schema;
  const digits = "9".repeat(Number(maxLength) + 1);
  return [
    ...(pattern === undefined ? [] : ["~", "%C3%A9", "-", "A".repeat(500)]),
    ...(schema["enum"] === undefined ? [] : ["nonsense"]),
    ...(minLength === undefined ? [] : [""]),
    ...(maxLength === undefined ? [] : [digits]),
    ...(type === "integer" ? ["x", "1.5", "1e3", "0x10", "-1", "%201"] : []),
    ...(typeof minimum === "number" ? [String(minimum - 1)] : []),
    ...(typeof maximum === "number" ? [String(maximum + 1)] : []),
  ];
}

/** Objects of which one field is missing, or is not of its kind, by each of its rules. */
function wrongRecords(schema: Schema, example: Record<string, unknown>): Record<string, unknown>[] {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  const wrong = Object.entries(properties).flatMap(([name, field]) =>
    (isRecord(field) ? wrongValues(field, example[name]) : []).map((value) => ({
      ...example,
      [name]: value,
    })),
  );
  const lacking = required.map((left) => Object.fromEntries(Object.entries(example).filter(([name]) => name !== left)));
  return [...wrong, ...lacking];
}

/** Lists that are too short or too long, or with something in them that is not of its kind. */
function wrongLists({ items, minItems, maxItems }: Schema, [example]: readonly unknown[]): unknown[][] {
  return [
    ...(minItems === undefined ? [] : [[]]),
    ...(typeof maxItems === "number" ? [Array.from({ length: maxItems + 1 }, () => example)] : []),
    ...(isRecord(items) ? wrongValues(items, example).map((value) => [value]) : []),
  ];
}

/** Values that are not of a kind; none for what may be anything. @param example - One that is. */
export function wrongValues(schema: Schema, example: unknown): unknown[] {
  const { type, nullable, pattern, minLength, maxLength, minimum, maximum } = schema;
  if (type === undefined) return [];
  return [
    ...(type === "string" ? [5, true, []] : ["1"]),
    ...(type === "object" ? wrongRecords(schema, isRecord(example) ? example : {}) : [{}]),
    ...(type === "array" ? wrongLists(schema, Array.isArray(example) ? example : []) : [[]]),
    ...(type === "boolean" ? [0] : []),
    ...(type === "integer" ? [1.5, true, 2 ** 53] : []),
    ...(nullable === true ? [] : [null]),
    ...(typeof pattern === "string" ? ["", "~"].filter((text) => !new RegExp(pattern).test(text)) : []),
    ...(minLength === undefined ? [] : [""]),
    ...(typeof maxLength === "number" ? ["a".repeat(maxLength + 1)] : []),
    ...(typeof minimum === "number" ? [minimum - 1] : []),
    ...(typeof maximum === "number" ? [maximum + 1] : []),
  ];
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
