/**
 * The program's log: lines on standard error, so that standard output stays for what a command answers.
 * @module
 */

import type { Config } from "../config/settings.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { createLog, type Log, openLineWriter } from "../lib/log.ts";

const standardError = 2;

/** Opens the log; it is closed last. */
export function openLog(config: Config, closers: Closers): Log {
  const writer = openLineWriter(standardError);
  closers.add("log", writer.close);
  const forPeople = config.LOG_FORMAT === "pretty" || (config.LOG_FORMAT === "auto" && process.stderr.isTTY);
  return createLog({
    level: config.LOG_LEVEL,
    format: forPeople ? "pretty" : "json",
    clock: systemClock,
    write: writer.write,
  });
}
