/**
 * Chunk proofs from local data: the data is hashed once for all requests, also without a proof.
 * @module
 */
import { expect, test } from "bun:test";
import { dataRootOf } from "../../src/arweave/merkle.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import { createChunkProofs } from "../../src/gateway/chunk-proofs.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import type { WeaveSpan } from "../../src/store/index/index-types.ts";
import { createMemoryContent, patternBytes } from "../support/memory-content.ts";

const never = new AbortController().signal;
const body = patternBytes(700_000);

async function openData(dataRoot: string) {
  const content = createMemoryContent();
  const id = content.put("data", { body });
  const found = await content.open(id, never);
  let reads = 0;
  const data: OpenContent = {
    ...found,
    inspect: (span, signal) => {
      reads += 1;
      return found.inspect(span, signal);
    },
  };
  let blocks = 0;
  const proofs = createChunkProofs(
    {
      block: () => undefined,
      blockText: () => {
        blocks += 1;
        return undefined;
      },
      transactionsOfBlock: () => [],
    },
    content,
  );
  const transaction: WeaveSpan = {
    id,
    dataRoot,
    format: dataRoot === "" ? 1 : 2,
    start: 0n,
    end: BigInt(body.length),
    place: { height: 1, txIndex: 0, offset: -1 },
  };
  const ask = (at: number) => proofs.dataProof(transaction, data, at, never);
  return { ask, reads: () => reads, blocks: () => blocks, close: content.close };
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

test("data with an unknown root is never hashed", async () => {
  const { ask, reads, close } = await openData("");
  expect(await ask(0)).toBeUndefined();
  expect(reads()).toBe(0);
  await close();
});
