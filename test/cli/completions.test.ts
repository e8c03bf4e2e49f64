/**
 * `cairn completions`: the scripts are accepted by their shells, and complete commands, options and values.
 *
 * Other shells than bash are needs that may be absent.
 * @module
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commands } from "../../src/cli/commands.ts";
import { completionScript } from "../../src/cli/completions.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { describeWith, type Need } from "../support/helpers.ts";
import { runCairn } from "./command.ts";

const program = commands(() => ({ values: {}, complaints: [] }));
const folder = mkdtempSync(join(tmpdir(), "cairn-completions-"));
const scripts = { bash: join(folder, "cairn.bash"), zsh: join(folder, "_cairn"), fish: join(folder, "cairn.fish") };

beforeAll(async () => {
  for (const [shell, path] of Object.entries(scripts)) writeFileSync(path, await completionScript(program, shell));
  writeFileSync(join(folder, "site.html"), "");
  return () => removeFolder(folder);
});

/** Words typed so far, the last one incomplete, and its completions. */
const completions: readonly (readonly [words: readonly string[], completed: readonly string[]])[] = [
  [["statu"], ["status"]],
  [["s"], ["serve", "status", "snapshot", "sql", "statement", "solvency"]],
  [["none"], []],
  [["dev", "--e"], ["--ephemeral"]],
  [["upload", "--follow"], ["--follow-links"]],
  [
    ["verify", "id", "--block"],
    ["--block-hash", "--block"],
  ],
  [["snapshot", "p"], ["publish"]],
  [
    ["completions", ""],
    ["bash", "zsh", "fish"],
  ],
  [["sql", "--json", "--c"], ["--csv"]],
];

/** Runs a shell without the user's start files, and returns its output. */
function run(...words: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...words], { cwd: folder, timeout: 60_000 });
  expect([words[0], exitCode, stderr.toString()]).toEqual([words[0], 0, ""]);
  return stdout.toString();
}

const shellNamed = (shell: string): Need => ({ there: Bun.which(shell) !== null, what: `${shell} (Debian's package)` });

const sorted = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .toSorted();

describe("bash", () => {
  test.each(completions)("completes %p to %p", (words, completed) => {
    const typed = ["cairn", ...words].map((word) => `'${word}'`).join(" ");
    const call = `COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _cairn; printf '%s\\n' "\${COMPREPLY[@]}"`;
    expect(sorted(run("bash", "--norc", "-c", `source "${scripts.bash}"; ${call}`))).toEqual([...completed].toSorted());
  });
});

describeWith(shellNamed("fish"), "fish", () => {
  test.each(completions)("completes %p to %p", (words, completed) => {
    const typed = ["cairn", ...words].join(" ");
    const out = run("fish", "--no-config", "-c", `source ${scripts.fish}; complete -C '${typed}'`);
    expect(sorted(out.replace(/\t.*$/gm, ""))).toEqual([...completed].toSorted());
  });

  test("completes a path", () => {
    const out = run("fish", "--no-config", "-c", `source ${scripts.fish}; complete -C 'cairn upload si'`);
    expect(sorted(out)).toEqual(["site.html"]);
  });
});

describeWith(shellNamed("zsh"), "zsh", () => {
  test("accepts the script", () => {
    expect(run("zsh", "-f", "-n", scripts.zsh)).toBe("");
  });

  // The functions that show completions need a terminal, so they print their arguments here.
  const shown = "_describe() { print -rl -- $commands }; _arguments() { print -rl -- $words[1] $@ }; compdef() { }";

  test("completes commands", () => {
    const out = run("zsh", "-f", "-c", `${shown}; source ${scripts.zsh}; words=(cairn st); CURRENT=2; _cairn`);
    expect(out).toContain("status:Print how far a running gateway is; on a terminal until Ctrl-C\n");
  });

  test("completes the options of a command", () => {
    const out = run("zsh", "-f", "-c", `${shown}; source ${scripts.zsh}; words=(cairn upload --f); CURRENT=3; _cairn`);
    expect(out).toStartWith("upload\n");
    expect(out).toContain("--follow-links[Include targets of links out of the folder]\n");
    expect(out).toContain("--tags=[Tags of every item\\: name=value,…]: :\n");
    expect(out).toContain("*:path:_files\n");
  });
});

test("every command and option of the table is in every script", async () => {
  const names = Object.keys(program.subCommands ?? {});
  expect(names).toContain("completions");
  for (const shell of Object.keys(scripts)) {
    const script = await completionScript(program, shell);
    expect(names.filter((name) => !script.includes(name))).toEqual([]);
  }
});

describe("the command", () => {
  test("prints the script", async () => {
    const { code, out, err } = await runCairn(["completions", "bash"]);
    expect([code, out, err]).toEqual([0, await Bun.file(scripts.bash).text(), ""]);
  });

  test.each(["csh", "toString", ""])("has no script for %p", async (shell) => {
    const { code, out, err } = await runCairn(["completions", "--", shell]);
    expect([code, out, err]).toEqual([2, "", `invalid value '${shell}' for <shell>: expected bash, zsh or fish\n`]);
  });
});
