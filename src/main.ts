#!/usr/bin/env bun
/**
 * The command line of Cairn: the one place that reads the environment.
 * @module
 */
import { readEnvironment } from "./cli/environment.ts";
import { runCommandLine } from "./cli/run.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), () => readEnvironment(process.env));
