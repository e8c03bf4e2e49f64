/**
 * `bun run bench [words] [--items N]`: runs every bench whose name has one of the words, and prints their rows as a
 * table. A word that no name has is an error.
 * @module
 */
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { type BenchRow, table } from "./harness.ts";
import { benches } from "./list.ts";

const { values, positionals: words } = parseArgs({ allowPositionals: true, options: { items: { type: "string" } } });
const items = values.items === undefined ? undefined : Number(values.items);
const unknown = words.filter((word) => !benches.some(({ name }) => name.includes(word)));
if (unknown.length > 0) {
  console.error(`no bench is named ${unknown.join(" or ")}; there are: ${benches.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
const chosen = benches.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
// Read before the first round: the working tree may change during the run.
const heading = machine();
const rows: BenchRow[] = [];
for (const bench of chosen) {
  process.stderr.write(`${bench.name} …\n`);
  rows.push(...(await bench.measure("large", { items })));
}
console.log(`\n${heading}\n\n${table(rows)}`);
process.exit(0);

function machine(): string {
  const commit = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"]).stdout.toString().trim();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `Bun ${Bun.version}, ${cpus().length} × ${cpus()[0]?.model ?? "unknown"}, ${memory}, commit ${commit}`;
}
