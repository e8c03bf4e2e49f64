/**
 * Words that a command does not know, and that a process which gets one says so and does nothing.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { unknownWord } from "../../src/cli/words.ts";
import { repositoryRoot } from "../support/program.ts";

describe("unknownWord", () => {
  const known = { valued: ["port", "range"], flags: ["json"], positionals: 1 };
  test.each([
    [[], undefined],
    [["id"], undefined],
    [["--json", "id", "--port", "0"], undefined],
    [["--port=0", "--json"], undefined],
    [["--port", "--json"], undefined], // a value, whatever it looks like
    [["--port"], undefined], // its value is missing, which its reader says
    [["--", "--id"], undefined],
    [["id", "more"], "more"],
    [["id", "--", "more"], "more"],
    [["--", "id", "more"], "more"],
    [["--prot", "0"], "--prot"],
    [["--json=yes"], "--json=yes"],
    [["--jso"], "--jso"],
    [["-j"], "-j"],
    [["-json"], "-json"],
    [["--Port", "0"], "--Port"],
  ])("of %p is %p", (words, unknown) => {
    expect(unknownWord(words, known)).toBe(unknown);
  });
});

describe("a command line", () => {
  test.each([
    [["dev", "--ephemral"], "--ephemral is no option of dev"],
    [["serve", "4000"], "4000 is no argument of serve"],
    [["doctor", "--ofline"], "--ofline is no option of doctor"],
    [["config", "--dev=maybe"], "--dev=maybe is no option of config"],
    [["version", "please"], "please is no argument of version"],
    [["upload"], "Missing required positional argument: PATH; cairn upload --help says more"],
    [["sevre"], "sevre is not a command; the commands are "],
  ])("%p is a misuse", async (words, reason) => {
    const child = Bun.spawn([process.execPath, join(repositoryRoot, "src/main.ts"), ...words], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, errors] = await Promise.all([child.stdout, child.stderr].map((pipe) => new Response(pipe).text()));
    expect([await child.exited, out]).toEqual([2, ""]);
    expect(errors).toStartWith(reason);
  });

  test.each([[["help", "upload"]], [["upload", "--help"]], [["upload", "-h"]]])(
    "%p shows the command's help",
    (words) => {
      const child = Bun.spawnSync([process.execPath, join(repositoryRoot, "src/main.ts"), ...words]);
      expect([child.exitCode, child.stdout.toString()]).toEqual([0, expect.stringContaining("--fallback")]);
    },
  );
});
