/**
 * Manifests: what each path means, in every order of keys, and an invalid manifest.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { idFromBytes } from "../../src/arweave/id.ts";
import { manifestSizeMax, memoryOfManifest, readManifest, resolvePath } from "../../src/arweave/manifest.ts";
import { Failure } from "../../src/failures.ts";
import { memoryOfEach } from "../support/heap.ts";
import { testKey } from "../support/signers.ts";

const index = idFromBytes(testKey(1));
const page = idFromBytes(testKey(2));
const style = idFromBytes(testKey(3));
const nested = idFromBytes(testKey(4));
const lost = idFromBytes(testKey(5));
const paths = {
  "index.html": { id: page },
  "css/style.css": { id: style },
  "docs/index.html": { id: nested },
  "folder/": { id: nested },
  "a b/ü": { id: style },
  "/rooted": { id: style },
};
const site = {
  manifest: "arweave/paths",
  version: "0.2.0",
  index: { path: "index.html" },
  fallback: { id: lost },
  paths,
};

describe("M1: resolvePath", () => {
  test.each([
    ["", page, false],
    ["/", page, false],
    ["index.html", page, false],
    ["css/style.css", style, false],
    ["css/style.css/", style, false],
    ["docs", nested, false],
    ["docs/", nested, false],
    ["docs/index.html", nested, false],
    ["folder", nested, false],
    ["folder/", nested, false],
    ["a b/ü", style, false],
    ["a b/u\u0308", lost, true],
    ["CSS/style.css", lost, true],
    ["rooted", lost, true],
    ["/rooted", style, false],
    ["css", lost, true],
    ["../index.html", lost, true],
    ["__proto__", lost, true],
    ["constructor", lost, true],
    ["a%20b/%C3%BC", lost, true],
  ])("%p means %p, by fallback %p", (path, id, fallback) => {
    expect(resolvePath(read(site), path)).toEqual({ id, fallback });
  });

  test.each([
    ["index by id", { index: { id: index } }, { id: index, fallback: false }],
    ["the id of an index with both", { index: { id: index, path: "index.html" } }, { id: index, fallback: false }],
    ["the fallback without an index", { index: undefined }, { id: lost, fallback: true }],
    ["the fallback when the index names no path", { index: { path: "none" } }, { id: lost, fallback: true }],
    ["the fallback when the index's id is invalid", { index: { id: "short" } }, { id: lost, fallback: true }],
    ["nothing without index and fallback", { index: undefined, fallback: undefined }, undefined],
    ["index by path in 0.1.0", { version: "0.1.0" }, { id: page, fallback: false }],
    ["no index by id in 0.1.0", { version: "0.1.0", index: { id: index } }, undefined],
  ])("the empty path means %s", (_name, change, expected) => {
    expect(resolvePath(read({ ...site, ...change }), "")).toEqual(expected);
  });

  test("0.1.0 has no fallback", () => {
    expect(resolvePath(read({ ...site, version: "0.1.0" }), "none")).toBeUndefined();
  });
});

describe("M1: readManifest", () => {
  test("means the same in every order of keys", () => {
    const expected = read(site);
    const orders = fc.shuffledSubarray(Object.entries(site), { minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(orders, (entries) => {
        expect(read(Object.fromEntries(entries))).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });

  test("takes names of Object's own members for paths like others", () => {
    const text = `{"manifest":"arweave/paths","version":"0.1.0","paths":{"__proto__":{"id":"${page}"},"toString":{"id":"${style}"}}}`;
    const manifest = readManifest(new TextEncoder().encode(text));
    expect(resolvePath(manifest, "__proto__")?.id).toBe(page);
    expect(resolvePath(manifest, "toString")?.id).toBe(style);
    expect(resolvePath(manifest, "hasOwnProperty")).toBeUndefined();
  });

  test.each([
    ["not 43 characters", "short"],
    ["not canonical", `${"A".repeat(42)}B`],
    ["a number", 5],
    ["absent", undefined],
  ])("leaves out a path whose id is %s, and keeps the others", (_name, id) => {
    const manifest = read({ ...site, paths: { ...paths, bad: { id } } });
    expect(manifest.paths.size).toBe(6);
    expect(resolvePath(manifest, "bad")).toEqual({ id: lost, fallback: true });
  });

  test.each([
    ["no JSON", "{"],
    ["nothing", ""],
    ["a list", "[]"],
    ["null", "null"],
    ["lists nested beyond reading", "[".repeat(1_000)],
    ["another kind", JSON.stringify({ ...site, manifest: "arweave/other" })],
    ["no kind", JSON.stringify({ ...site, manifest: undefined })],
    ["another version", JSON.stringify({ ...site, version: "0.3.0" })],
    ["no version", JSON.stringify({ ...site, version: undefined })],
    ["no paths", JSON.stringify({ ...site, paths: undefined })],
    ["paths in a list", JSON.stringify({ ...site, paths: [] })],
  ])("rejects %s", (_name, text) => {
    expect(() => readManifest(new TextEncoder().encode(text))).toThrow(Failure);
  });

  test("rejects more bytes than its limit before it reads them", () => {
    expect(() => readManifest(new Uint8Array(manifestSizeMax + 1))).toThrow(new Failure("too_large").message);
  });

  test.each([
    ["lists", "[".repeat(500_000)],
    ["objects", JSON.stringify({ ...site, more: Array(500_000).fill({}) })],
  ])("rejects, before it reads it, a text with more %s than paths need", (_name, text) => {
    const thrown = (() => {
      try {
        return readManifest(new TextEncoder().encode(text));
      } catch (error) {
        return error;
      }
    })();
    expect(thrown instanceof Failure && thrown.context["reason"]).toBe("the manifest opens too many lists or objects");
  });

  test("reads the shortest paths there can be, and names full of brackets", () => {
    const ends = [..."abcdefghijklmnopqrstuvwxyz"].flatMap((one) => [..."abcdef"].map((two) => one + two));
    const short = Object.fromEntries(
      ends.flatMap((end) => [..."0123456789"].map((digit) => [end + digit, { id: page }])),
    );
    expect(read({ ...site, paths: short }).paths.size).toBe(1_560);
    const named = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, at) => [`[lang]/[year]/[${at}].html`, { id: page }]),
    );
    expect(read({ ...site, paths: named }).paths.size).toBe(2_000);
  });

  test("reads a hundred thousand paths", () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`p/${at}`, { id: page }]));
    const manifest = read({ ...site, paths: many });
    expect(manifest.paths.size).toBe(100_000);
    expect(resolvePath(manifest, "p/99999")).toEqual({ id: page, fallback: false });
  });
});

function read(content: unknown) {
  return readManifest(new TextEncoder().encode(JSON.stringify(content)));
}

describe("the memory of a parsed manifest", () => {
  test.each([
    ["no", 0, (_path: number) => "", 10_000],
    ["one", 1, (_path: number) => "a", 10_000],
    ["few", 20, (path: number) => `page ${path}`, 1_000],
    // A map takes most where it has just grown.
    ["some", 65, (path: number) => String(path), 500],
    ["some", 257, (path: number) => `page ${path}`, 100],
    ["many", 1_025, (path: number) => String(path), 50],
    ["many", 1_025, (path: number) => String.fromCodePoint(0x4e00 + path), 50],
    ["most", 16_385, (path: number) => `page ${path}`, 4],
  ])("with %s paths (%p) is at most what is stated", (_few, count, nameOf, manifests) => {
    const text = JSON.stringify({
      ...{ manifest: "arweave/paths", version: "0.2.0" },
      paths: Object.fromEntries(Array.from({ length: count }, (_, path) => [nameOf(path), { id: page }])),
    });
    const bytes = new TextEncoder().encode(text);
    expect(memoryOfManifest(bytes.length)).toBeGreaterThan(memoryOfEach(manifests, () => readManifest(bytes)));
  });
});
