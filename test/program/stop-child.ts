/**
 * A program that never shuts down gracefully: after a stop signal its one thread is busy.
 * @module
 */
import { writeSync } from "node:fs";
import { runUntilStopped } from "../../src/cli/until-stopped.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { silentLog } from "../../src/lib/log.ts";

const closers = createClosers(() => undefined);
closers.add("nothing that ends", () => {
  writeSync(1, "closing\n");
  for (;;) Bun.sleepSync(1_000);
});
// A process ends when nothing is waited for; a listener would be.
setInterval(() => undefined, 1_000);
process.exitCode = await runUntilStopped({ closers, log: silentLog }, async () => {
  writeSync(1, "running\n");
});
