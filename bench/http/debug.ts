/**
 * The debug record over a small and a large index: it is built from stored counts, so both take the same time.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, blockHashFromBytes, idFromBytes } from "../../src/arweave/id.ts";
import { createDebug } from "../../src/gateway/administration/debug.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { writeJson } from "../../src/lib/json.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { type IndexWriter, openIndexWriter } from "../../src/store/index/index-writer.ts";
import { type Bench, type BenchSize, inOrder } from "../harness.ts";
import { blockRow, transactionRow } from "../support/sample-rows.ts";

/** Blocks in the two indexes; each has a transaction with an item. */
const sizes: Readonly<Record<BenchSize, { few: number; many: number; records: number; rounds: number }>> = {
  small: { few: 50, many: 200, records: 20, rounds: 1 },
  large: { few: 300, many: 30_000, records: 2_000, rounds: 7 },
};

/** Time of a record over the large index, divided by that over the small index. */
export const debugBench: Bench = {
  name: "debug",
  measure: async (size) => {
    const { few, many, records, rounds } = sizes[size];
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-debug-"));
    const openDebug = (blocks: number) => {
      const path = join(folder, `${blocks}.sqlite`);
      fill(path, blocks);
      const reader = openIndexReader(path);
      const debug = createDebug({ reader, concerns: () => [], stagedCount: () => 0, clock: systemClock });
      const work = () => {
        for (let record = 0; record < records; record += 1) writeJson(debug());
        return { amount: records, digest: "" };
      };
      return { reader, work };
    };
    const [small, large] = [openDebug(few), openDebug(many)];
    try {
      // Rates over times: the small index's over the large one's is the large one's time over the small one's.
      const { rate, against, ratio } = await inOrder(small.work, large.work, rounds);
      const micros = (perSecond: number) => `${(1e6 / perSecond).toFixed(0)} µs`;
      return [
        {
          name: `debug record of ${many.toLocaleString("en")} blocks with items`,
          metric: micros(against),
          reference: `of ${few} blocks ${micros(rate)}`,
          ratio,
          target: "≤ 1.2",
        },
      ];
    } finally {
      small.reader.close();
      large.reader.close();
      removeFolder(folder);
    }
  },
};

const owner = new Uint8Array(512);
const ownerAddress = addressOf(owner);

function fill(path: string, blocks: number): void {
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000 });
  for (let height = 1; height <= blocks; height += 1) addBlock(writer, height);
  writer.close();
}

function addBlock(writer: IndexWriter, height: number): void {
  const id = idFromBytes(digestOf(`transaction ${height}`));
  const place = { height, txIndex: 0, offset: -1 };
  const hashOf = (at: number) => blockHashFromBytes(new Bun.CryptoHasher("sha384").update(`block ${at}`).digest());
  const size = 2_048;
  writer.addBlock({
    block: blockRow({
      height,
      hash: hashOf(height),
      previous: height === 1 ? "" : hashOf(height - 1),
      timestamp: 1_600_000_000 + height,
    }),
    transactions: [
      transactionRow({
        id,
        owner: "",
        ownerAddress,
        dataSize: size,
      }),
    ],
    missing: [],
    bundles: [{ id, place, parentOffset: null, headerSize: 0, size, depth: 0, bypassFilter: false }],
  });
  const row = {
    place: { ...place, offset: 96 },
    id: idFromBytes(digestOf(`item ${height}`)),
    parentOffset: null,
    signatureType: 1,
    owner,
    ownerAddress,
    target: "" as const,
    anchor: "",
    tags: [],
    headerSize: 1_044,
    size: 500,
    digest: digestOf(`payload ${height}`),
  };
  writer.addItems({ bundle: place, rows: [row], firstEntry: 0, nextEntry: 1, bundles: [] });
}

function digestOf(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}
