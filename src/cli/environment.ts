/**
 * The environment of the process: variables and secret files (`NAME_FILE` is the path of a file with the secret
 * `NAME`), `.env` files and their explanation, the state folder, and the command that started the program.
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { parseEnv } from "node:util";
import { misuse } from "../app/complaints.ts";
import { type ExplainedName, secretNames } from "../config/config.ts";
import { printable } from "../lib/printable.ts";

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Maximum size of a secret file. Bytes. */
const secretBytesMax = 64 * 1024;

/** The environment, with complaints about secret files that cannot be read. */
export type ReadEnvironment = Readonly<{ values: Environment; complaints: readonly string[] }>;

/** Adds the secrets from files to an environment. */
export function readEnvironment(environment: Environment): ReadEnvironment {
  const complaints: string[] = [];
  const secrets: Record<string, string> = {};
  for (const name of secretNames) {
    const file = environment[`${name}_FILE`];
    if (file === undefined || file === "" || (environment[name] ?? "") !== "") continue;
    try {
      const text = readFileSync(file, "utf8");
      if (text.length > secretBytesMax) throw new Error(`larger than ${secretBytesMax} bytes`);
      // As a value it would count as unset: a ledger of PostgreSQL would be one of SQLite, for example.
      if (text.trim() === "") throw new Error("empty");
      secrets[name] = text.trim();
    } catch (error) {
      // The reason becomes one line of the complaint.
      complaints.push(`${name}_FILE ${file}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { values: { ...environment, ...secrets }, complaints };
}

/** The folder of state that needs no backup. Source: XDG Base Directory Specification, XDG_STATE_HOME. */
export function stateFolderOf({ XDG_STATE_HOME: named }: Environment): string {
  const home = named === undefined || named === "" ? join(homedir(), ".local", "state") : named;
  return join(home, "cairn");
}

/** Maximum size of a `.env` file. Bytes. */
const envBytesMax = 1024 * 1024;

/**
 * Reads a file of lines `NAME=value`.
 *
 * @param option - The option that names the file, for the message about an empty path.
 * @throws Misuse when it cannot be read.
 */
export function readEnvFile(path: string, option: string): Readonly<Record<string, string | undefined>> {
  if (path === "") throw misuse(`missing argument <file> for '${option}'`);
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw new Error("not a file");
    if (stats.size > envBytesMax) throw new Error(`larger than ${envBytesMax} bytes`);
    return parseEnv(readFileSync(path, "utf8"));
  } catch (error) {
    // The reason becomes the line that the operator reads.
    throw misuse(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const headings = {
  taken: "taken",
  translated: "translated",
  same: "not read, same behaviour here",
  foreign: "without effect here; what to use instead",
  unknown: "not a setting of this version",
} as const satisfies Record<ExplainedName["kind"], string>;

/** The report of `cairn config --explain-env`. Only translated values are printed, never a secret. */
export function explainReport(names: readonly ExplainedName[], faults: readonly string[]): string {
  const sections = Object.entries(headings).flatMap(([kind, heading]) => {
    const lines = names.filter((each) => each.kind === kind).map(lineOf);
    return lines.length === 0 ? [] : [section(heading, lines)];
  });
  const invalid = faults.length === 0 ? [] : [section("invalid", faults)];
  const all = [...sections, ...invalid];
  return all.length === 0 ? "no settings" : all.join("\n\n");
}

function section(heading: string, lines: readonly string[]): string {
  return `${heading} (${lines.length}):\n${lines.map((line) => `  ${printable(line)}`).join("\n")}`;
}

function lineOf({ name, note }: ExplainedName): string {
  return note === "" ? name : `${name}: ${note}`;
}

export type Started = Readonly<{
  /** The entry file; for a binary, its embedded path. */
  main: string;
  /** The runtime, or the binary. */
  execPath: string;
  cwd: string;
  /** Whether `bun` is on the user's PATH. */
  hasBun: boolean;
  bunVersion: string;
}>;

/** Folders that npx, npm and the runtime add to PATH only for the programs that they run. */
const temporaryFolder = /[/\\](?:_npx|node_modules)[/\\]|[/\\]bun-node-[^/\\]*$/;

/** How the running process was started. @param path - The `PATH` that it was given. */
export function startedAs(path: string): Started {
  const lasting = path.split(delimiter).filter((folder) => !temporaryFolder.test(folder));
  return {
    main: Bun.main,
    execPath: process.execPath,
    cwd: process.cwd(),
    hasBun: Bun.which("bun", { PATH: lasting.join(delimiter) }) !== null,
    bunVersion: Bun.version,
  };
}

/** The command that starts this program in the current folder, for messages that people copy. */
export function typedProgram({ main, execPath, cwd, hasBun, bunVersion }: Started): string {
  if (main.startsWith("/$bunfs/")) return execPath;
  return `${hasBun ? "bun" : `npx --yes bun@${bunVersion}`} ${relative(cwd, main)}`;
}
