/**
 * The texts of blocks and transactions that never change: the bytes that were stored, from a depth of 18 blocks on.
 * @module
 */
import { expect, test } from "bun:test";
import { createRandom } from "../../../support/random.ts";
import { newSeed } from "../../../support/seed.ts";
import { growingChain } from "../growing-chain.ts";
import { indexFile } from "../index-file.ts";
import { bundleOf, idOf, itemOf, ownerOf } from "../rows-of.ts";

const random = createRandom(newSeed());
const owner = ownerOf(random);

const long = `{"id":"é","tags":["${"0123456789".repeat(100)}"],"data":""}`;

function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString();
}

test("blocks by height and transactions from a depth of 18 blocks, blocks by hash at once", () => {
  using file = indexFile();
  const { reader } = file;
  const chain = growingChain(file.writer, random, owner, 10);
  const { block, transactions } = chain.add({ transactions: [{ text: long }, { text: '{"a":1}' }] });
  const ids = transactions.map(({ id }) => id);
  for (let depth = 0; depth < 18; depth += 1) {
    expect([depth, reader.finalBlock(10), ...ids.map(reader.finalTransaction)]).toEqual([
      depth,
      undefined,
      undefined,
      undefined,
    ]);
    expect(textOf(reader.finalBlock(block.hash))).toBe(block.text);
    chain.add();
  }
  expect(textOf(reader.finalBlock(10))).toBe(block.text);
  expect(ids.map((id) => textOf(reader.finalTransaction(id)))).toEqual([long, '{"a":1}']);
  chain.rollback(28);
  expect([reader.finalBlock(10), ...ids.map(reader.finalTransaction)]).toEqual([undefined, undefined, undefined]);
});

test("no other id, block or item, and no transaction whose data was cut out", () => {
  using file = indexFile();
  const { reader } = file;
  expect([reader.finalBlock(0), reader.finalTransaction(idOf(random))]).toEqual([undefined, undefined]);
  const chain = growingChain(file.writer, random, owner, 10);
  const { transactions } = chain.add({
    transactions: [{ dataSize: 9_999 }, { format: 1, text: '{"format":1,"data":"AAEC"}' }],
    bundles: (height, rows) =>
      rows.slice(0, 1).map(({ id }) => bundleOf({ height, txIndex: 0, offset: -1 }, id, 9_999)),
  });
  const item = itemOf(random, owner, { place: { height: 10, txIndex: 0, offset: 64 } });
  const bundle = { height: 10, txIndex: 0, offset: -1 };
  file.writer.addItems({ bundle, rows: [item], firstEntry: 0, nextEntry: 1, bundles: [] });
  const { block } = chain.add();
  for (let depth = 0; depth < 20; depth += 1) chain.add();
  const withData = transactions[1]?.id ?? idOf(random);
  expect(reader.transactionRecord(withData)?.dataAt).not.toBeNull();
  expect([withData, item.id, idOf(random)].map(reader.finalTransaction)).toEqual([undefined, undefined, undefined]);
  expect([reader.finalBlock(9), reader.finalBlock(1_000)]).toEqual([undefined, undefined]);
  expect(textOf(reader.finalBlock(11))).toBe(block.text);
});
