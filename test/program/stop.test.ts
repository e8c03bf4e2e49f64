/**
 * A second signal ends the program at once, whatever it is doing; an error that nothing catches does not end it.
 * @module
 */
import { describe, expect, test } from "bun:test";

const child = new URL("./stop-child.ts", import.meta.url).pathname;
const defectChild = new URL("./defect-child.ts", import.meta.url).pathname;

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

test("errors that nothing catches are lines of the log, and the program goes on until it is stopped", async () => {
  const program = Bun.spawn([process.execPath, defectChild], { stdout: "pipe", stderr: "pipe" });
  const reader = program.stdout.getReader();
  let text = "";
  while (text.split("\n").length <= 2) text += new TextDecoder().decode((await reader.read()).value);
  program.kill("SIGTERM");
  expect(await program.exited).toBe(0);
  expect(await new Response(program.stderr).text()).toBe("");
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { level: "error", message: "defect", error: { message: "thrown by a timer" } },
    { level: "error", message: "defect", error: { message: "rejected without a handler" } },
  ]);
}, 30_000);
