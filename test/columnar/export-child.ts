/**
 * A process that exports an index, to be killed: `bun export-child.ts <index> <folder>`.
 * @module
 */
import { runExport } from "../../src/columnar/export-run.ts";
import { exportPartition, firstHeight, stableHeight } from "../../workers/export.ts";

const [indexPath = "", folder = ""] = process.argv.slice(2);
const files = { folder, maxFileRows: 40, skipL1Transactions: false, skipL1Tags: false };
const heights = { startHeight: 100, endHeight: 10 ** 6, heightPartitionSize: 5 };
const writer = {
  firstHeight: async () => firstHeight({ indexPath }),
  stableHeight: async () => stableHeight({ indexPath }),
  write: (request: Parameters<typeof exportPartition>[0]["request"]) => exportPartition({ indexPath, request }),
};
process.stdout.write("started\n");
await runExport(
  { ...files, ...heights },
  { writer, clock: () => Date.now(), signal: new AbortController().signal, partitionsAtOnce: 2 },
);
