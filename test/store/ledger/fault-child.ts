/**
 * A process that works on a ledger to an end, whatever fails: `bun fault-child.ts <place> <seed> <operations of each
 * stream>`. Prints a line for each operation: stream, index, response or the failure.
 * @module
 */
import { writeSync } from "node:fs";
import { Failure } from "../../../src/failures.ts";
import { createCredits } from "../../../src/payment/credits/credits.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { operationAt, perform, streamCount } from "./streams.ts";

const [place = "", seedText = "", countText = ""] = process.argv.slice(2);
const clock = () => 1_800_000_000_000;

const database = await openPlace(place).catch(() => {
  // A ledger that cannot be opened is a failure that everybody hears of.
  writeSync(1, "not opened\n");
  process.exit(0);
});
const makeId = createTransferIds(Date.now, Math.random);
const bench = { database, credits: createCredits({ database, clock, makeId }), makeId, now: clock() };

await Promise.all(
  Array.from({ length: streamCount }, async (_, stream) => {
    for (let index = 0; index < Number(countText); index += 1) {
      const response = await perform(bench, operationAt(Number(seedText), stream, index)).catch(nameOf);
      writeSync(1, `${stream} ${index} ${response}\n`);
    }
  }),
);
await database.close().catch(() => "no more results");
process.exit(0);

function nameOf(error: unknown): string {
  if (error instanceof Failure) return error.code;
  throw error;
}
