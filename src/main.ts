#!/usr/bin/env bun
/**
 * The command line of Cairn: the one place that reads the environment.
 * @module
 */
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { readEnvironment } from "./cli/environment.ts";
import { runCommandLine } from "./cli/run.ts";

if (lacksWorkers()) {
  process.stderr.write("This binary has no worker threads: build it with `bun run build`.\n");
  process.exit(1);
}
process.exitCode = await runCommandLine(process.argv.slice(2), () => readEnvironment(process.env));

/** Whether this is a binary of `bun build --compile src/main.ts`, which embeds no worker. */
function lacksWorkers(): boolean {
  return Bun.main.startsWith("/$bunfs/") && !existsSync(new URL("./workers/verify.js", pathToFileURL(Bun.main)));
}
