/**
 * Manifests read in pieces: they mean what they mean read whole, to the last key; or neither can be read.
 *
 * `RUNS=100000` is the size that docs/evidence.md records.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { idFromBytes } from "../../src/arweave/id.ts";
import { type Manifest, manifestFaults, readManifest } from "../../src/arweave/manifest.ts";
import { createManifestScan, pathDigestOf } from "../../src/arweave/manifest-scan.ts";
import { Failure } from "../../src/failures.ts";
import { createPathTable, createTableMemory } from "../../src/store/manifests/manifest-index-build.ts";
import { newSeed } from "../support/seed.ts";
import { testKey } from "../support/signers.ts";

const runs = Number(process.env["RUNS"] ?? 2_000);
/** One memory for all tables, as a thread has: what one leaves behind must not be seen by the next. */
const memory = createTableMemory();
const salt = new Uint8Array(16).fill(7);
const [one, two] = [idFromBytes(testKey(1)), idFromBytes(testKey(2))];
const zero = "A".repeat(43);

type Outcome = Readonly<{
  unreadable?: string;
  index?: string | undefined;
  fallback?: string | undefined;
  paths?: Readonly<Record<string, string>>;
}>;

/** By the one way: everything read at once. */
function readWhole(bytes: Uint8Array): Readonly<{ outcome: Outcome; manifest?: Manifest }> {
  try {
    const manifest = readManifest(bytes);
    const paths = Object.fromEntries([...manifest.paths].map(([path, id]) => [digest(path), id]));
    const { index } = manifest;
    const target = index === undefined ? undefined : "id" in index ? index.id : manifest.paths.get(index.path);
    return { manifest, outcome: { index: target, fallback: manifest.fallback, paths } };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { outcome: { unreadable: String(error.context["reason"]) } };
  }
}

/** By the other: in pieces that end after given numbers of bytes, the last of which goes on to the end. */
function readInPieces(bytes: Uint8Array, pieces: readonly number[]): Outcome {
  const table = createPathTable(bytes.length, memory);
  const scan = createManifestScan(bytes.length, salt, table);
  let at = 0;
  for (const size of pieces) {
    // The given bytes are overwritten afterwards, as the shared buffer of a build is.
    const piece = bytes.slice(at, at + size);
    scan.take(piece);
    piece.fill(0x22);
    at += size;
  }
  scan.take(bytes.slice(at));
  const scanned = scan.finish();
  if (scanned.kind === "unreadable") return { unreadable: scanned.reason };
  const { index, fallback } = scanned;
  const target = index === undefined ? undefined : "id" in index ? index.id : table.get(index.digest);
  const sorted = [...table.sorted()].map((record) => record.slice());
  expect(sorted.length).toBe(table.count());
  expect(sorted.map((record) => record.toHex())).toEqual(sorted.map((record) => record.toHex()).toSorted());
  return {
    index: target && idFromBytes(target),
    fallback: fallback && idFromBytes(fallback),
    paths: Object.fromEntries(
      sorted.map((record) => [record.subarray(0, 16).toHex(), idFromBytes(record.subarray(16))]),
    ),
  };
}

function digest(path: string): string {
  return pathDigestOf(salt, path).toHex();
}

const utf8 = (text: string) => new TextEncoder().encode(text);

/** A string as JSON may spell it: raw, escaped, in capitals, with useless escapes. */
const spelled = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.array(fc.nat(3), { minLength: 1, maxLength: 8 })).map(([value, ways]) => {
    const units = value.split("").map((unit, at) => {
      const code = unit.charCodeAt(0).toString(16).padStart(4, "0");
      const way = ways[at % ways.length];
      if (way === 1) return `\\u${code}`;
      if (way === 2) return `\\u${code.toUpperCase()}`;
      return JSON.stringify(unit).slice(1, -1);
    });
    return `"${units.join("")}"`;
  });

const key = fc.constantFrom(
  ...["", "a", "a/", "a/index.html", "b", "__proto__", "constructor", "toString", "id", "path", "paths"],
  ...[
    "é",
    "e\u0301",
    "😀",
    "\ud83d",
    "\ude00",
    "\u2028",
    "a\u0000b",
    "[",
    "{",
    '"',
    "\\",
    "/",
    "\ufeff",
    "x".repeat(700),
  ],
);
const id = fc.constantFrom(one, two, zero, "short", `${"A".repeat(42)}B`, `${one}A`, "");
const space = fc.constantFrom("", "", "", " ", "\n\t\r ");
const scalar = fc.constantFrom(
  "0",
  "-0",
  "1.5e+3",
  "true",
  "false",
  "null",
  "[]",
  "{}",
  '[{"id":1}]',
  "12",
  "01",
  "tru",
);
const member = (name: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc.tuple(space, name, space, space, value, space).map(([a, b, c, d, e, f]) => `${a}${b}${c}:${d}${e}${f}`);
const object = (members: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(members, { maxLength }).map((list) => `{${list.join(",")}}`);
const idText = spelled(id);
const holder = object(
  fc.oneof(
    { weight: 6, arbitrary: member(spelled(fc.constant("id")), fc.oneof(idText, scalar)) },
    { weight: 2, arbitrary: member(spelled(fc.constant("path")), fc.oneof(spelled(key), scalar)) },
    { weight: 1, arbitrary: member(spelled(key), fc.oneof(idText, scalar, fc.constant(`{"id":"${one}"}`))) },
  ),
  3,
);
const entry = member(spelled(key), fc.oneof({ weight: 5, arbitrary: holder }, { weight: 1, arbitrary: scalar }));
const named = (name: string, value: fc.Arbitrary<string>) => member(spelled(fc.constant(name)), value);
const field = fc.oneof(
  named("manifest", fc.oneof({ weight: 8, arbitrary: spelled(fc.constant("arweave/paths")) }, scalar)),
  named("version", spelled(fc.constantFrom("0.1.0", "0.2.0", "0.2.0", "0.3.0"))),
  named("index", fc.oneof({ weight: 4, arbitrary: holder }, scalar)),
  named("fallback", fc.oneof({ weight: 4, arbitrary: holder }, scalar)),
  named("paths", fc.oneof({ weight: 8, arbitrary: object(entry, 8) }, scalar)),
  member(spelled(key), fc.oneof(holder, scalar, spelled(key))),
);
/** Mostly manifests: what every one needs is first, and may be repeated. */
const text = fc
  .tuple(fc.boolean(), fc.array(field, { maxLength: 7 }), fc.constantFrom("0.1.0", "0.2.0"))
  .map(([isWhole, some, version]) => {
    const needed = ['"manifest":"arweave/paths"', `"version":"${version}"`, '"paths":{}'];
    return `{${[...(isWhole ? needed : []), ...some].join(",")}}`;
  });
const cuts = fc.array(fc.nat(40), { maxLength: 30 });

/** A few bytes of a text replaced, left out or put in. */
const damaged = fc
  .tuple(text, fc.array(fc.tuple(fc.nat(), fc.nat(255), fc.nat(2)), { maxLength: 4 }))
  .map(([whole, changes]) => {
    let bytes = [...utf8(whole)];
    for (const [place, byte, way] of changes) {
      const at = place % (bytes.length + 1);
      bytes = [...bytes.slice(0, at), ...(way === 0 ? [] : [byte]), ...bytes.slice(way === 2 ? at : at + 1)];
    }
    return Uint8Array.from(bytes);
  });

function expectSame(bytes: Uint8Array, pieces: readonly number[]): void {
  expect(readInPieces(bytes, pieces)).toEqual(readWhole(bytes).outcome);
}

describe("M1: a manifest read in pieces", () => {
  const seed = newSeed();

  test("means what it means read whole", () => {
    let manifests = 0;
    fc.assert(
      fc.property(text, cuts, (each, pieces) => {
        if (readWhole(utf8(each)).manifest !== undefined) manifests += 1;
        expectSame(utf8(each), pieces);
      }),
      { numRuns: runs, seed },
    );
    expect(manifests).toBeGreaterThan(runs / 8);
  });

  test("with bytes damaged, left out or added, means the same or cannot be read by either", () => {
    fc.assert(fc.property(damaged, cuts, expectSame), { numRuns: runs, seed });
  });

  const whole = JSON.stringify({
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: "é" },
    fallback: { id: two },
    paths: { é: { id: one }, "\ud83d\ude00": { id: two }, "\\u": { id: one } },
  });

  test("is the same cut in two at every byte, and cannot be read truncated at any", () => {
    const bytes = utf8(whole);
    const expected = readWhole(bytes).outcome;
    expect(Object.keys(expected.paths ?? {}).length).toBe(3);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(readInPieces(bytes, [at])).toEqual(expected);
      if (at < bytes.length) expect(readInPieces(bytes.slice(0, at), []).unreadable).toBe(manifestFaults.json);
    }
  });

  test.each([
    ["nothing", ""],
    ["white space", " \n"],
    ["a byte order mark before it", `\ufeff${whole}`],
    ["two byte order marks before it", `\ufeff\ufeff${whole}`],
    ["text after it", `${whole} x`],
    ["a list", "[]"],
    ["a string", '"arweave/paths"'],
    ["a number", "-12.5E-7"],
    ["paths that are twice", whole.replace('"paths"', '"paths":{"gone":{"id":"x"}},"paths"')],
    ["paths that are again as a list", whole.replace(/}$/, ',"paths":[]}')],
    ["a path that is again without an id", whole.replace(/}}$/, `},"\\u00e9":{"id":5}}}`)],
    ["a path that is again with another id", whole.replace(/}}$/, `},"\\u00e9":{"id":"${two}"}}}`)],
    [
      "an id that is twice in its entry",
      `{"manifest":"arweave/paths","version":"0.2.0","paths":{"a":{"id":"${one}","id":{"id":"${two}"}}}}`,
    ],
    [
      "a prototype",
      `{"manifest":"arweave/paths","version":"0.2.0","paths":{"__proto__":{"__proto__":{"id":"${one}"}},"a":{"__proto__":{"id":"${one}"}}}}`,
    ],
  ])("agrees on %s", (_name, each) => {
    for (const size of [1, 2, 3, 1_000]) expectSame(utf8(each), Array(Math.ceil(each.length / size)).fill(size));
  });

  test("agrees on malformed UTF-8 in names", () => {
    const [before = "", after = ""] = whole.split("é");
    for (const bad of [
      [0xc3],
      [0xe2, 0x82],
      [0xf0, 0x9f, 0x98],
      [0xff],
      [0xed, 0xa0, 0x80],
      [0xc0, 0x80],
      [0x80, 0xc3, 0xa9],
    ]) {
      const bytes = Buffer.concat([utf8(before), Uint8Array.from(bad), utf8(after)]);
      for (const size of [1, 2, 5]) expectSame(bytes, Array(bytes.length).fill(size));
    }
  });

  test.each([
    ["lists", "[", "]"],
    ["objects", '{"":', "}"],
  ])("agrees on %s nested as deep as the size allows, and rejects deeper ones at once", (_name, open, close) => {
    const depth = 50_000;
    const junk = `${open.repeat(depth)}0${close.repeat(depth)}`;
    const quota = " ".repeat(16 * depth - 2_000);
    expectSame(utf8(whole.replace(/}$/, `,"junk":${junk}${quota}}`)), []);
    const hostile = utf8(open.repeat(10 * 2 ** 20));
    const scan = createManifestScan(hostile.length, salt, createPathTable(hostile.length, memory));
    expect(scan.take(hostile)).toBeFalse();
    expect(scan.finish()).toEqual({ kind: "unreadable", reason: manifestFaults.brackets });
  });
});
