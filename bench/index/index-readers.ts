/**
 * Reads pages of an index while another process writes it, until its input ends; then prints the latencies of each kind
 * of filter as JSON.
 * @module
 */
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { pageQueries, readPage } from "./index.ts";
import { scatterBelow } from "./index-items.ts";

const [path = "", items = "0"] = process.argv.slice(2);
const times = Object.fromEntries(Object.keys(pageQueries).map((name): [string, number[]] => [name, []]));
const reader = openIndexReader(path);
let isOpen = true;
process.stdin.on("end", () => {
  isOpen = false;
});
process.stdin.resume();

for (let count = 0; isOpen; count += 1) {
  for (const [name, filtersOf] of Object.entries(pageQueries)) {
    const filters = filtersOf(scatterBelow(Number(items), count, 12));
    times[name]?.push(readPage(reader, filters).milliseconds);
  }
  await Bun.sleep(0);
}
reader.close();
console.log(JSON.stringify(times));
