/**
 * Commands whose output cannot be written: a reader that has closed its pipe, as `head` does, and a full disk.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { closeSync, existsSync, openSync } from "node:fs";
import { resolve } from "node:path";
import { repositoryRoot } from "../support/program.ts";

const program = [process.execPath, resolve(repositoryRoot, "src/main.ts")];

const commands = [["--help"], ["--version"], ["config"], ["config", "--json"], ["completions", "bash"]];

async function ended(child: Bun.Subprocess<"ignore", "pipe" | number, "pipe">) {
  const [complained, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return { complained, code };
}

describe.each(commands)("cairn %s %s", (...words) => {
  test("fails without a word when its reader has closed the pipe", async () => {
    const child = Bun.spawn([...program, ...words], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    await child.stdout.cancel();
    expect(await ended(child)).toEqual({ complained: "", code: 1 });
  });

  test.skipIf(!existsSync("/dev/full"))("fails in one line when the disk is full", async () => {
    const full = openSync("/dev/full", "w");
    try {
      const child = Bun.spawn([...program, ...words], { stdin: "ignore", stdout: full, stderr: "pipe" });
      const { complained, code } = await ended(child);
      expect(complained).toMatch(/^standard output could not be written: ENOSPC: .*\n$/);
      expect(code).toBe(1);
    } finally {
      closeSync(full);
    }
  });
});
