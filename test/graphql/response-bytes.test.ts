/**
 * The bytes of responses: base64url, JSON strings and tags are what the runtime's own encoders make.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  addAscii,
  addBase64url,
  addHex,
  addJsonUtf8,
  addText,
  createOutputs,
  finished,
  type Output,
} from "../../src/graphql/response-bytes.ts";
import type { SelectedField } from "../../src/graphql/selection.ts";
import { contentTypeTag, tagBytesOf, tagsField } from "../../src/graphql/tag-json.ts";
import { encodeTagBlob, knownNames, knownPairs, tagValueOf } from "../../src/store/index/rows/tag-blob.ts";

const begin = createOutputs();

function written(write: (out: Output) => void): string {
  const out = begin();
  write(out);
  return new TextDecoder("utf-8", { fatal: true }).decode(finished(out));
}

const texts = fc.string({ unit: "grapheme", maxLength: 40 });
const tags = fc.array(
  fc.oneof(
    fc.record({ name: texts, value: texts }),
    fc.constantFrom(...knownPairs).map(([name, value]) => ({ name, value })),
    fc.record({
      name: fc.constantFrom(...knownNames),
      value: fc.oneof(
        texts,
        fc.uuid(),
        fc.integer({ min: 0, max: 2 ** 50 }).map(String),
        fc.uint8Array({ minLength: 8, maxLength: 64 }).map((bytes) => bytes.toHex()),
        fc.uint8Array({ minLength: 8, maxLength: 64 }).map((bytes) => `0x${bytes.toHex()}`),
        fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("base64url")),
      ),
    }),
  ),
  { maxLength: 12 },
);

describe("bytes of a response", () => {
  test("have base64url and hexadecimal digits of any part of bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.nat({ max: 400 }), fc.nat({ max: 400 }), (bytes, a, b) => {
        const [start = 0, end = 0] = [a % (bytes.length + 1), b % (bytes.length + 1)].sort((x, y) => x - y);
        const part = Buffer.from(bytes.subarray(start, end));
        expect(written((out) => addBase64url(out, bytes, start, end))).toBe(part.toString("base64url"));
        expect(written((out) => addHex(out, bytes, start, end))).toBe(part.toString("hex"));
      }),
      { numRuns: 1_000 },
    );
  });

  test("escape every character as JSON.stringify does", () => {
    const all = Array.from({ length: 0x2100 }, (_, code) => String.fromCodePoint(code)).join("");
    const inside = (text: string) => {
      const bytes = new TextEncoder().encode(text);
      return written((out) => addJsonUtf8(out, bytes, 0, bytes.length));
    };
    expect(`"${inside(all)}"`).toBe(JSON.stringify(all));
    fc.assert(
      fc.property(texts, (text) => expect(`"${inside(text)}"`).toBe(JSON.stringify(text))),
      { numRuns: 500 },
    );
  });

  test("grow beyond the stored buffer, and keep what was written", () => {
    const text = "ä".repeat(700_000);
    expect(written((out) => [addAscii(out, "start "), addText(out, text), addText(out, text)])).toBe(
      `start ${text}${text}`,
    );
  });
});

describe("tags", () => {
  const select = (...names: string[]): SelectedField => {
    const inner = names.map((name) => ({ key: name, name, nodes: [] as never, inner: [] }));
    return { key: "tags", name: "tags", nodes: [] as never, inner };
  };
  const write = (field: SelectedField, blob: Uint8Array | null) =>
    written((out) => tagsField((source: Uint8Array | null) => source)(field)(blob, out));

  test("are written as JSON.stringify writes their texts, in any selection", () => {
    fc.assert(
      fc.property(tags, (list) => {
        const blob = encodeTagBlob(list);
        expect(write(select("name", "value"), blob)).toBe(JSON.stringify(list));
        expect(write(select("value", "name"), blob)).toBe(
          JSON.stringify(list.map(({ name, value }) => ({ value, name }))),
        );
        expect(write(select("name"), blob)).toBe(JSON.stringify(list.map(({ name }) => ({ name }))));
      }),
      { numRuns: 1_000 },
    );
  });

  test("that are not selected, or that a row has not, are an empty list", () => {
    expect(write(select("name"), null)).toBe("[]");
    expect(write(select("name"), new Uint8Array(0))).toBe("[]");
  });

  test("give the first Content-Type", () => {
    fc.assert(
      fc.property(tags, (list) => {
        const found = contentTypeTag(encodeTagBlob(list));
        const expected = list.find(({ name }) => name === "Content-Type")?.value;
        expect(found === undefined ? undefined : tagValueOf(found)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  test("are counted with no fewer bytes than their texts have", () => {
    fc.assert(
      fc.property(tags, (list) => {
        const bytes = list.reduce(
          (sum, { name, value }) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
          0,
        );
        expect(tagBytesOf(encodeTagBlob(list))).toBeGreaterThanOrEqual(bytes);
      }),
      { numRuns: 500 },
    );
  });
});
