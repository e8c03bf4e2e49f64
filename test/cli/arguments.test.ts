/**
 * Unknown options, unexpected arguments and missing arguments end the process with exit code 2.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { missingArgument, unknownWord } from "../../src/cli/run.ts";
import { repositoryRoot } from "../support/program.ts";

const known = { valued: ["port", "range"], flags: ["json"], positionals: ["id"], required: 1 };

describe("unknownWord", () => {
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

test.each([
  [[], "id"],
  [["--json"], "id"],
  [["--port", "0"], "id"],
  [["id"], undefined],
  [["--", "-id"], undefined],
])("the missing argument of %p is %p", (words, missing) => {
  expect(missingArgument(words, known)).toBe(missing);
});

describe("a command line", () => {
  test.each([
    [["dev", "--ephemral"], "unknown option '--ephemral' for 'cairn dev': did you mean '--ephemeral'?\n"],
    [["serve", "4000"], "unexpected argument '4000' for 'cairn serve'"],
    [["doctor", "--ofline"], "unknown option '--ofline' for 'cairn doctor': did you mean '--offline'?\n"],
    [["dev", "--Prot=0"], "unknown option '--Prot=0' for 'cairn dev': did you mean '--port'?\n"],
    [["dev", "-json"], "unknown option '-json' for 'cairn dev': did you mean '--json'?\n"],
    [["dev", "--colour"], "unknown option '--colour' for 'cairn dev'\n"],
    [["dev", "-p"], "unknown option '-p' for 'cairn dev'\n"],
    [["config", "--dev=maybe"], "unknown option '--dev=maybe' for 'cairn config'\n"],
    [["version", "please"], "unexpected argument 'please' for 'cairn version'"],
    [["upload"], "missing argument <path> for 'cairn upload'; see cairn upload --help"],
    [["sevre"], "unknown command 'sevre': did you mean 'serve'?\n"],
    [["sevre", "--help"], "unknown command 'sevre': did you mean 'serve'?\n"],
    [["help", "sevre"], "unknown command 'sevre': did you mean 'serve'?\n"],
    [["UPLOAD"], "unknown command 'UPLOAD': did you mean 'upload'?\n"],
    [["x"], "unknown command 'x': expected one of dev, serve, "],
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
