/**
 * A chain of random rows as an ar-io-node stores it: every block has plain transactions and a bundle with a nested one.
 * @module
 */
import { sha256 } from "../../src/lib/hash.ts";
import type { SourceBlock, SourceFolder, SourceItem, SourceTransaction } from "./ar-io-node-folder.ts";
import { createRandom } from "./random.ts";

export const firstHeight = 1_000;

/** Items of each block, of which the last three are within a nested bundle. */
export const itemsPerBlock = 9;
export const transactionsPerBlock = 3;

const headerSize = 1_100;
const empty = new Uint8Array();

/** Makes a chain. The same seed makes the same chain. */
export function makeChain(seed: number, blockCount: number): SourceFolder {
  const random = createRandom(seed);
  const owners = Array.from({ length: 4 }, () => random.bytes(512));
  const blocks: SourceBlock[] = [];
  const transactions: SourceTransaction[] = [];
  const items: SourceItem[] = [];
  const tags = () =>
    Array.from({ length: random.below(4) }, (_, at) => ({
      name: `Name-${at % 2}`,
      value: `value ${random.below(20)}`,
    }));
  for (let at = 0; at < blockCount; at++) {
    const height = firstHeight + at;
    const ids = Array.from({ length: transactionsPerBlock }, () => random.bytes(32));
    for (const [index, id] of ids.entries())
      transactions.push({
        ...{ id, height, index, signature: null, format: 2, lastTx: random.bytes(48), owner: random.pick(owners) },
        ...{ target: random.chance(0.5) ? random.bytes(32) : empty, quantity: "12345678901234567890", reward: "7" },
        ...{ dataSize: 1_000_000, dataRoot: random.bytes(32), offset: (height * 3 + index + 1) * 1_048_576 },
        tags: tags(),
      });
    const [rootId = empty] = ids;
    const itemAt = (parentId: Uint8Array, rootParentOffset: number, offset: number, dataSize: number): SourceItem => ({
      ...{ id: random.bytes(32), parentId, rootId, height, index: 0, signature: null, signatureType: 1 },
      ...{ anchor: random.chance(0.5) ? random.bytes(32) : empty, owner: random.pick(owners), target: empty },
      ...{ offset, size: headerSize + dataSize, dataOffset: offset + headerSize, dataSize, rootParentOffset },
      tags: tags(),
    });
    const direct = Array.from({ length: itemsPerBlock - 4 }, (_, n) => itemAt(rootId, 0, 1_000 + n * 5_000, 2_000));
    const bundle = itemAt(rootId, 0, 100_000, 60_000);
    const nested = [0, 1, 2].map((n) => itemAt(bundle.id, 100_000 + headerSize, 200 + n * 10_000, 3_000));
    items.push(...nested, ...direct, bundle);
    blocks.push({
      hash: hashOf(seed, height),
      previous: hashOf(seed, height - 1),
      ...{ height, timestamp: 1_600_000_000 + height, weaveSize: height * 3_145_728, blockSize: 3_145_728 },
      transactionIds: ids,
    });
  }
  return { blocks, transactions, items };
}

/** 48 bytes for each height. */
function hashOf(seed: number, height: number): Uint8Array {
  const digest = sha256(Buffer.from(`${seed} ${height}`));
  return new Uint8Array(Buffer.concat([digest, digest.subarray(0, 16)]));
}
