/**
 * Checks a value against a JSON schema, as far as the API reference uses them: an independent check, which does not use
 * the library that wrote the reference.
 * @module
 */

type Schema = Readonly<Record<string, unknown>>;

const known = new Set([
  "$ref",
  "type",
  "nullable",
  "enum",
  "pattern",
  "format",
  "minimum",
  "maximum",
  "maxItems",
  "items",
  "properties",
  "required",
  "additionalProperties",
  "oneOf",
  "description",
]);

/**
 * The faults of a value, each with its path; none when it fits.
 *
 * @param components - Schemas that `$ref` names.
 */
export function faultsOf(value: unknown, schema: Schema, components: Schema, at = "$"): string[] {
  const unknown = Object.keys(schema).filter((word) => !known.has(word));
  if (unknown.length > 0) return [`${at}: the schema has ${unknown.join()}, which this check does not know`];
  const { $ref, oneOf, nullable } = schema;
  if (typeof $ref === "string") {
    const named = components[$ref.replace("#/components/schemas/", "")];
    return isSchema(named) ? faultsOf(value, named, components, at) : [`${at}: ${$ref} is nowhere`];
  }
  if (value === null && nullable === true) return [];
  if (Array.isArray(oneOf)) {
    const fitting = oneOf.filter((each) => faultsOf(value, each, components, at).length === 0);
    return fitting.length === 1 ? [] : [`${at}: ${fitting.length} of ${oneOf.length} choices fit`];
  }
  const own = ownFaults(value, schema).map((fault) => `${at}: ${fault}, got ${Bun.inspect(value).slice(0, 80)}`);
  return own.length > 0 ? own : innerFaults(value, schema, components, at);
}

/**
 * The same schemas, with nothing beyond the fields that they name: a response of ours has no field that the reference
 * does not say. Objects without named fields stay as they are.
 */
export function closed<Of>(schema: Of): Of {
  return JSON.parse(JSON.stringify(schema), (_, value) =>
    isSchema(value) && isSchema(value["properties"]) ? { additionalProperties: false, ...value } : value,
  );
}

function ownFaults(value: unknown, schema: Schema): string[] {
  const { type, pattern, minimum, maximum, maxItems } = schema;
  if (type !== undefined && !isOfType(value, type)) return [`not of type ${type}`];
  if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value)) return [`not one of ${schema["enum"]}`];
  if (typeof pattern === "string" && !new RegExp(pattern).test(String(value))) return [`not like ${pattern}`];
  if (schema["format"] === "date-time" && Number.isNaN(Date.parse(String(value)))) return ["not a time"];
  if (typeof minimum === "number" && Number(value) < minimum) return [`below ${minimum}`];
  if (typeof maximum === "number" && Number(value) > maximum) return [`above ${maximum}`];
  return Array.isArray(value) && typeof maxItems === "number" && value.length > maxItems ? ["too many"] : [];
}

function innerFaults(value: unknown, schema: Schema, components: Schema, at: string): string[] {
  const { items, properties, required, additionalProperties } = schema;
  if (Array.isArray(value)) {
    if (!isSchema(items)) return [];
    return value.flatMap((each, index) => faultsOf(each, items, components, `${at}[${index}]`));
  }
  if (!isSchema(value)) return [];
  const missing = (Array.isArray(required) ? required : []).filter((name) => !(name in value));
  const named = isSchema(properties) ? properties : {};
  return [
    ...missing.map((name) => `${at}: ${name} is missing`),
    ...Object.entries(value).flatMap(([name, each]) => {
      const inner = named[name] ?? additionalProperties;
      if (inner === false) return [`${at}: ${name} is not among ${Object.keys(named)}`];
      return isSchema(inner) ? faultsOf(each, inner, components, `${at}.${name}`) : [];
    }),
  ];
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isSchema(value);
  return typeof value === type;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
