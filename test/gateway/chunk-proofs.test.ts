/**
 * Chunk proofs from local data: the data is hashed once for all requests, also without a proof.
 * @module
 */
import { expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { dataRootOf, validatePath } from "../../src/arweave/merkle.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { createChunkProofs } from "../../src/gateway/chunk-proofs.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import type { WeaveSpan } from "../../src/store/index/index-types.ts";
import { createMemoryContent, patternBytes } from "../support/memory-content.ts";

const never = new AbortController().signal;
const body = patternBytes(700_000);

/** @param count - Of contents with this data, which all have proofs of their own. */
async function openData(dataRoot: string, count = 1) {
  const content = createMemoryContent();
  let reads = 0;
  const datas = await Promise.all(
    Array.from({ length: count }, async (_, number) => {
      const found = await content.open(content.put(`data ${number}`, { body }), never);
      const inspect: OpenContent["inspect"] = (span, signal) => {
        reads += 1;
        return found.inspect(span, signal);
      };
      return { ...found, inspect };
    }),
  );
  const proofs = createChunkProofs(
    {
      block: () => undefined,
      blockText: () => undefined,
      transactionsOfBlock: () => [],
    },
    content,
  );
  const transactionOf = (id: Id): WeaveSpan => ({
    id,
    dataRoot,
    format: dataRoot === "" ? 1 : 2,
    start: 0n,
    end: BigInt(body.length),
    place: { height: 1, txIndex: 0, offset: -1 },
  });
  const ask = async (at: number, number = 0) => {
    const data = datas[number]!;
    return await proofs.dataProof(transactionOf(data.id), data, at, never);
  };
  return { ask, reads: () => reads, close: content.close };
}

test.each([
  ["as nearly all is", encodeBase64url(dataRootOf(body, "halved")), true],
  ["by the plain rule", encodeBase64url(dataRootOf(body, "plain")), true],
  ["in a way of its own", "A".repeat(43), false],
])(
  "data that is split %s is hashed once for all who ask at once, and for all who ask later",
  async (_name, root, has) => {
    const { ask, reads, close } = await openData(root);
    const once = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(at * 30_000)));
    const hashed = reads();
    expect(hashed).toBeLessThanOrEqual(2); // one for each rule
    expect(once.map((proof) => proof !== undefined)).toEqual(Array(20).fill(has));
    for (let at = 0; at < 5; at += 1) expect((await ask(at)) !== undefined).toBe(has);
    expect(reads()).toBe(hashed);
    await close();
  },
);

test("data is hashed once, also when many others are proven meanwhile, and each path leads to its chunk", async () => {
  const count = 60;
  const root = dataRootOf(body, "halved");
  const { ask, reads, close } = await openData(encodeBase64url(root), count);
  for (let round = 0; round < 2; round += 1)
    for (let number = 0; number < count; number += 1)
      for (const at of [0, 699_999]) {
        const proof = await ask(at, number);
        const question = { root, path: proof!.path, target: at, size: body.length, ruleset: "basic" } as const;
        const proven = validatePath(question);
        expect(proven).toMatchObject({ start: BigInt(proof!.span.start), end: BigInt(proof!.span.end) });
      }
  expect(reads()).toBe(count);
  await close();
});

test("data with an unknown root is never hashed", async () => {
  const { ask, reads, close } = await openData("");
  expect(await ask(0)).toBeUndefined();
  expect(reads()).toBe(0);
  await close();
});
