/**
 * A second signal ends the program at once, whatever it is doing.
 * @module
 */
import { describe, expect, test } from "bun:test";

const child = new URL("./stop-child.ts", import.meta.url).pathname;

describe("N4: a second signal", () => {
  test.each([
    ["SIGTERM", "SIGTERM", 143],
    ["SIGINT", "SIGTERM", 143],
    ["SIGTERM", "SIGINT", 130],
    ["SIGINT", "SIGINT", 130],
  ] as const)(
    "after %s, %s ends a program that hangs while it closes, with %p",
    async (first, second, code) => {
      const program = Bun.spawn([process.execPath, child], { stdout: "pipe", stderr: "inherit" });
      const reader = program.stdout.getReader();
      const next = async () => new TextDecoder().decode((await reader.read()).value).trim();
      expect(await next()).toBe("running");
      program.kill(first);
      expect(await next()).toBe("closing");
      program.kill(second);
      expect(await program.exited).toBe(code);
    },
    30_000,
  );
});
