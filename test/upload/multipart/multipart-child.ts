/**
 * A process that accepts multipart uploads until it is killed: `bun multipart-child.ts <ledger> <folder of uploads>
 * <time of its clock>`. Prints `open <port>`. It reads lines: `kill <n>` ends it by SIGKILL at the n-th durable step from
 * then on; `clock <ms>` sets its clock; `sweep` sweeps and tidies once. The response to each is a line with the number of
 * steps so far.
 * @module
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { openMultipartFixture } from "./multipart-fixture.ts";

const [place = "", folder = "", startsAt = ""] = process.argv.slice(2);
let now = Number(startsAt);
const database = await openPlace(place);
// Ids are made by the machine's own clock and chance, as outside: another process on this ledger makes none of them.
const makeId = createTransferIds(Date.now, Math.random);

let stepsLeft = Number.POSITIVE_INFINITY;
let taken = 0;
const step = (name: string) => {
  taken += 1;
  stepsLeft -= 1;
  if (stepsLeft > 0) return;
  writeSync(1, `killed ${name}\n`);
  process.kill(process.pid, "SIGKILL");
};

const fixture = await openMultipartFixture({ database, folder, makeId, clock: () => now, step });
writeSync(1, `open ${fixture.server.port}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const [word, value] = line.split(" ");
  if (word === "kill") stepsLeft = Number(value);
  if (word === "clock") now = Number(value);
  if (word === "sweep") {
    await fixture.sweep.sweep();
    await fixture.sweep.tidy();
  }
  writeSync(1, `did ${word} ${taken}\n`);
}
process.exit(0);
