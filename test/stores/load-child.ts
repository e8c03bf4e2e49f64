/**
 * A process that loads partitions into ClickHouse, to be killed: `bun load-child.ts <url> <database> <partitions.json>`.
 * It prints the number of each partition that is loaded.
 * @module
 */
import { readFileSync } from "node:fs";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import type { LoadedPartition } from "../../src/columnar/partition.ts";

const [url = "", database = "", path = ""] = process.argv.slice(2);
const partitions: readonly LoadedPartition[] = JSON.parse(readFileSync(path, "utf8"));
const store = openClickhouseStore({ url, database });
process.stdout.write("started\n");
for (const [number, partition] of partitions.entries()) {
  await store.load(partition, new AbortController().signal);
  process.stdout.write(`${number}\n`);
}
await store.close();
