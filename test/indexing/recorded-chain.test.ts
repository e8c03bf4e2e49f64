/**
 * Following the real chain: real blocks and transactions become exactly their rows, and the
 * data of format 1 is served with the right bytes.
 * @module
 */
import { describe, expect } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { openRecordedChain, type RecordedChain } from "../chain/recorded-chain.ts";
import { testWith } from "../support/helpers.ts";
import { spliceData } from "../support/places.ts";
import { vectors } from "../support/vectors.ts";
import { openWhole, untilWhole, type Whole, type WholeOptions } from "./indexing-fixture.ts";
import { openFolder } from "./samples.ts";

const never = '{"never":true}';
const none = new AbortController().signal;

/** The transaction that block 42 names and that is not recorded. */
const absentId = "fgZVZzLOTwdVdeqnPZrbHmtx2MXfyjqNc6xOrt6wOMk";

async function followed(
  from: number,
  to: number,
  body: (whole: Whole, chain: RecordedChain) => Promise<void>,
  options: Partial<WholeOptions> = {},
): Promise<void> {
  const folder = openFolder();
  const chain = await openRecordedChain(to);
  const whole = await openWhole({
    folder: folder.path,
    nodeUrls: [chain.url],
    start: from,
    unbundleFilter: never,
    ...options,
  });
  try {
    await untilWhole(`block ${to}`, () => whole.reader.tip()?.height === to, whole);
    await body(whole, chain);
  } finally {
    await whole.close();
    await chain.stop();
    folder.remove();
  }
}

/** What the index must say of a transaction, read from its JSON by nothing of ours but base64url. */
function expectedOf(chain: RecordedChain, id: string) {
  const tx = JSON.parse(chain.txText(id) ?? "{}");
  const text = (encoded: string) => Buffer.from(encoded, "base64url").toString();
  const data = decodeBase64url(tx.data ?? "") ?? new Uint8Array(0);
  const isFirst = tx.format === undefined || Number(tx.format) === 1;
  return {
    id,
    ownerAddress: encodeBase64url(sha256(Buffer.from(tx.owner, "base64url"))),
    ownerKey: tx.owner,
    target: tx.target,
    anchor: tx.last_tx,
    size: isFirst ? data.length : Number(tx.data_size),
    tags: tx.tags.map((tag: { name: string; value: string }) => ({
      name: text(tag.name),
      value: text(tag.value),
    })),
    quantity: BigInt(tx.quantity),
    reward: BigInt(tx.reward),
    format: isFirst ? 1 : 2,
  };
}

/** Compares every row of a range with the records. */
async function expectRows(whole: Whole, chain: RecordedChain, from: number, to: number): Promise<void> {
  const { reader } = whole;
  let transactions = 0;
  for (let height = from; height <= to; height += 1) {
    const text = chain.blockText(height);
    const block = JSON.parse(text);
    expect(reader.blockText(height)?.text).toBe(text);
    expect(reader.block(height)).toMatchObject({
      height,
      hash: block.indep_hash,
      timestamp: block.timestamp,
    });
    for (const [txIndex, id] of block.txs.entries()) {
      if (id === absentId) continue;
      transactions += 1;
      const row = reader.row(id);
      expect(row).toMatchObject(expectedOf(chain, id));
      expect(row?.place).toEqual({ height, txIndex, offset: -1 });
    }
  }
  const missing = from <= 42 && to >= 42 ? 1 : 0;
  expect(reader.counts()).toMatchObject({
    blocks: to - from + 1,
    transactions,
    items: 0,
    duplicates: 0,
    missingTransactions: missing,
  });
  expect(reader.integrity()).toEqual([]);
}

/** Reads all data of format 1 through content, and compares it with the records. */
async function expectData(whole: Whole, chain: RecordedChain, from: number, to: number): Promise<number> {
  let compared = 0;
  for (let height = from; height <= to; height += 1)
    for (const id of chain.idsOf(height) as readonly Id[]) {
      const { format, size } = expectedOf(chain, id);
      if (format !== 1 || size === 0) continue;
      const data = decodeBase64url(JSON.parse(chain.txText(id) ?? "{}").data) ?? new Uint8Array(0);
      const open = await whole.content.open(id, none);
      expect(open).toMatchObject({ size, verified: true });
      const bytes = await open.bytes({ start: 0, end: size }, none);
      expect(Buffer.compare(bytes, data)).toBe(0);
      const stored = whole.reader.transactionText(id);
      expect(stored === undefined ? "" : spliceData(stored, bytes)).toBe(chain.txText(id) ?? "");
      compared += 1;
    }
  return compared;
}

describe("the real chain", () => {
  testWith(vectors, "blocks 0 to 53 become their rows, all but the one transaction that no client has", async () => {
    await followed(0, 53, async (whole, chain) => {
      await expectRows(whole, chain, 0, 53);
      chain.requests.length = 0;
      expect(await expectData(whole, chain, 0, 53)).toBeGreaterThan(200);
      // All of it was stored when its transaction was followed: nothing is requested.
      expect(chain.requests.filter((request) => !/info|tx\/fgZVZz/.test(request))).toEqual([]);
    });
  });

  testWith(vectors, "a transaction that the node lacks, or has in its mempool only, is found later", async () => {
    const folder = openFolder();
    const chain = await openRecordedChain(53);
    const [lacking = "", waiting = ""] = [chain.idsOf(34)[0], chain.idsOf(0)[7]];
    chain.missing.add(lacking);
    chain.pending.add(waiting);
    const whole = await openWhole({ folder: folder.path, nodeUrls: [chain.url], unbundleFilter: never });
    await untilWhole("block 53", () => whole.reader.tip()?.height === 53, whole);
    expect(whole.reader.counts().missingTransactions).toBe(3);
    chain.missing.clear();
    chain.pending.clear();
    await untilWhole("both are found", () => whole.reader.counts().missingTransactions === 1, whole);
    await expectRows(whole, chain, 0, 53);
    await expectData(whole, chain, 34, 34);
    await whole.close();
    await chain.stop();
    folder.remove();
  });

  testWith(vectors, "ranges begin anywhere: 115 to 137, 186 to 200, 235200 to 235201", async () => {
    for (const [from, to] of [
      [115, 137],
      [186, 200],
      [235_200, 235_201],
    ] as const)
      await followed(from, to, async (whole, chain) => {
        await expectRows(whole, chain, from, to);
        await expectData(whole, chain, from, to);
      });
  });

  testWith(
    vectors,
    "blocks 422250 and 422251 are linked and checked, and their data is where the nodes say",
    async () => {
      await followed(422_250, 422_251, async (whole, chain) => {
        await expectRows(whole, chain, 422_250, 422_251);
        await expectData(whole, chain, 422_250, 422_251);
        const { checked, unchecked } = whole.reader.blockText(422_251) ?? { checked: [], unchecked: [] };
        expect(checked).toEqual(expect.arrayContaining(["hash", "previous block", "weave size", "transactions"]));
        expect(unchecked).not.toContain("transactions");
        for (const id of chain.idsOf(422_251) as readonly Id[]) {
          const response = await fetch(`${chain.url}/tx/${id}/offset`);
          const span = whole.reader.weaveSpan(id);
          if (response.status === 404) expect(span).toBeUndefined();
          else {
            const { offset, size } = await response.json();
            expect(span?.end).toBe(BigInt(offset));
            expect((span?.end ?? 0n) - (span?.start ?? 0n)).toBe(BigInt(size));
          }
        }
      });
    },
  );

  testWith(vectors, "block 893174 becomes its thousand rows, each at its place", async () => {
    await followed(893_174, 893_174, async (whole, chain) => {
      await expectRows(whole, chain, 893_174, 893_174);
      expect(whole.reader.counts().transactions).toBe(1_000);
    });
  });

  testWith(
    vectors,
    "one wrong byte of a real block is rejected and said, and the block is followed when it is right",
    async () => {
      const text = (await openedText(422_251)).replace('"timestamp":1586440933', '"timestamp":1586440932');
      const folder = openFolder();
      const chain = await openRecordedChain(422_251);
      expect(text).not.toBe(chain.blockText(422_251));
      chain.replaceBlock(422_251, text);
      const whole = await openWhole({ folder: folder.path, nodeUrls: [chain.url], start: 422_250 });
      await untilWhole("it is said", () => whole.indexing.status().reasons.length > 0, whole);
      expect(whole.indexing.status().reasons[0]).toMatch(/indep_hash/);
      expect(whole.reader.tip()?.height).toBe(422_250);
      chain.replaceBlock(422_251, undefined);
      await untilWhole("block 422251", () => whole.reader.tip()?.height === 422_251, whole);
      await whole.close();
      await chain.stop();
      folder.remove();
    },
  );
});

async function openedText(height: number): Promise<string> {
  const chain = await openRecordedChain(height);
  const text = chain.blockText(height);
  await chain.stop();
  return text;
}
