/**
 * Trees, paths and rulesets: the reference node's own results, tables of edges, and properties.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  branchId,
  buildTree,
  chunkSize,
  chunkSpans,
  createDataRoot,
  dataRootOf,
  dataTreeOf,
  dataTreeOfHashes,
  leafId,
  type MerkleLeaf,
  noteOf,
  type ProvenLeaf,
  pathSizeMax,
  type Ruleset,
  rulesetAt,
  validatePath,
} from "../../src/arweave/merkle.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { describeWith, testWith } from "../support/helpers.ts";
import { rootOfPath } from "../support/merkle-path.ts";
import { createChance, mutateBytes, mutationCount, mutationSeed } from "../support/mutate.ts";
import { buildRebasedTree, type Nested } from "../support/rebased-tree.ts";
import { vectorBytes, vectorName, vectors, vectorsOf, vectorText } from "../support/vectors.ts";

const kib32 = 32_768;

/** Results of one proof, as the reference node gave them. */
type RulesetVector = Readonly<{
  spec: string;
  data_root: string;
  data_size: number;
  leaf_sizes: number[];
  proofs: {
    offset: number;
    data_path: string;
    results: Record<string, false | { chunk_id: string; start: number; end: number }>;
  }[];
}>;

const rulesetNames: Record<string, Ruleset> = {
  basic_ruleset: "basic",
  strict_borders_ruleset: "strict-borders",
  strict_data_split_ruleset: "strict-split",
  offset_rebase_support_ruleset: "relaxed",
};

function bytesOf(text: string): Uint8Array {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw new Error("the vectors hold base64url");
  return bytes;
}

describeWith(vectors, "the reference node's rulesets", () => {
  for (const { file } of vectorsOf("merkle-ruleset")) {
    const vector: RulesetVector = JSON.parse(vectorText(file));
    const root = bytesOf(vector.data_root);

    for (const { offset, data_path, results } of vector.proofs) {
      for (const [name, expected] of Object.entries(results)) {
        test(`${vectorName(file)}: ${name} at ${offset} gives ${JSON.stringify(expected)}`, () => {
          const found = validatePath({
            root,
            path: bytesOf(data_path),
            target: offset,
            size: vector.data_size,
            ruleset: rulesetNames[name] ?? "basic",
          });
          expect(found && inNumbers(found)).toEqual(
            expected === false ? undefined : { hash: expected.chunk_id, start: expected.start, end: expected.end },
          );
        });
      }
    }

    test(`${vectorName(file)}: root and paths of ${vector.spec} are made again`, () => {
      const tree = buildRebasedTree(chunksOf(JSON.parse(vector.spec)));
      expect(encodeBase64url(tree.root)).toBe(vector.data_root);
      for (const { offset, data_path } of vector.proofs) {
        expect(encodeBase64url(tree.path(offset))).toBe(data_path);
      }
    });
  }

  test("there are seven trees", () => {
    expect(vectorsOf("merkle-ruleset")).toHaveLength(7);
  });
});

/** Leaf n, counted from 1, is the byte n repeated. */
function chunksOf(spec: readonly unknown[]): Nested[] {
  let count = 0;
  const build = (part: unknown): Nested => {
    if (Array.isArray(part)) return part.map(build);
    count += 1;
    return new Uint8Array(Number(part)).fill(count);
  };
  return spec.map(build);
}

function inNumbers({ hash, start, end }: ProvenLeaf) {
  return { hash: encodeBase64url(hash), start: Number(start), end: Number(end) };
}

describe("chunkSpans", () => {
  const full = chunkSize;
  const rows: [size: number, rule: "halved" | "plain", ends: number[]][] = [
    [0, "plain", [0]],
    [0, "halved", [0]],
    [1, "halved", [1]],
    [full - 1, "halved", [full - 1]],
    [full, "halved", [full, full]],
    [full, "plain", [full, full]],
    [full + 1, "plain", [full, full + 1]],
    [full + 1, "halved", [131_073, full + 1]],
    [full + kib32 - 1, "halved", [147_456, full + kib32 - 1]],
    [full + kib32, "halved", [full, full + kib32]],
    [2 * full, "halved", [full, 2 * full, 2 * full]],
    [2 * full + 2, "halved", [full, full + 131_073, 2 * full + 2]],
    [2 * full + 2, "plain", [full, 2 * full, 2 * full + 2]],
  ];
  test.each(rows)("%p bytes by the %s rule end at %p", (size, rule, ends) => {
    const spans = chunkSpans(size, rule);
    expect(spans.map(({ end }) => end)).toEqual(ends);
    expect(spans.map(({ start }) => start)).toEqual([0, ...ends.slice(0, -1)]);
  });
});

describe("data roots", () => {
  testWith(vectors, "the 1 MiB file has the root that arweave-js finds, with an empty last leaf", () => {
    const [entry] = vectorsOf("file-for-data-root");
    const bytes = vectorBytes(entry?.file ?? "");
    for (const rule of ["halved", "plain"] as const) {
      expect(encodeBase64url(dataRootOf(bytes, rule))).toBe(String(entry?.checks["data_root_by_arweave_js"]));
      expect(dataTreeOf(bytes, rule).leafCount).toBe(5);
    }
  });

  test("pieces of any size give the root of the whole, and their hashes its paths, by both rules", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3 * chunkSize + 5 }),
        fc.array(fc.integer({ min: 1, max: 2 * chunkSize }), { minLength: 1, maxLength: 5 }),
        fc.constantFrom("halved" as const, "plain" as const),
        (size, steps, rule) => {
          const bytes = new Uint8Array(size).map((_, index) => index * 31);
          const hash = createDataRoot(size, rule);
          for (let at = 0, round = 0; at < size; round++) {
            const step = steps[round % steps.length] ?? 1;
            hash.update(bytes.subarray(at, at + step));
            at += step;
          }
          const tree = hash.finish();
          expect(tree.root).toEqual(dataRootOf(bytes, rule));
          const again = dataTreeOfHashes(tree.hashes, size, rule);
          for (let index = 0; index < tree.leafCount; index += 1) expect(again.path(index)).toEqual(tree.path(index));
        },
      ),
      { numRuns: 25 },
    );
  });

  test("a hash that gets fewer or more bytes than announced is a defect of the caller", () => {
    expect(() => createDataRoot(2, "plain").finish()).toThrow("invariant broken");
    expect(() => createDataRoot(2, "plain").update(new Uint8Array(3))).toThrow("invariant broken");
  });
});

describe("noteOf", () => {
  const rows: [number | bigint, string][] = [
    [0, "00".repeat(32)],
    [1, `${"00".repeat(31)}01`],
    [262_144, `${"00".repeat(29)}040000`],
    [2 ** 32, `${"00".repeat(27)}0100000000`],
    [2 ** 53 - 1, `${"00".repeat(25)}1fffffffffffff`],
    [2n ** 256n - 1n, "ff".repeat(32)],
  ];
  test.each(rows)("%p is %s", (offset, hex) => {
    expect(noteOf(offset).toHex()).toBe(hex);
  });

  test.each([-1, 1.5, 2 ** 53, -1n, 2n ** 256n])("%p is not a valid offset: a defect of the caller", (offset) => {
    expect(() => noteOf(offset)).toThrow("invariant broken");
  });
});

describe("rulesetAt", () => {
  const [strict, rebase] = [30_607_159_107_830n, 151_066_495_197_430n];
  const rows: [start: bigint, split: bigint | undefined, rebase: bigint | undefined, ruleset: Ruleset][] = [
    [0n, undefined, undefined, "strict-borders"],
    [10n ** 18n, undefined, undefined, "strict-borders"],
    [strict - 1n, strict, rebase, "strict-borders"],
    [strict, strict, rebase, "strict-split"],
    [rebase - 1n, strict, rebase, "strict-split"],
    [rebase, strict, rebase, "relaxed"],
    [0n, 0n, 0n, "relaxed"],
    [5n, 0n, undefined, "strict-split"],
  ];
  test.each(rows)(
    "a block that starts at %p, split from %p, rebase from %p, has %s rules",
    (start, split, from, name) => {
      expect(rulesetAt(start, { strictSplitThreshold: split, rebaseThreshold: from })).toBe(name as never);
    },
  );
});

/** Leaves of the given sizes, each with a hash of its own. */
function leavesOf(sizes: readonly number[]): MerkleLeaf[] {
  let end = 0;
  return sizes.map((size, index) => {
    end += size;
    return { hash: sha256(noteOf(index)), end };
  });
}

describe("buildTree", () => {
  test("a tree without leaves has no root", () => {
    expect(buildTree([])).toMatchObject({ leafCount: 0, root: new Uint8Array(0) });
  });

  test("a tree of one leaf has the leaf's id as its root", () => {
    const tree = buildTree(leavesOf([7]));
    expect(rootOfPath(tree.path(0))).toEqual(tree.root);
    expect(tree.path(0)).toHaveLength(64);
  });

  test("asking for a leaf that is not there is a defect of ours", () => {
    expect(() => buildTree(leavesOf([1, 2])).path(2)).toThrow("invariant broken");
  });

  test("every byte of every tree is proven by its leaf's path, and found at its place", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 40 }),
        fc.bigInt({ min: 0n, max: 2n ** 200n }),
        (sizes, shift) => {
          const leaves = leavesOf(sizes).map(({ hash, end }) => ({ hash, end: BigInt(end) + shift }));
          const tree = buildTree(leaves);
          const size = leaves.at(-1)?.end ?? 0n;
          let start = 0n;
          leaves.forEach(({ hash, end }, index) => {
            for (const target of [start, end - 1n]) {
              const path = tree.path(index);
              const found = validatePath({ root: tree.root, path, target, size, ruleset: "basic" });
              expect(found).toEqual({ hash, start, end });
            }
            start = end;
          });
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("validatePath", () => {
  const sizes = [chunkSize, chunkSize, chunkSize, 100_000, 90_000];
  const tree = buildTree(leavesOf(sizes));
  const size = 3 * chunkSize + 190_000;
  const root = tree.root;

  test("any flipped bit of a path that is followed is rejected", () => {
    const path = tree.path(3);
    for (let bit = 0; bit < path.length * 8; bit++) {
      const at = bit >> 3;
      const flipped = path.with(at, (path[at] ?? 0) ^ (1 << (bit & 7)));
      const target = 3 * chunkSize;
      expect(validatePath({ root, path: flipped, target, size, ruleset: "basic" })).toBeUndefined();
    }
  });

  test("a path of any other length is rejected", () => {
    const path = tree.path(2);
    for (let length = 0; length < path.length; length++) {
      const cut = path.subarray(0, length);
      expect(validatePath({ root, path: cut, target: 2 * chunkSize, size, ruleset: "relaxed" })).toBeUndefined();
    }
    const longer = new Uint8Array([...path, 0]);
    expect(validatePath({ root, path: longer, target: 2 * chunkSize, size, ruleset: "relaxed" })).toBeUndefined();
  });

  test("a path longer than any tree needs is not even hashed", () => {
    const path = new Uint8Array(pathSizeMax + 1);
    expect(validatePath({ root, path, target: 0, size, ruleset: "relaxed" })).toBeUndefined();
  });

  test("a size of 0 has no bytes to prove", () => {
    expect(validatePath({ root, path: tree.path(0), target: 0, size: 0, ruleset: "basic" })).toBeUndefined();
  });

  const edges: [target: number, start: number | undefined][] = [
    [-5, 0],
    [0, 0],
    [chunkSize - 1, 0],
    [chunkSize, undefined],
  ];
  test.each(edges)("the first leaf's path, for byte %p, begins at %p", (target, start) => {
    const found = validatePath({ root, path: tree.path(0), target, size, ruleset: "basic" });
    expect(found?.start).toBe(start === undefined ? undefined : BigInt(start));
  });

  test("a marker that moves nothing changes nothing; one that moves something proves no other place", () => {
    const [nothing, marker] = [new Uint8Array(0), new Uint8Array(32)];
    const proven = (markers: Uint8Array[], leaf: number) => {
      const path = tree.path(leaf);
      const branches = Array.from({ length: (path.length - 64) / 96 }, (_, index) =>
        concatBytes([markers[index] ?? nothing, path.subarray(index * 96, index * 96 + 96)]),
      );
      const marked = concatBytes([...branches, path.subarray(-64)]);
      const found = validatePath({ root, path: marked, target: leaf * chunkSize, size, ruleset: "relaxed" });
      return found && [Number(found.start), Number(found.end)];
    };
    // The first leaf is at the left thrice; the second to the left twice, and then to the right.
    expect(proven([marker, marker, marker], 0)).toEqual([0, chunkSize]);
    expect(proven([marker, marker], 1)).toEqual([chunkSize, 2 * chunkSize]);
    expect(proven([nothing, nothing, marker], 1)).toBeUndefined();
    expect(proven([nothing, marker], 2)).toBeUndefined();
  });

  test("beyond the end counts as the last byte", () => {
    const found = validatePath({ root, path: tree.path(4), target: 10 ** 15, size, ruleset: "basic" });
    expect(found?.end).toBe(BigInt(size));
  });

  const splits: [name: string, sizes: number[], verdicts: string][] = [
    ["full chunks and a short last one", [chunkSize, chunkSize, 5], "bsr"],
    ["one short chunk", [5], "bsr"],
    ["one full chunk", [chunkSize], "bsr"],
    ["a halved tail", [chunkSize, 140_000, 139_000], "bsr"],
    ["a short chunk before a last one that spans two steps", [100_000, chunkSize], "b-r"],
    ["a chunk too large", [chunkSize + 1], "---"],
    ["three short chunks", [100_000, 100_000, 100_000], "b--"],
  ];
  test.each(splits)("%s of %p pass: %s (borders, split, relaxed)", (_name, parts, verdicts) => {
    const split = buildTree(leavesOf(parts));
    const whole = parts.reduce((sum, part) => sum + part, 0);
    const passes = (ruleset: Ruleset) => {
      let end = 0;
      return parts.every((part, index) => {
        end += part;
        const path = split.path(index);
        return validatePath({ root: split.root, path, target: end - 1, size: whole, ruleset }) !== undefined;
      });
    };
    const found = [
      passes("strict-borders") ? "b" : "-",
      passes("strict-split") ? "s" : "-",
      passes("relaxed") ? "r" : "-",
    ];
    expect(found.join("")).toBe(verdicts);
  });

  test("a note of 2^256 − 1 is read as such, and proves nothing", () => {
    const hash = sha256(new Uint8Array(0));
    const huge = buildTree([{ hash, end: 2n ** 256n - 1n }]);
    const question = { root: huge.root, path: huge.path(0), target: 0, size };
    expect(validatePath({ ...question, ruleset: "relaxed" })).toBeUndefined();
    expect(validatePath({ ...question, ruleset: "basic" })?.end).toBe(BigInt(size));
  });
});

describe(`${mutationCount} damaged paths (seed ${mutationSeed})`, () => {
  test("prove only what the sound ones prove, and nothing is thrown", () => {
    const plain = buildTree(leavesOf([chunkSize, chunkSize, chunkSize, 100_000, 90_000]));
    const nested = buildRebasedTree([[new Uint8Array(chunkSize)], [new Uint8Array(chunkSize).fill(1)]]);
    const trees = [
      {
        root: plain.root,
        size: 3 * chunkSize + 190_000,
        paths: [0, 1, 2, 3, 4].map((leaf) => plain.path(leaf)),
      },
      { root: nested.root, size: 2 * chunkSize, paths: [nested.path(0), nested.path(chunkSize)] },
    ];
    const rulesets: Ruleset[] = ["basic", "strict-borders", "strict-split", "relaxed"];
    const chance = createChance(mutationSeed);
    const known = trees.map(({ root, size, paths }) => knownLeaves(root, size, paths));
    for (let count = 0; count < mutationCount; count++) {
      const which = count % trees.length;
      const { root, size, paths } = trees[which] ?? { root: new Uint8Array(0), size: 1, paths: [] };
      const path = mutateBytes(paths, chance);
      const target = chance.below(size);
      const found = validatePath({ root, path, target, size, ruleset: rulesets[chance.below(4)] ?? "basic" });
      if (found !== undefined) expect(known[which]).toContain(encodeBase64url(found.hash));
    }
  }, 120_000);
});

function knownLeaves(root: Uint8Array, size: number, paths: readonly Uint8Array[]): string[] {
  return paths.map((path) => {
    const hash = path.subarray(-64, -32);
    expect(rootOfPath(path)).toEqual(root);
    expect(size).toBeGreaterThan(0);
    return encodeBase64url(hash);
  });
}

describe("K1: a path", () => {
  const leafHash = sha256(new Uint8Array([1]));
  const leafEnd = noteOf(1);
  const branchBytes = 96;
  const branchesMax = Math.floor((pathSizeMax - 64) / branchBytes);

  /** A tree whose branches all go left, and its path to the first byte. */
  function leaning(branches: number): Readonly<{ root: Uint8Array; path: Uint8Array }> {
    let root = leafId(leafHash, leafEnd);
    const parts = [concatBytes([leafHash, leafEnd])];
    for (let index = 0; index < branches; index += 1) {
      parts.push(concatBytes([root, leafHash, leafEnd]));
      root = branchId(root, leafHash, leafEnd);
    }
    return { root, path: concatBytes(parts.reverse()) };
  }

  test.each([
    [branchesMax, true],
    [branchesMax + 1, false],
    [2 * branchesMax, false],
  ])("of %p branches that proves its leaf is accepted: %p", (branches, isAccepted) => {
    const proven = validatePath({ ...leaning(branches), target: 0, size: 2, ruleset: "basic" });
    expect(proven !== undefined).toBe(isAccepted);
  });
});
