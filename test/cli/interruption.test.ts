/**
 * Ctrl-C in commands that a repeated run resumes: their exit code.
 * @module
 */
import { expect, test } from "bun:test";
import { failureCodeOf, stopAtInterrupt } from "../../src/cli/interruption.ts";

test("Ctrl-C aborts, and the command exits with 130", () => {
  const stop = new AbortController();
  const unhook = stopAtInterrupt(stop);
  process.emit("SIGINT", "SIGINT");
  unhook();
  expect(String(stop.signal.reason)).toBe("Error: stopped; run the command again to continue");
  expect(failureCodeOf(stop.signal)).toBe(130);
});

test("a command that fails by itself, and stops its other steps, exits with 1", () => {
  const before = process.listenerCount("SIGINT");
  const stop = new AbortController();
  stopAtInterrupt(stop)();
  expect(failureCodeOf(stop.signal)).toBe(1);
  stop.abort(new Error("a source failed"));
  expect(failureCodeOf(stop.signal)).toBe(1);
  expect(process.listenerCount("SIGINT")).toBe(before);
});
