/**
 * Reading and checking hostile proofs: bounds, damage, and what it may cost.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { noteOf } from "../../src/arweave/merkle.ts";
import { proofChunksMax, proofFields, proofItemsMax, proofTextSizeMax, readProof } from "../../src/arweave/proof.ts";
import { verifyProof } from "../../src/arweave/proof-verify.ts";
import { Failure } from "../../src/failures.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { createChance, mutateText, mutationCount, mutationSeed } from "../support/mutate.ts";

const sample = readFileSync(resolve(import.meta.dir, "../../docs/proof-example.json"), "utf8");
const proof = JSON.parse(sample);
const bytes = new TextEncoder().encode("And one on top of it.");

describe("readProof", () => {
  const { items, chunks, transaction, signature } = proof;
  const [item, chunk] = [items[0], chunks[0]];
  test.each<[string, Record<string, unknown>]>([
    ["version is not 1", { version: 2 }],
    ["kind is not 'transaction' or 'data_item'", { kind: "item" }],
    ["id is not a valid id", { id: "A" }],
    ["size is not a whole number", { size: -1 }],
    ["size is not a whole number", { size: 2 ** 53 }],
    ["range reaches beyond the content", { range: { start: 0, end: 22 } }],
    ["start is after end", { range: { start: 2, end: 1 } }],
    ["range is not an object", { range: null }],
    ["block is not an object", { block: [] }],
    ["hash is not a valid block hash", { block: { ...proof.block, hash: "A" } }],
    ["text has more than", { block: { ...proof.block, text: " ".repeat(4 * 2 ** 20 + 1) } }],
    ["text has more than", { transaction: { ...transaction, text: " ".repeat(2 ** 20 + 1) } }],
    ["data_at is after the end of the text", { transaction: { ...transaction, data_at: 99_999 } }],
    ["data_root has more than 32 bytes", { transaction: { ...transaction, data_root: "A".repeat(44) } }],
    [
      "tx_path has more than",
      { transaction: { ...transaction, place: { ...transaction.place, tx_path: "A".repeat(4_000) } } },
    ],
    [
      "weave_start is not a whole number",
      { transaction: { ...transaction, place: { ...transaction.place, weave_start: "-1" } } },
    ],
    ["items has more than", { items: Array(proofItemsMax + 1).fill(item) }],
    ["an item is not an object", { items: [1] }],
    ["header has more than", { items: [{ ...item, header: "A".repeat(2 ** 21) }] }],
    ["header is not canonical", { items: [{ ...item, header: "A" }] }],
    ["chunks has more than", { chunks: Array(proofChunksMax + 1).fill(chunk) }],
    ["chunk has more than", { chunks: [{ ...chunk, chunk: "A".repeat(400_000) }] }],
    ["data_path has more than", { chunks: [{ ...chunk, data_path: "A".repeat(500_000) }] }],
    ["absolute_end_offset has more than", { chunks: [{ ...chunk, absolute_end_offset: "9".repeat(20) }] }],
    ["owner has more than", { signature: { ...signature, owner: "A".repeat(6_000) } }],
    ["opens more than", { chunks: Array(5_000).fill([]) }],
  ])("rejects a proof in which %s", (reason, change) => {
    expect(reasonOf(() => readProof(JSON.stringify({ ...proof, ...change })))).toContain(reason);
  });

  test("looks at no text beyond its bound", () => {
    expect(reasonOf(() => readProof(" ".repeat(proofTextSizeMax + 1)))).toContain("characters");
  });

  test("writes what it reads", () => {
    expect(JSON.parse(JSON.stringify(proofFields(readProof(sample))))).toEqual(proof);
  });
});

describe("verifyProof", () => {
  const verify = (text: string) =>
    verifyProof({ id: proof.id, proof: readProof(text), anchor: { kind: "none" }, bytes });

  test("holds the example proven", () => {
    const open = [expect.stringContaining("who signed transaction")]; // its root is signed with ECDSA
    expect(verify(sample)).toMatchObject({ outcome: "proven", open });
  });

  test(`throws at none of ${mutationCount / 10} damaged proofs`, () => {
    console.log(`seed ${mutationSeed}`);
    const chance = createChance(mutationSeed);
    const outcomes = new Map<string, number>();
    for (let count = 0; count < mutationCount / 10; count++) {
      const outcome = outcomeOf(() => verify(mutateText([sample, JSON.stringify(proof)], chance)).outcome);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    console.log(Object.fromEntries(outcomes));
    expect([...outcomes.keys()].toSorted()).toEqual(
      ["placed", "proven", "rejected", "signed", "unreadable"].filter((each) => outcomes.has(each)),
    );
    expect(outcomes.get("rejected")).toBeGreaterThan(100);
  });

  test("reads paths to nowhere in the time that their bytes take", () => {
    // As many branches as fit, none of them the root's: the first ends it.
    const path = new Uint8Array(3_000 * 96 + 64);
    const chunks = Array.from({ length: 60 }, (_, index) => ({
      ...proof.chunks[0],
      start: index,
      end: index + 1,
      absolute_end_offset: String(262_144 + index + 1),
      data_path: encodeBase64url(path),
      chunk: "AA",
    }));
    expect(verify(JSON.stringify({ ...proof, chunks }))).toMatchObject({
      outcome: "rejected",
      fault: { step: "chunks" },
    });
  });

  test("does not let a size be the memory that is taken", () => {
    const far = Number.MAX_SAFE_INTEGER;
    const items = [{ ...proof.items[0], start: far - 200, data_start: far - 84, end: far }];
    expect(verify(JSON.stringify({ ...proof, items })).outcome).toBe("rejected");
    const index = [{ ...proof.items[0], entry: { index: far - 1, count: far } }];
    expect(verify(JSON.stringify({ ...proof, items: index })).outcome).toBe("rejected");
    const chunk = { ...proof.chunks[0], chunk: encodeBase64url(noteOf(far)), end: 32 };
    expect(verify(JSON.stringify({ ...proof, chunks: [chunk] })).outcome).toBe("rejected");
  });
});

function reasonOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return String(error.context["reason"]);
    throw error;
  }
  return "nothing";
}

/** Damage may make a text unreadable, or be in what proves nothing; it may never be a defect. */
function outcomeOf(work: () => string): string {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input") return "unreadable";
    throw error;
  }
}
