/**
 * Chunks: real ones, and every way in which one can fail to prove what it claims.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  admitChunk,
  checkChunk,
  type PostedChunk,
  readPostedChunk,
  readServedChunk,
  servedChunkFields,
} from "../../src/arweave/chunk.ts";
import {
  branchId,
  chunkSize,
  chunkSpans,
  dataTreeOf,
  leafId,
  noteOf,
  type TailRule,
  validatePath,
} from "../../src/arweave/merkle.ts";
import { Failure } from "../../src/failures.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { concatBytes, equalBytes, readUnsigned } from "../../src/lib/bytes.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { writeJson } from "../../src/lib/json.ts";
import { testWith } from "../support/helpers.ts";
import { rootOfPath } from "../support/merkle-path.ts";
import { createChance, mutateText, mutationCount, mutationSeed } from "../support/mutate.ts";
import { vectors, vectorsOf, vectorText } from "../support/vectors.ts";

/** Of each real chunk: where its data is. */
const realChunks: [
  file: string,
  dataRoot: string,
  dataSize: number,
  offset: number,
  ruleset: "strict-split" | "relaxed",
][] = [
  ["chunks/51530681327863.json", "wRq6f05oRupfTW_M5dcYBtwK5P8rSNYu20vC6D_o-M4", 256_000, 0, "strict-split"],
  ["chunks/351531360100599.json", "QsB3Rr6C66f1QYRfXV_DXllCOTx2J_Eo2RLOr_egtx8", 11_879_200, 262_143, "relaxed"],
];

describe("real chunks", () => {
  for (const [file, root, dataSize, offset, ruleset] of realChunks) {
    testWith(vectors, `${file} proves its bytes, and its data root under the block's root`, () => {
      const { chunk, dataPath, txPath } = readServedChunk(vectorText(file));
      const dataRoot = Buffer.from(root, "base64url");
      const claim = { dataRoot, dataSize, dataPath, offset, chunk, ruleset };
      expect(checkChunk(claim)).toEqual({ kind: "proven", start: 0, end: chunk.length });
      expect(rootOfPath(dataPath)).toEqual(new Uint8Array(dataRoot));

      const txRoot = rootOfPath(txPath) ?? new Uint8Array(0);
      const end = readUnsigned(txPath.subarray(-32));
      const leaf = validatePath({
        root: txRoot,
        path: txPath,
        target: end - 1n,
        size: end,
        ruleset: "basic",
      });
      expect(leaf && encodeBase64url(leaf.hash)).toBe(root);
      expect(leaf && leaf.end - leaf.start).toBe(BigInt(dataSize));
    });
  }

  testWith(vectors, "a body of POST /chunk is admitted", () => {
    const [entry] = vectorsOf("post-chunk-body");
    const posted = readPostedChunk(vectorText(entry?.file ?? ""));
    expect(admitChunk(posted)).toEqual({ kind: "proven", start: 0, end: 224_714 });
  });

  testWith(vectors, "there are two, and one body", () => {
    expect(
      vectorsOf("chunk")
        .map(({ file }) => file)
        .sort(),
    ).toEqual(realChunks.map(([file]) => file).sort());
    expect(vectorsOf("post-chunk-body")).toHaveLength(1);
  });
});

/** Every chunk of data that has bytes, as a client posts it. */
function chunksOf(data: Uint8Array, rule: TailRule): PostedChunk[] {
  const tree = dataTreeOf(data, rule);
  return chunkSpans(data.length, rule)
    .filter(({ start, end }) => end > start)
    .map(({ start, end }, index) => ({
      dataRoot: tree.root,
      dataSize: data.length,
      dataPath: tree.path(index),
      offset: end - 1,
      chunk: data.subarray(start, end),
    }));
}

function bytesOfSize(size: number): Uint8Array {
  return new Uint8Array(size).map((_, index) => index * 7 + (index >> 8));
}

describe("checkChunk", () => {
  test("every chunk of data of any size is proven by both tail rules and all rulesets", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 * chunkSize }),
        fc.constantFrom("halved" as const, "plain" as const),
        (size, rule) => {
          for (const posted of chunksOf(bytesOfSize(size), rule)) {
            for (const ruleset of ["strict-borders", "strict-split", "relaxed"] as const) {
              const start = posted.offset + 1 - posted.chunk.length;
              const expected = { kind: "proven", start, end: posted.offset + 1 } as const;
              expect(checkChunk({ ...posted, ruleset })).toEqual(expected);
            }
          }
        },
      ),
      {
        numRuns: 30,
        examples: [
          [chunkSize, "plain"],
          [2 * chunkSize, "halved"],
          [chunkSize + 1, "halved"],
        ],
      },
    );
  });

  const [first, second] = chunksOf(bytesOfSize(2 * chunkSize - 9), "plain");
  if (first === undefined || second === undefined) throw new Error("the data has two chunks");
  const flipped = (bytes: Uint8Array, at: number) => bytes.with(at, (bytes[at] ?? 0) ^ 1);
  const rows: [name: string, claim: PostedChunk, reason: string][] = [
    ["a changed byte", { ...first, chunk: flipped(first.chunk, 99) }, "chunk is not what its place commits to"],
    ["a missing byte", { ...first, chunk: first.chunk.subarray(1) }, "chunk is not as long as its place"],
    ["no bytes", { ...first, chunk: new Uint8Array(0) }, "chunk is not as long as its place"],
    [
      "another chunk's path",
      { ...first, dataPath: second.dataPath },
      "data_path does not prove this offset under this root",
    ],
    [
      "an offset of another chunk",
      { ...first, offset: second.offset },
      "data_path does not prove this offset under this root",
    ],
    ["an offset before the data", { ...first, offset: -1 }, "offset is beyond the data"],
    ["an offset at the end", { ...second, offset: second.dataSize }, "offset is beyond the data"],
    [
      "another root",
      { ...first, dataRoot: flipped(first.dataRoot, 0) },
      "data_path does not prove this offset under this root",
    ],
    ["no path", { ...first, dataPath: new Uint8Array(0) }, "data_path does not prove this offset under this root"],
    ["a size of 0", { ...first, dataSize: 0, offset: 0 }, "offset is beyond the data"],
  ];
  test.each(rows)("%s is rejected", (_name, claim, reason) => {
    expect(checkChunk({ ...claim, ruleset: "relaxed" })).toEqual({ kind: "rejected", reason });
    expect(admitChunk(claim)).toEqual({ kind: "rejected", reason });
  });

  test("a byte between a leaf's end and its branch's is proven by no chunk, the leaf's own bytes are", () => {
    const chunk = bytesOfSize(100);
    const [left, right, note] = [leafId(sha256(chunk), noteOf(100)), new Uint8Array(32), noteOf(200)];
    const dataPath = concatBytes([left, right, note, sha256(chunk), noteOf(100)]);
    const claim = { dataRoot: branchId(left, right, note), dataSize: 300, dataPath, chunk };
    expect(admitChunk({ ...claim, offset: 99 })).toEqual({ kind: "proven", start: 0, end: 100 });
    for (const offset of [100, 199]) {
      const reason = "offset is in a gap of the tree";
      expect(checkChunk({ ...claim, offset, ruleset: "relaxed" })).toEqual({ kind: "rejected", reason });
      expect(admitChunk({ ...claim, offset }).kind).toBe("rejected");
    }
  });

  test("a smaller stated size than the data has is rejected for the chunk that crosses it", () => {
    const claim = { ...second, dataSize: second.dataSize - 1, offset: second.dataSize - 2 };
    expect(admitChunk(claim).kind).toBe("rejected");
  });
});

describe("reading chunks", () => {
  const [posted] = chunksOf(bytesOfSize(1_000), "plain");
  if (posted === undefined) throw new Error("the data has a chunk");
  const body = {
    data_root: encodeBase64url(posted.dataRoot),
    data_size: "1000",
    data_path: encodeBase64url(posted.dataPath),
    offset: "999",
    chunk: encodeBase64url(posted.chunk),
  };

  test("a body reads as it was written", () => {
    const read = readPostedChunk(JSON.stringify(body));
    expect(read.dataSize).toBe(1_000);
    expect(admitChunk(read)).toEqual({ kind: "proven", start: 0, end: 1_000 });
  });

  test("what is served reads back", () => {
    const served = { chunk: posted.chunk, dataPath: posted.dataPath, txPath: new Uint8Array(64) };
    const read = readServedChunk(writeJson(servedChunkFields(served, 1_000n)));
    expect([read.chunk, read.dataPath, read.txPath].map((part) => part.toHex())).toEqual(
      [served.chunk, served.dataPath, served.txPath].map((part) => part.toHex()),
    );
  });

  const rows: [name: string, change: object, reason: string][] = [
    ["a root of 31 bytes", { data_root: "A".repeat(42) }, "data_root has 31 bytes instead of 32"],
    ["a number for a size", { data_size: -1 }, "data_size is not a whole number"],
    ["a size of 79 digits", { data_size: "1".repeat(79) }, "data_size has more than 78 digits"],
    ["a size beyond 2^53", { data_size: String(2n ** 53n) }, "data_size is more than there can be"],
    ["an offset beyond 2^53", { offset: String(2n ** 255n) }, "offset is more than there can be"],
    ["no offset", { offset: undefined }, "offset is missing"],
    ["a chunk above 256 KiB", { chunk: "A".repeat(349_530) }, "chunk has more than 262144 bytes"],
    ["padding", { chunk: "QQ==" }, "chunk is not canonical base64url"],
    ["a path that is a list", { data_path: [] }, "data_path is not text"],
  ];
  test.each(rows)("%s is rejected", (_name, change, reason) => {
    expect(reasonOf(() => readPostedChunk(JSON.stringify({ ...body, ...change })))).toBe(reason);
  });

  test("the greatest size there is proves nothing that its path does not", () => {
    const most = String(Number.MAX_SAFE_INTEGER);
    const read = readPostedChunk(JSON.stringify({ ...body, data_size: most, offset: "9007199254740990" }));
    expect(read.dataSize).toBe(Number.MAX_SAFE_INTEGER);
    expect(admitChunk(read).kind).toBe("rejected");
  });

  test("a text above the bound is not parsed", () => {
    expect(reasonOf(() => readPostedChunk(" ".repeat(850_001)))).toContain("expected at most 850000");
  });

  test(`${mutationCount} damaged bodies (seed ${mutationSeed}) prove nothing else, and nothing but a Failure is thrown`, () => {
    const chance = createChance(mutationSeed);
    const text = JSON.stringify(body);
    for (let count = 0; count < mutationCount; count++) {
      const damaged = mutateText([text], chance);
      const read = attempt(() => readPostedChunk(damaged));
      if (read === undefined || admitChunk(read).kind === "rejected") continue;
      expect(equalBytes(read.chunk, posted.chunk)).toBe(true);
    }
  }, 120_000);
});

function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input") return undefined;
    throw error;
  }
}

function reasonOf(read: () => unknown): string {
  try {
    read();
    return "no failure";
  } catch (error) {
    return error instanceof Failure ? String(error.context["reason"]) : `no Failure but ${error}`;
  }
}
