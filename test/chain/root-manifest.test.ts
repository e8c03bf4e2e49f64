/**
 * Sources of indexes of data items, and manifests of partitions: what is valid, what is rejected, and with which words.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type RootLocation,
  readRootManifest,
  readRootSources,
  rootManifestBytesMax,
  rootSourceFault,
} from "../../src/chain/root-manifest.ts";
import { utf8Bytes } from "../../src/lib/bytes.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { madeId } from "./data-node.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-root-manifest-"));
afterAll(() => removeFolder(folder));

const id = madeId(1);
const here: RootLocation = { kind: "file", path: "/index/manifest.json" };
const remote: RootLocation = { kind: "url", url: "https://example.com/a/manifest.json" };
const onChain: RootLocation = { kind: "content", part: { id: madeId(2), start: 0, size: undefined } };

type Json = Readonly<Record<string, unknown>>;

const partition = (location: Json, size: unknown = 5_000, prefix: unknown = "0a") => ({
  prefix,
  location,
  recordCount: 1,
  size,
});
const manifestOf = (...partitions: readonly unknown[]) =>
  utf8Bytes(JSON.stringify({ version: 1, createdAt: "2026-01-01T00:00:00Z", totalRecords: 1, partitions }));

describe("a manifest", () => {
  const locations: readonly (readonly [RootLocation, Json, RootLocation])[] = [
    [here, { type: "file", filename: "0a.cdb" }, { kind: "file", path: "/index/0a.cdb" }],
    [remote, { type: "file", filename: "0 a.cdb" }, { kind: "url", url: "https://example.com/a/0%20a.cdb" }],
    [remote, { type: "http", url: "b/0a.cdb" }, { kind: "url", url: "https://example.com/a/b/0a.cdb" }],
    [here, { type: "http", url: "http://other/0a.cdb" }, { kind: "url", url: "http://other/0a.cdb" }],
    [onChain, { type: "arweave-tx", txId: id }, { kind: "content", part: { id, start: 0, size: undefined } }],
    [here, { type: "arweave-id", id }, { kind: "content", part: { id, start: 0, size: undefined } }],
    [
      remote,
      { type: "arweave-bundle-item", txId: id, offset: 7, size: 5_000 },
      { kind: "content", part: { id, start: 7, size: 5_000 } },
    ],
    [
      onChain,
      { type: "arweave-byte-range", rootTxId: id, dataOffsetInRootTx: 9, dataItemId: madeId(3) },
      { kind: "content", part: { id, start: 9, size: 5_000 } },
    ],
  ];
  test.each(locations)("at %j has the location %j", (where, location, expected) => {
    const manifest = readRootManifest(manifestOf(partition(location)), where);
    expect([...manifest]).toEqual([[10, { location: expected, size: 5_000 }]]);
  });

  const file = { type: "file", filename: "0a.cdb" };
  const invalid: readonly (readonly [string, RootLocation, Uint8Array, RegExp])[] = [
    ["no JSON", here, utf8Bytes("{"), /not a JSON object/],
    ["another version", here, utf8Bytes('{"version":2,"partitions":[]}'), /version: expected 1/],
    ["no partitions", here, utf8Bytes('{"version":1}'), /partitions: expected a list/],
    ["257 partitions", here, manifestOf(...Array(257).fill(partition(file))), /more than 256 partitions/],
    ["a prefix twice", here, manifestOf(partition(file), partition(file)), /\[1\]: prefix is there twice/],
    ["an upper-case prefix", here, manifestOf(partition(file, 5_000, "0A")), /prefix: expected two/],
    ["a size below the head", here, manifestOf(partition(file, 4_095)), /size: expected an integer/],
    ["a size that is a text", here, manifestOf(partition(file, "5000")), /size: expected an integer/],
    ["no location", here, manifestOf({ prefix: "00", size: 5_000 }), /location: expected an object/],
    ["another location", here, manifestOf(partition({ type: "ftp" })), /location: invalid ftp/],
    ["a file beside content", onChain, manifestOf(partition(file)), /location: invalid file/],
    ["a relative URL on disk", here, manifestOf(partition({ type: "http", url: "a" })), /invalid http/],
    ["a file URL", remote, manifestOf(partition({ type: "http", url: "file:///etc/x" })), /invalid http/],
    ["an id of 42 characters", here, manifestOf(partition({ type: "arweave-id", id: id.slice(1) })), /invalid/],
    [
      "two sizes",
      here,
      manifestOf(partition({ type: "arweave-bundle-item", txId: id, offset: 0, size: 1 })),
      /location: invalid arweave-bundle-item/,
    ],
    [
      "a range without a place",
      here,
      manifestOf(partition({ type: "arweave-byte-range", rootTxId: id, dataOffsetInRootTx: -1 })),
      /location: invalid arweave-byte-range/,
    ],
  ];
  test.each(invalid)("with %s is invalid", (_name, where, bytes, reason) => {
    expect(() => readRootManifest(bytes, where)).toThrow(reason);
  });

  test.each(["../0a.cdb", "a/0a.cdb", "a\\0a.cdb", "..", ".", "", "/etc/passwd", "a\0.cdb", "x".repeat(256)])(
    "with the file name %j is invalid: it leaves its directory",
    (filename) => {
      for (const where of [here, remote])
        expect(() => readRootManifest(manifestOf(partition({ type: "file", filename })), where)).toThrow(
          "location: invalid file",
        );
    },
  );
});

describe("a source", () => {
  const url = (text: string) => ({ kind: "url", url: text });
  const named: readonly (readonly [string, unknown])[] = [
    ["a/b.cdb", { kind: "file", path: "a/b.cdb" }],
    ["a/manifest.json", { kind: "manifest", location: { kind: "file", path: "a/manifest.json" } }],
    ["https://e.com", url("https://e.com/")],
    ["https://e.com/i.cdb", url("https://e.com/i.cdb")],
    ["https://e.com/m.json?v=1", { kind: "manifest", location: url("https://e.com/m.json?v=1") }],
    ["https://e.com/a/?v=/", { kind: "manifest", location: url("https://e.com/a/manifest.json?v=/") }],
    [id, { kind: "content", part: { id, start: 0, size: undefined } }],
    [`${id}:5:10`, { kind: "content", part: { id, start: 5, size: 10 } }],
    [`${id}:5`, { kind: "file", path: `${id}:5` }],
  ];
  test.each(named)("%s is recognized by its form", (text, source) => {
    expect(readRootSources(text)).toEqual([source] as ReturnType<typeof readRootSources>);
  });

  test("that is an empty range is rejected", () => {
    expect(rootSourceFault(`${id}:5:0`)).toBe(`${id}:5:0: invalid range`);
  });

  test("that is a directory means its manifest, else its .cdb files, else it is rejected", () => {
    const path = join(folder, "directory");
    mkdirSync(path);
    expect(rootSourceFault(path)).toMatch(/contains neither manifest.json nor .cdb files/);
    for (const name of ["b.cdb", "a.cdb", "note.txt"]) writeFileSync(join(path, name), "");
    expect(readRootSources(path)).toEqual([
      { kind: "file", path: join(path, "a.cdb") },
      { kind: "file", path: join(path, "b.cdb") },
    ]);
    writeFileSync(join(path, "manifest.json"), manifestOf());
    expect(readRootSources(path)).toEqual([
      { kind: "manifest", location: { kind: "file", path: join(path, "manifest.json") } },
    ]);
    expect(rootSourceFault(path)).toBeUndefined();
  });

  test("whose manifest is invalid, too large, or differs from its files is rejected with its name", () => {
    const path = join(folder, "manifest.json");
    const fault = (text: string | Uint8Array) => {
      writeFileSync(path, text);
      return rootSourceFault(folder);
    };
    expect(fault("[]")).toBe(`${path}: invalid manifest: not a JSON object`);
    expect(fault("x".repeat(rootManifestBytesMax + 1))).toMatch(/at most 1048576 are read/);
    const listed = manifestOf(partition({ type: "file", filename: "0a.cdb" }));
    expect(fault(listed)).toMatch(/0a.cdb is not a file/);
    writeFileSync(join(folder, "0a.cdb"), new Uint8Array(4_999));
    expect(fault(listed)).toMatch(/0a.cdb has 4999 bytes, not 5000/);
    writeFileSync(join(folder, "0a.cdb"), new Uint8Array(5_000));
    expect(fault(listed)).toBeUndefined();
    expect(rootSourceFault(join(folder, "absent.json"))).toMatch(/no such file/);
  });
});
