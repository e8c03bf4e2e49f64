/**
 * A program in which a timer throws and a promise is rejected that nothing waits for.
 * @module
 */
import { writeSync } from "node:fs";
import { runUntilStopped } from "../../src/cli/until-stopped.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { createLog } from "../../src/lib/log.ts";

const closers = createClosers(() => undefined);
const log = createLog({ level: "error", format: "json", clock: systemClock, write: (line) => writeSync(1, line) });
process.exitCode = await runUntilStopped({ closers, log }, async () => {
  setTimeout(() => {
    throw new Error("thrown by a timer");
  });
  setTimeout(() => void Promise.reject(new Error("rejected without a handler")), 20);
  // A process ends when nothing is waited for; a listener would be.
  const waiting = setInterval(() => undefined, 1_000);
  closers.add("timer", () => clearInterval(waiting));
});
