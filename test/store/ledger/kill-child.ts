/**
 * A process that works on a ledger until it is killed: `bun kill-child.ts <place> <seed> <first index of each stream,
 * separated by commas>`. Prints a line for each operation that was done: stream, index, response.
 * @module
 */
import { writeSync } from "node:fs";
import { createCredits } from "../../../src/payment/credits/credits.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { operationAt, perform } from "./streams.ts";

const [place = "", seedText = "", starts = ""] = process.argv.slice(2);
const seed = Number(seedText);
const clock = () => 1_800_000_000_000;
const database = await openPlace(place);
// Ids are made by chance, as outside, so that one that was used before the kill cannot hide behind its like.
const makeId = createTransferIds(Date.now, Math.random);
const bench = { database, credits: createCredits({ database, clock, makeId }), makeId, now: clock() };
writeSync(1, "open\n");

await Promise.all(
  starts.split(",").map(async (start, stream) => {
    for (let index = Number(start); ; index += 1) {
      const response = await perform(bench, operationAt(seed, stream, index));
      writeSync(1, `${stream} ${index} ${response}\n`);
    }
  }),
);
