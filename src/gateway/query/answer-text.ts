/**
 * Writes an answer straight from rows to UTF-8: no objects are made in between.
 *
 * A shape says for every field of a type how its JSON is written; compiling a selection against a shape gives one
 * function a field, called row by row. Text is encoded row by row, because one character beyond Latin-1 makes the
 * whole of a JavaScript string 16 bits wide (measured: reference/graphql.md §1).
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { SelectedField } from "./selection.ts";

/** Where an answer is written. Writers add to `text`; `flush` turns it into bytes. */
export type AnswerText = {
  text: string;
  flush: () => void;
  /** Ends the answer: its bytes, in a buffer of exactly their size. */
  finish: () => Uint8Array<ArrayBuffer>;
};

/** Writes one value that is already known. */
export type WriteValue = (answer: AnswerText) => void;

/** Writes one value of a row, as JSON. */
export type Writer<Source> = (source: Source, answer: AnswerText) => void;

/** A type of the schema: its name, and for each field the function that makes a writer from what is selected. */
export type Shape<Source> = Readonly<{
  name: string;
  fields: Readonly<Record<string, (field: SelectedField) => Writer<Source>>>;
}>;

const firstBytes = 64 * 2 ** 10;

/** A UTF-16 unit takes at most three bytes of UTF-8. */
const bytesPerUnitMax = 3;

/** Begins an answer. */
export function createAnswerText(): AnswerText {
  const encoder = new TextEncoder();
  let bytes = new Uint8Array(firstBytes);
  let size = 0;
  const answer: AnswerText = {
    text: "",
    flush: () => {
      const room = size + answer.text.length * bytesPerUnitMax;
      if (room > bytes.length) {
        const larger = new Uint8Array(Math.max(room, bytes.length * 2));
        larger.set(bytes.subarray(0, size));
        bytes = larger;
      }
      size += encoder.encodeInto(answer.text, bytes.subarray(size)).written;
      answer.text = "";
    },
    finish: () => {
      answer.flush();
      return bytes.slice(0, size);
    },
  };
  return answer;
}

/** Writes a text that is JSON. */
export function writeText(json: string): WriteValue {
  return (answer) => {
    answer.text += json;
  };
}

/** A field without fields of its own; `json` gives its JSON. */
export function leaf<Source>(json: (source: Source) => string): (field: SelectedField) => Writer<Source> {
  return () => (source, answer) => {
    answer.text += json(source);
  };
}

/** A field that is an object; `pick` finds it, null is written as null. */
export function object<Source, Inner>(
  shape: Shape<Inner>,
  pick: (source: Source) => Inner | null,
): (field: SelectedField) => Writer<Source> {
  return ({ inner }) => {
    const write = compileShape(shape, inner);
    return (source, answer) => {
      const value = pick(source);
      if (value === null) answer.text += "null";
      else write(value, answer);
    };
  };
}

/** A field that is a list of objects; `afterEach` runs when an entry is written. */
export function list<Source, Inner>(
  shape: Shape<Inner>,
  pick: (source: Source) => readonly Inner[],
  afterEach: WriteValue = () => undefined,
): (field: SelectedField) => Writer<Source> {
  return ({ inner }) => {
    const write = compileShape(shape, inner);
    return (source, answer) => {
      answer.text += "[";
      let separator = "";
      for (const entry of pick(source)) {
        answer.text += separator;
        write(entry, answer);
        afterEach(answer);
        separator = ",";
      }
      answer.text += "]";
    };
  };
}

/** Makes the writer of one object from the fields that are selected of it. */
export function compileShape<Source>(shape: Shape<Source>, fields: readonly SelectedField[]): Writer<Source> {
  const parts = fields.map((field, index) => ({
    prefix: `${index === 0 ? "{" : ","}${JSON.stringify(field.key)}:`,
    write: writerOf(shape, field),
  }));
  if (parts.length === 0) return (_source, answer) => writeText("{}")(answer);
  return (source, answer) => {
    for (const part of parts) {
      answer.text += part.prefix;
      part.write(source, answer);
    }
    answer.text += "}";
  };
}

function writerOf<Source>(shape: Shape<Source>, field: SelectedField): Writer<Source> {
  if (field.name === "__typename") return leaf<Source>(() => `"${shape.name}"`)(field);
  const make = shape.fields[field.name];
  assert(make !== undefined, `the shape of ${shape.name} has every field of the schema`);
  return make(field);
}
