/**
 * The check of responses against the API reference sees what it is there for.
 * @module
 */
import { expect, test } from "bun:test";
import { closed, faultsOf } from "./schema.ts";

const named = { type: "object", required: ["id"], properties: { id: { type: "string" } } };

const rows: [name: string, value: unknown, schema: Record<string, unknown>, faults: number][] = [
  ["a field that is not named", { id: "", more: 1 }, named, 0],
  ["the same where nothing else may be", { id: "", more: 1 }, closed(named), 1],
  ["the same within a list", [{ id: "", more: 1 }], closed({ type: "array", items: named }), 1],
  ["any field of what names none", { more: 1 }, closed({ type: "object" }), 0],
  ["a field that a map has", { more: 1 }, closed({ ...named, required: [], additionalProperties: {} }), 0],
  ["a field that is missing", {}, named, 1],
];

test.each(rows)("%s: %p", (_name, value, schema, faults) => {
  expect(faultsOf(value, schema, {})).toHaveLength(faults);
});
