/**
 * A log that tests read: every line of every level, parsed.
 * @module
 */
import type { Clock } from "../../src/lib/clock.ts";
import { createLog, type Log } from "../../src/lib/log.ts";

/** A log, and the lines that were written to it so far. */
export type RecordingLog = Readonly<{ log: Log; lines: Record<string, unknown>[] }>;

/** Creates one. */
export function createRecordingLog(clock: Clock = Date.now): RecordingLog {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { log: createLog({ level: "debug", format: "json", clock, write }), lines };
}
