/**
 * Writes a response straight from rows to UTF-8, without objects in between.
 *
 * A shape says for every field of a type how its JSON is written; compiling a selection against a shape gives one
 * function a field, called row by row. Text is encoded row by row, because one character beyond Latin-1 makes the
 * whole of a JavaScript string 16 bits wide (measured).
 * @module
 */
import { assert } from "../lib/assert.ts";
import type { SelectedField } from "./selection.ts";

/** A response that is being written. */
export type ResponseText = Readonly<{
  /** Adds a piece of JSON. */
  add: (json: string) => void;
  /** Ends the response. @returns Its bytes, in a buffer of exactly their size. */
  finish: () => Uint8Array<ArrayBuffer>;
}>;

/** Writes one value that is already known. */
export type WriteValue = (response: ResponseText) => void;

/** Gives one value of a row, as JSON. */
export type Writer<Source> = (source: Source) => string;

/** A type of the schema: its name, and for each field the function that makes a writer from what is selected. */
export type Shape<Source> = Readonly<{
  name: string;
  fields: Readonly<Record<string, (field: SelectedField) => Writer<Source>>>;
}>;

/** Bytes of the buffer that stays between responses; the page of a hundred rows takes 250 KB. */
const storedBytes = 2 ** 20;

/** A UTF-16 unit takes at most three bytes of UTF-8. */
const bytesPerUnitMax = 3;

/**
 * Creates the function that begins responses. They share a buffer, which would else be allocated for each: one
 * response is
 * finished before the next is begun.
 */
export function createResponseTexts(): () => ResponseText {
  const encoder = new TextEncoder();
  const stored = new Uint8Array(storedBytes);
  return () => {
    let bytes = stored;
    let size = 0;
    return {
      add: (json) => {
        const quota = size + json.length * bytesPerUnitMax;
        if (quota > bytes.length) {
          const larger = new Uint8Array(Math.max(quota, bytes.length * 2));
          larger.set(bytes.subarray(0, size));
          bytes = larger;
        }
        size += encoder.encodeInto(json, bytes.subarray(size)).written;
      },
      finish: () => bytes.slice(0, size),
    };
  };
}

/** A field without fields of its own; `json` gives its JSON. */
export function leaf<Source>(json: Writer<Source>): (field: SelectedField) => Writer<Source> {
  return () => json;
}

/** A field that is an object; `pick` finds it, null is written as null. */
export function object<Source, Inner>(
  shape: Shape<Inner>,
  pick: (source: Source) => Inner | null,
): (field: SelectedField) => Writer<Source> {
  return ({ inner }) => {
    const write = compileShape(shape, inner);
    return (source) => {
      const value = pick(source);
      return value === null ? "null" : write(value);
    };
  };
}

/** A field that is a list of objects. */
export function list<Source, Inner>(
  shape: Shape<Inner>,
  pick: (source: Source) => readonly Inner[],
): (field: SelectedField) => Writer<Source> {
  return ({ inner }) => {
    const write = compileShape(shape, inner);
    return (source) => {
      let text = "[";
      for (const [index, entry] of pick(source).entries()) text += index === 0 ? write(entry) : `,${write(entry)}`;
      return `${text}]`;
    };
  };
}

/** Makes the writer of one object from the fields that are selected of it. */
export function compileShape<Source>(shape: Shape<Source>, fields: readonly SelectedField[]): Writer<Source> {
  const parts = fields.map((field, index) => ({
    prefix: `${index === 0 ? "{" : ","}${JSON.stringify(field.key)}:`,
    write: writerOf(shape, field),
  }));
  if (parts.length === 0) return () => "{}";
  return (source) => {
    let text = "";
    for (const part of parts) text += part.prefix + part.write(source);
    return `${text}}`;
  };
}

/** Makes the writer of one field. */
export function writerOf<Source>(shape: Shape<Source>, field: SelectedField): Writer<Source> {
  if (field.name === "__typename") return () => `"${shape.name}"`;
  const make = shape.fields[field.name];
  assert(make !== undefined, `the shape of ${shape.name} has every field of the schema`);
  return make(field);
}
