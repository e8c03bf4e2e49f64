/**
 * Exports as many generated items of eight tags as its argument says, in one partition, and prints the peak of its
 * memory in MiB and the rows.
 * @module
 */
import { readFileSync, rmSync } from "node:fs";
import { exportPartition } from "../../src/columnar/partition.ts";
import type { ExportRow } from "../../src/store/index/export-rows.ts";
import { createRandom } from "../support/random.ts";

const [, , folder = "", count = "0"] = process.argv;
const items = Number(count);
const itemsPerHeight = 1_000;
const random = createRandom(1);
const owners = Array.from({ length: 1_000 }, () => random.bytes(32));
const parents = Array.from({ length: 100 }, () => random.bytes(32));

function* rows(): Generator<ExportRow> {
  for (let item = 0; item < items; item += 1) {
    const owner = owners[random.below(owners.length)] ?? new Uint8Array(32);
    const parent = parents[item % parents.length] ?? new Uint8Array(32);
    yield {
      height: Math.floor(item / itemsPerHeight),
      txIndex: 0,
      offset: 128 + (item % itemsPerHeight) * 4_096,
      id: random.bytes(32),
      target: null,
      anchor: random.bytes(32),
      headerSize: 600,
      payloadSize: 3_000,
      signatureType: 2,
      tags: Array.from({ length: 8 }, (_, tag) => ({ name: `Tag-${tag}`, value: `${tag} ${random.below(10 ** tag)}` })),
      ingestedAt: 1_700_000_000 + item,
      ownerAddress: owner,
      ownerKey: owner,
      parent: { id: parent, payloadStart: 0 },
      rootId: parent,
      transaction: null,
    };
  }
}

const files = await exportPartition(
  {
    folder,
    start: 0,
    end: Math.ceil(items / itemsPerHeight),
    maxFileRows: 0,
    skipL1Transactions: false,
    skipL1Tags: false,
    runId: "memory",
  },
  { blocks: () => [], rows, prunedItems: () => 0 },
);
rmSync(folder, { recursive: true });
const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1_024;
console.log(JSON.stringify({ peak, rows: files?.reduce((sum, file) => sum + file.rows, 0) }));
