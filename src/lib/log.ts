/**
 * The log: one JSON object or one readable line per event. Logging never throws.
 * @module
 */
import { writeSync } from "node:fs";
import { explainError, Failure } from "../failures.ts";
import type { Clock } from "./clock.ts";
import { jsonText, printable, printableLines } from "./printable.ts";

/** Levels in ascending order. */
export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Fields of a line. An Error is written with name, message, stack, context and causes; a failure has no stack. */
export type LogFields = Readonly<Record<string, unknown>>;

export type Log = Readonly<{
  debug: (message: string, fields?: LogFields) => void;
  info: (message: string, fields?: LogFields) => void;
  warn: (message: string, fields?: LogFields) => void;
  error: (message: string, fields?: LogFields) => void;
  /** Creates a log that adds these fields to every line. */
  with: (fields: LogFields) => Log;
  /** Whether lines of this level are written; callers check it before they compute expensive fields. */
  writes: (level: LogLevel) => boolean;
}>;

export type LogOptions = Readonly<{
  /** Lowest level that is written. */
  level: LogLevel;
  format: "json" | "pretty";
  clock: Clock;
  /** Receives one complete line, with its newline. */
  write: (line: string) => void;
}>;

/** Maximum number of nested causes that are written. */
const causesMax = 5;

/** Creates a log. A field that cannot be written as JSON is written as text. */
export function createLog(options: LogOptions, base: LogFields = {}): Log {
  const least = logLevels.indexOf(options.level);
  const print = options.format === "json" ? jsonLine : prettyLine;
  const at = (level: LogLevel) => {
    if (logLevels.indexOf(level) < least) return () => undefined;
    return (message: string, fields: LogFields = {}) => {
      options.write(print(level, new Date(options.clock()).toISOString(), message, { ...base, ...fields }));
    };
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => createLog(options, { ...base, ...fields }),
    writes: (level) => logLevels.indexOf(level) >= least,
  };
}

/** A line of level warn or error, for the operator. */
export type RecordedLine = Readonly<{ at: number; level: "warn" | "error"; message: string; fields: string }>;

/** Longest stored fields of a recorded line; the rest is cut off. Characters. */
const recordedFieldsMax = 1_000;

/** Creates a log that also passes each line of level warn and error to `record`. */
export function recordLines(log: Log, clock: Clock, record: (line: RecordedLine) => void): Log {
  const at =
    (level: RecordedLine["level"]) =>
    (message: string, fields: LogFields = {}) => {
      log[level](message, fields);
      record({ at: clock(), level, message, fields: fieldsText(fields).slice(0, recordedFieldsMax) });
    };
  return { ...log, warn: at("warn"), error: at("error"), with: (more) => recordLines(log.with(more), clock, record) };
}

/** A log that writes nothing. */
export const silentLog: Log = createLog({
  level: "error",
  format: "json",
  clock: () => 0,
  write: () => undefined,
});

/** A writer that buffers the lines of one iteration of the event loop and writes them together. */
export type LineWriter = Readonly<{
  write: (line: string) => void;
  /** Number of lines that were dropped because the reader of the log was too slow. */
  dropped: () => number;
  /** Writes the buffered lines; later lines are written immediately. */
  close: () => void;
}>;

/** Maximum text that is buffered for a slow reader of the log; further lines are dropped and counted. */
const waitingCharactersMax = 4 * 2 ** 20;

/** Wait before another write to a full pipe. Milliseconds. */
const retryAfterMs = 20;

/** File descriptors. */
export const standardOutput = 1;
export const standardError = 2;

/** Opens a writer to a file descriptor. */
export function openLineWriter(descriptor: number): LineWriter {
  let waiting = "";
  let left: Uint8Array = new Uint8Array(0); // bytes that a full pipe did not accept; they may start within a character
  let scheduled = false;
  let closed = false;
  let dropped = 0;
  const flush = () => {
    scheduled = false;
    const bytes = Buffer.concat([left, Buffer.from(waiting)]);
    waiting = "";
    left = bytes.subarray(writeSome(descriptor, bytes));
    if (left.length > 0 && !closed) {
      scheduled = true;
      setTimeout(flush, retryAfterMs).unref();
    }
  };
  return {
    write: (line) => {
      if (left.length + waiting.length + line.length > waitingCharactersMax) {
        dropped += 1;
        return;
      }
      waiting += line;
      if (closed) flush();
      else if (!scheduled) {
        scheduled = true;
        setImmediate(flush);
      }
    },
    dropped: () => dropped,
    close: () => {
      closed = true;
      flush();
    },
  };
}

/** Writes as many bytes as the descriptor accepts now. @returns Their number. */
function writeSome(descriptor: number, bytes: Buffer): number {
  let written = 0;
  while (written < bytes.length) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      if (isSystemError(error) && error.code === "EAGAIN") return written;
      return bytes.length; // The reader has closed the pipe (EPIPE): nothing can be reported.
    }
  }
  return written;
}

function isSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

function jsonLine(level: LogLevel, time: string, message: string, fields: LogFields): string {
  const line = { level, time, message, ...fields };
  try {
    return `${jsonText(line, writable)}\n`;
  } catch {
    // Fields with a cycle are written as text.
    return `${jsonText({ level, time, message, fields: Bun.inspect(fields, { depth: 2 }) })}\n`;
  }
}

function fieldsText(fields: LogFields): string {
  try {
    return jsonText(fields, writable);
  } catch {
    return jsonText(Bun.inspect(fields, { depth: 2 })); // as above
  }
}

function prettyLine(level: LogLevel, time: string, message: string, fields: LogFields): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${prettyValue(value)}`);
  return `${time.slice(11, 23)} ${level.padEnd(5)} ${[printable(message), ...pairs].join("  ")}\n`;
}

function prettyValue(value: unknown): string {
  if (typeof value === "string") return printable(value);
  if (isExpected(value)) return printable(explainError(value));
  return printableLines(Bun.inspect(value, { depth: 2, compact: !(value instanceof Error) }));
}

/** Replacer of JSON.stringify: a bigint becomes decimal text, an Error an object, bytes their number. */
function writable(this: unknown, name: string, value: unknown): unknown {
  const own: unknown = Reflect.get(Object(this), name); // `value` of a Buffer is already a list
  if (own instanceof Uint8Array) return `${own.byteLength} bytes`;
  if (typeof value === "bigint") return value.toString();
  return value instanceof Error ? writableError(value, causesMax) : value;
}

function writableError(error: Error, depth: number): Record<string, unknown> {
  const context = "context" in error ? { context: error.context } : {};
  const code = "code" in error ? { code: error.code } : {};
  const cause =
    error.cause instanceof Error && depth > 0
      ? { cause: writableError(error.cause, depth - 1) }
      : error.cause === undefined
        ? {}
        : { cause: Bun.inspect(error.cause, { depth: 1 }) };
  const stack = isExpected(error) ? {} : { stack: error.stack };
  return { name: error.name, message: error.message, ...code, ...context, ...stack, ...cause };
}

/** Whether an error is a failure of something outside: where the program noticed it tells the operator nothing. */
function isExpected(error: unknown): error is Failure {
  return error instanceof Failure && (error.cause === undefined || isExpected(error.cause));
}
