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
  process.stderr.write(
    "This binary has no worker threads: build it with `bun run build`, in a folder that has its own packages.\n",
  );
  process.exit(1);
}
process.exitCode = await runCommandLine(process.argv.slice(2), () => readEnvironment(process.env));

/**
 * Whether this is a binary of `bun build --compile src/main.ts`, which embeds no worker, or was built with packages in
 * another folder, which are embedded elsewhere. Its jobs would wait for ever.
 */
function lacksWorkers(): boolean {
  const files = ["workers/verify.js", "node_modules/piscina/dist/worker.js"];
  return Bun.main.startsWith("/$bunfs/") && !files.every((file) => existsSync(new URL(file, pathToFileURL(Bun.main))));
}
