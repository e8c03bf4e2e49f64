/**
 * Log lines: one JSON object a line, or one line for people; never a secret, never a throw.
 * @module
 */
import { writeSync } from "node:fs";
import type { Clock } from "./clock.ts";
import { jsonText, printable, printableLines } from "./printable.ts";

/** How important a line is, least first. */
export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Fields of a line. `error` values are written with name, message, stack, context and causes. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where a part of the program says what happened. */
export type Log = Readonly<{
  debug: (message: string, fields?: LogFields) => void;
  info: (message: string, fields?: LogFields) => void;
  warn: (message: string, fields?: LogFields) => void;
  error: (message: string, fields?: LogFields) => void;
  /** A log whose lines all carry these fields. */
  with: (fields: LogFields) => Log;
  /** Whether lines of this level are written, for callers whose fields are costly. */
  writes: (level: LogLevel) => boolean;
}>;

/** What a log is made of. */
export type LogOptions = Readonly<{
  /** Least important level that is written. */
  level: LogLevel;
  format: "json" | "pretty";
  clock: Clock;
  /** Takes one whole line, its newline included. */
  write: (line: string) => void;
}>;

/** Deepest chain of causes that is written. */
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

/** A log that writes nothing, for parts that are used alone. */
export const silentLog: Log = createLog({
  level: "error",
  format: "json",
  clock: () => 0,
  write: () => undefined,
});

/** A writer that buffers the lines of one turn of the event loop and writes them at once. */
export type LineWriter = Readonly<{
  write: (line: string) => void;
  /** Lines that were given up because the reader of the log did not keep up. */
  dropped: () => number;
  /** Writes what is left; lines after it are written at once. */
  close: () => void;
}>;

/** Text that waits for a slow reader of the log; what comes beyond is dropped and counted. */
const waitingCharactersMax = 4 * 2 ** 20;

/** How long a pipe that is full may take before it is tried again. Milliseconds. */
const retryAfterMs = 20;

/** Opens a writer to a file descriptor, such as 1 for standard output. */
export function openLineWriter(descriptor: number): LineWriter {
  let waiting = "";
  let left: Uint8Array = new Uint8Array(0); // bytes that a full pipe has not taken; they may begin within a character
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

/** Writes as much as the descriptor takes now; the count of bytes that it took. */
function writeSome(descriptor: number, bytes: Buffer): number {
  let written = 0;
  while (written < bytes.length) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      if (isSystemError(error) && error.code === "EAGAIN") return written;
      return bytes.length; // The reader is gone (EPIPE): there is nobody left to tell.
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
    // The fields have a cycle; the message is still worth a line.
    return `${jsonText({ level, time, message, facts: Bun.inspect(fields, { depth: 2 }) })}\n`;
  }
}

function prettyLine(level: LogLevel, time: string, message: string, fields: LogFields): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${prettyValue(value)}`);
  return `${time.slice(11, 23)} ${level.padEnd(5)} ${[printable(message), ...pairs].join("  ")}\n`;
}

function prettyValue(value: unknown): string {
  if (typeof value === "string") return printable(value);
  return printableLines(Bun.inspect(value, { depth: 2, compact: !(value instanceof Error) }));
}

/**
 * JSON.stringify's replacer: integers beyond 2^53 as decimal text, errors as objects, bytes by their count.
 */
function writable(this: unknown, name: string, value: unknown): unknown {
  const own: unknown = Reflect.get(Object(this), name); // a Buffer has become a list by now
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
  return { name: error.name, message: error.message, ...code, ...context, stack: error.stack, ...cause };
}
