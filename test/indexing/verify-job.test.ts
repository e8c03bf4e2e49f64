/**
 * Blocks and transactions as threads verify them: real ones become exactly their rows, one wrong byte is
 * rejected.
 * @module
 */
import { deserialize } from "bun:jsc";
import { describe, expect } from "bun:test";
import { readBlock } from "../../src/arweave/block.ts";
import { decodeBase64url } from "../../src/lib/base64url.ts";
import type { BlockRows } from "../../src/store/index/index-types.ts";
import { type CheckBlockJob, type CheckBlockResult, checkBlock, checkTransactions } from "../../workers/verify.ts";
import { testWith } from "../support/helpers.ts";
import { spliceData } from "../support/places.ts";
import { vectorBytes, vectorName, vectors, vectorsOf, vectorText } from "../support/vectors.ts";

const transactionFiles = new Map(vectorsOf("tx").map(({ file }) => [vectorName(file), file]));

function blockText(height: number): string {
  const folder = height > 0 && height <= 200 ? "blocks-1-200" : "blocks-mainnet-fixture";
  return vectorText(`${folder}/${height}.json`);
}

/** A job of a real block with those of its transactions that are among the vectors. */
function jobOf(height: number, changes: Partial<CheckBlockJob> = {}): CheckBlockJob {
  const block = blockText(height);
  const transactions = readBlock(block).txs.map((id) => {
    const file = transactionFiles.get(id);
    return file === undefined ? null : vectorBytes(file);
  });
  return { block, transactions, previous: undefined, isMainNet: true, ...changes };
}

type Accepted = Extract<CheckBlockResult, { kind: "accepted" }>;

function accepted(response: CheckBlockResult): Accepted {
  if (response.kind !== "accepted") throw new Error(JSON.stringify(response));
  return response;
}

function rowsOf(response: CheckBlockResult): BlockRows {
  const rows: BlockRows = deserialize(accepted(response).rows);
  return rows;
}

/** The text with one character changed to its neighbour. */
function spoilText(text: string, at: number): string {
  return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
}

describe("checkBlock", () => {
  testWith(vectors, "real blocks of every era become their rows, all transactions in the block's order", () => {
    for (const height of [0, 34, 235_201, 422_250, 422_251, 552_190, 591_140, 633_720, 893_174]) {
      const job = jobOf(height);
      const { block, transactions, missing, bundles } = rowsOf(checkBlock(job));
      const { txs, hash } = readBlock(job.block);
      expect(block).toMatchObject({ height, hash, txCount: txs.length, text: job.block });
      expect(transactions.map(({ id }) => id)).toEqual([...txs]);
      expect(transactions.map(({ txIndex }) => txIndex)).toEqual(txs.map((_, index) => index));
      expect(missing).toEqual([]);
      const tagged = transactions.filter(({ tags }) =>
        tags.some(({ name, value }) => name === "Bundle-Format" && value === "binary"),
      );
      expect(bundles.map(({ id, size }) => ({ id, size }))).toEqual(
        tagged.map(({ id, dataSize: size }) => ({ id, size })),
      );
      expect(bundles.map(({ place }) => place)).toEqual(tagged.map(({ txIndex }) => ({ height, txIndex, offset: -1 })));
    }
  });

  testWith(vectors, "data of format 1 is handed back apart, and the text is whole again when it is put back", () => {
    const job = jobOf(422_251);
    const response = accepted(checkBlock(job));
    const data = new Map(response.data.map(({ id, bytes }) => [id, bytes]));
    const { transactions } = rowsOf(response);
    let carried = 0;
    for (const { id, txIndex, text, dataAt, format, dataSize } of transactions) {
      const original = Buffer.from(job.transactions[txIndex] ?? []).toString();
      const bytes = new Uint8Array(data.get(id) ?? []);
      expect(spliceData({ text, dataAt: dataAt ?? null }, bytes)).toBe(original);
      if (format === 1) {
        const stated = decodeBase64url(JSON.parse(original).data) ?? new Uint8Array(1);
        expect(Buffer.compare(bytes, stated)).toBe(0);
        expect(dataSize).toBe(bytes.length);
      }
      carried += bytes.length > 0 ? 1 : 0;
    }
    expect(carried).toBe(data.size);
    expect(carried).toBeGreaterThan(0);
  });

  testWith(vectors, "weave offsets follow from the sorted layout: end to end they are the block", () => {
    for (const height of [422_251, 591_140, 893_174]) {
      const job = jobOf(height);
      const { block, transactions } = rowsOf(checkBlock(job));
      const spans = transactions.flatMap(({ weaveStart, weaveEnd, dataSize }) =>
        weaveStart === undefined || weaveEnd === undefined ? [] : [{ weaveStart, weaveEnd, dataSize }],
      );
      spans.sort((one, other) => Number(one.weaveStart - other.weaveStart));
      for (const span of spans) expect(span.weaveEnd - span.weaveStart).toBe(BigInt(span.dataSize));
      const last = spans.at(-1);
      expect(spans[0]?.weaveStart).toBe(block.weaveSize - block.blockSize);
      expect(last !== undefined && last.weaveEnd <= block.weaveSize).toBe(true);
      expect(spans.every((span, index) => index === 0 || span.weaveStart >= (spans[index - 1]?.weaveEnd ?? 0n))).toBe(
        true,
      );
    }
  });

  testWith(vectors, "what was checked is said: the link only where the block before is at hand", () => {
    const alone = accepted(checkBlock(jobOf(422_251)));
    expect(alone.unchecked).toContain("previous block");
    const linked = accepted(checkBlock(jobOf(422_251, { previous: blockText(422_250) })));
    expect(linked.checked).toEqual(
      expect.arrayContaining([
        "hash",
        "previous block",
        "block index",
        "cumulative difficulty",
        "weave size",
        "transactions",
      ]),
    );
    const unrelated = accepted(checkBlock(jobOf(422_251, { previous: blockText(591_140) })));
    expect(unrelated.unchecked).toEqual(alone.unchecked);
  });

  testWith(vectors, "a block without some of its transactions is accepted, and says which are missing", () => {
    const job = jobOf(591_140);
    const transactions = job.transactions.with(3, null).with(6, null);
    const response = accepted(checkBlock({ ...job, transactions }));
    const rows = rowsOf(response);
    const { txs } = readBlock(job.block);
    expect(rows.missing).toEqual([
      { txIndex: 3, id: txs[3]! },
      { txIndex: 6, id: txs[6]! },
    ]);
    expect(rows.transactions.map(({ txIndex }) => txIndex)).toEqual([0, 1, 2, 4, 5, 7]);
    expect(response.unchecked).toContain("transactions");
    expect(rows.transactions.every(({ weaveStart }) => weaveStart === undefined)).toBe(true);
  });

  testWith(vectors, "a wrong transaction is named, and the block is not accepted with it", () => {
    const job = jobOf(591_140);
    const wrong = Buffer.from(spoilText(Buffer.from(job.transactions[2]!).toString(), 200));
    const other = job.transactions[5]!;
    const cut = job.transactions[4]!.subarray(0, 100);
    const response = checkBlock({
      ...job,
      transactions: job.transactions.with(2, wrong).with(3, other).with(4, cut),
    });
    expect(response.kind).toBe("faulty");
    if (response.kind === "faulty") expect(response.transactions.map(({ txIndex }) => txIndex)).toEqual([2, 3, 4]);
  });

  testWith(
    vectors,
    "one wrong byte of a block is rejected, except for the name of the one field that no hash covers",
    () => {
      for (const height of [422_251, 633_720]) {
        const job = { ...jobOf(height), transactions: [] };
        const { block: text } = job;
        const chunk = text.indexOf('"chunk"') + 20;
        const chunkEnd = text.indexOf('"', chunk) - 20;
        // Every fourth byte, and of the chunk (256 KiB of the same) a few: reading such a block takes 3 ms.
        const isTried = (at: number) => at % (at > chunk && at < chunkEnd ? 60_000 : 4) === 0;
        const passed = Array.from(text, (_, at) => at)
          .filter(isTried)
          .filter((at) => checkBlock({ ...job, block: spoilText(text, at) }).kind === "accepted");
        // `tx_tree` was an empty list until 2.4. Under another name it is not a valid field at all.
        const name = text.indexOf("tx_tree");
        const others = passed.filter((at) => name === -1 || at < name || at >= name + "tx_tree".length);
        expect(others).toEqual([]);
      }
    },
    120_000,
  );
});

describe("checkTransactions", () => {
  testWith(vectors, "one wrong byte of a transaction is rejected, or changes nothing that the index says of it", () => {
    for (const height of [0, 893_174]) {
      const [bytes] = jobOf(height).transactions;
      const text = Buffer.from(bytes!).toString();
      const id = JSON.parse(text).id;
      const [whole] = checkTransactions({ transactions: [{ id, text: bytes! }] });
      let valid = 0;
      for (let at = 0; at < text.length; at += 1) {
        const [spoiled] = checkTransactions({
          transactions: [{ id, text: Buffer.from(spoilText(text, at)) }],
        });
        if (spoiled?.kind !== "valid" || whole?.kind !== "valid") continue;
        valid += 1;
        expect({ ...spoiled.row, text: "", dataAt: 0 }).toEqual({ ...whole.row, text: "", dataAt: 0 });
      }
      // Old nodes wrote `data_size` of format 1 as they liked; it is read from the data.
      expect(valid).toBeLessThanOrEqual(1);
    }
  });
});
