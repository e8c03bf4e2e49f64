/**
 * Real data items, bundles and manifests, held against what published libraries found in them.
 *
 * The one sample that fails there fails here: a Cosmos wallet's item under type 4, which is Solana's number and
 * whose sizes it does not have.
 * @module
 */
import { describe, expect } from "bun:test";
import {
  type BundleEntry,
  firstEntry,
  isBundleTags,
  readBundleCount,
  readBundleEntries,
} from "../../src/arweave/bundle.ts";
import { checkItem } from "../../src/arweave/data-item.ts";
import { readManifest, resolvePath } from "../../src/arweave/manifest.ts";
import { dataRootOf } from "../../src/arweave/merkle.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { testWith } from "../support/helpers.ts";
import { type VectorEntry, vectorBytes, vectors, vectorsOf, vectorText } from "../support/vectors.ts";

/** What the index says of an item; every field may be absent. */
type ItemChecks = Readonly<{
  sigType?: number;
  id?: string;
  valid?: boolean;
  tags?: number;
  data_size?: number;
  owner_len?: number;
  sig_len?: number;
}>;

const items = vectorsOf("data-item");
const generated = vectorsOf("data-item-generated");
const bundles = vectorsOf("bundle");
const manifests = vectorsOf("manifest");
const cosmos = "bundles/bundlr_cosmos_sig";

describe("real data items", () => {
  testWith(vectors, "are valid but for one of 13, under both rules, and say what the libraries read", () => {
    expect(items.map(({ result }) => result).toSorted()).toEqual(["expected-invalid", ...Array(12).fill("pass")]);
    for (const entry of items) expectItem(entry, partsOf<ItemChecks>(entry, "arbundles"));
  });

  testWith(vectors, "that carry an id in their name have that id", () => {
    const withName = items.filter(({ file }) => /_[\w-]{43}$/.test(file));
    expect(withName).toHaveLength(3);
    for (const { file } of withName) {
      expect(idOf(vectorBytes(file))).toBe(file.slice(-43));
    }
  });

  testWith(vectors, "the invalid one is rejected for its signature", () => {
    const checked = checkItem(vectorBytes("data-items/turbo_stubInvalidDataItem"), "lenient");
    expect(checked).toEqual({
      kind: "invalid",
      reason: "the RSA signature does not match the owner and content",
    });
  });

  testWith(vectors, "the one that is a bundle holds the nested item that the index names", () => {
    const entry = items.find(({ file }) => file.endsWith("bdiDataItem"));
    const nested = partsOf<{ n: number; ids: string[] }>(entry, "nested");
    const checked = checkItem(vectorBytes("data-items/turbo_bdiDataItem"), "strict");
    if (checked.kind === "invalid") throw new Error(checked.reason);
    expect(isBundleTags(checked.header.tags)).toBe(true);
    const inside = entriesOf(checked.data);
    expect(inside).toHaveLength(nested?.n ?? -1);
    expect(inside.map(({ offset, size }) => idOf(checked.data.subarray(offset, offset + size)))).toEqual(
      nested?.ids ?? [],
    );
  });

  testWith(vectors, "made by published signers of types 2, 3, 4, 6 and 7 are valid: 6", () => {
    expect(generated).toHaveLength(6);
    for (const entry of generated) expectItem(entry, entry.checks as ItemChecks);
  });
});

describe("real bundles", () => {
  testWith(vectors, "hold items that are valid where their entries say, in 9 of 10", () => {
    expect(bundles).toHaveLength(10);
    for (const entry of bundles.filter(({ file }) => file !== cosmos)) {
      expect(entry.result).toBe("pass");
      const bytes = vectorBytes(entry.file);
      const found = entriesOf(bytes);
      const stated = partsOf<{ items?: number; n?: number }>(entry, "arbundles");
      expect(found).toHaveLength(Number(entry.checks["n"] ?? stated?.items));
      for (const { id, offset, size } of found) {
        expect(idOf(bytes.subarray(offset, offset + size))).toBe(id);
      }
    }
  });

  testWith(vectors, "the Cosmos item under type 4 is invalid as a Solana item, as the libraries say", () => {
    const bytes = vectorBytes(cosmos);
    const [entry] = entriesOf(bytes);
    const item = bytes.subarray(entry?.offset, (entry?.offset ?? 0) + (entry?.size ?? 0));
    expect(bundles.find(({ file }) => file === cosmos)?.result).toBe("partial (0/1 valid in arbundles)");
    // A Cosmos key has 33 bytes: read as Solana's 32, its last byte is where the target's flag should be.
    expect(checkItem(item, "strict")).toEqual({
      kind: "invalid",
      reason: "the target flag is 116, not 0 or 1",
    });
    expect(checkItem(item, "lenient").kind).toBe("invalid");
  });

  testWith(vectors, "have the data roots that the index states", () => {
    const stated = bundles.filter(({ checks }) => checks["data_root"] !== undefined);
    expect(stated).toHaveLength(2);
    for (const { file, checks } of stated) {
      expect(encodeBase64url(dataRootOf(vectorBytes(file), "halved"))).toBe(String(checks["data_root"]));
    }
  });

  testWith(vectors, "the part of a bundle is a header of one entry, for which its item is missing", () => {
    const parts = vectorsOf("bundle-part");
    expect(parts).toHaveLength(1);
    const bytes = vectorBytes(parts[0]?.file ?? "");
    expect(readBundleCount(bytes, bytes.length)).toEqual({ kind: "count", count: 1, headerSize: 96 });
    const step = readBundleEntries(bytes.subarray(32), firstEntry(1), 1, bytes.length);
    expect(step).toMatchObject({ entries: [], fault: "entry 0 reaches beyond the bundle's 96 bytes" });
    expect(readBundleEntries(bytes.subarray(32), firstEntry(1), 1, 10_000).entries).toHaveLength(1);
  });
});

describe("real manifests", () => {
  testWith(vectors, "mean what they state, wherever the version is in the file: 4", () => {
    expect(manifests).toHaveLength(4);
    for (const { file, checks } of manifests) {
      const manifest = readManifest(vectorBytes(file));
      const stated = JSON.parse(vectorText(file));
      expect(manifest.version).toBe(stated.version);
      expect(manifest.version as string).toBe(String(checks["version"]));
      expect(manifest.paths.size).toBe(Number(checks["paths"]));
      for (const [path, { id }] of Object.entries<{ id: string }>(stated.paths)) {
        expect<unknown>(resolvePath(manifest, path)).toEqual({ id, fallback: false });
      }
      const index = stated.index.id ?? stated.paths[stated.index.path].id;
      expect<unknown>(resolvePath(manifest, "")).toEqual({ id: index, fallback: false });
      const fallback = stated.version === "0.2.0" ? { id: stated.fallback.id, fallback: true } : undefined;
      expect<unknown>(resolvePath(manifest, "no/such/path")).toEqual(fallback);
    }
  });
});

function expectItem({ file, result }: VectorEntry, checks: ItemChecks | undefined): void {
  const bytes = vectorBytes(file);
  for (const rules of ["strict", "lenient"] as const) {
    const checked = checkItem(bytes, rules);
    expect([file, checked.kind]).toEqual([file, result === "pass" ? "item" : "invalid"]);
    if (checked.kind === "invalid") continue;
    const { header, data } = checked;
    const said = {
      sigType: header.signatureType,
      id: header.id,
      tags: header.tags.length,
      data_size: data.length,
      owner_len: header.owner.length,
      sig_len: header.signature.length,
    };
    expect(said).toMatchObject(statedOf(checks, Object.keys(said)));
  }
}

/** Those of the index's statements that are among the keys. */
function statedOf(checks: ItemChecks | undefined, keys: readonly string[]): ItemChecks {
  return Object.fromEntries(Object.entries(checks ?? {}).filter(([key]) => keys.includes(key)));
}

function partsOf<Parts>(entry: VectorEntry | undefined, key: string): Parts | undefined {
  return entry?.checks[key] as Parts | undefined;
}

function entriesOf(bytes: Uint8Array): readonly BundleEntry[] {
  const head = readBundleCount(bytes, bytes.length);
  if (head.kind === "invalid") throw new Error(head.reason);
  const step = readBundleEntries(bytes.subarray(32), firstEntry(head.count), head.count, bytes.length);
  if (step.fault !== undefined) throw new Error(step.fault);
  expect(step.next).toEqual({ index: head.count, offset: bytes.length });
  return step.entries;
}

/** The id of an item that is valid under the strict rules. */
function idOf(bytes: Uint8Array): string {
  const checked = checkItem(bytes, "strict");
  if (checked.kind === "invalid") throw new Error(checked.reason);
  return checked.header.id;
}
