/**
 * Runs a command line: help, checks of options and arguments, and the message and exit code of a failure.
 * @module
 */
import { existsSync } from "node:fs";
import { type ArgsDef, type CommandDef, renderUsage, runCommand } from "citty";
import { exitCodes, isMisuse, misuse } from "../app/complaints.ts";
import { settingsHelp } from "../config/config.ts";
import { Failure } from "../failures.ts";
import { nearestName } from "../lib/nearest-name.ts";
import { printableLines } from "../lib/printable.ts";
import { isSchemaMismatch } from "../lib/schema-scripts.ts";
import { isTimeout } from "../lib/stop.ts";
import { version } from "../version.ts";
import { type AskEnvironment, commands } from "./commands.ts";
import { resolved } from "./completions.ts";
import { print } from "./print.ts";

/**
 * Runs one command line.
 *
 * @param words - The arguments after the program's name.
 * @returns The exit code: 0 done, 1 failed, 2 used wrongly.
 */
export async function runCommandLine(words: readonly string[], environment: AskEnvironment): Promise<number> {
  const root = commands(environment);
  try {
    const help = await helpFor(root, words);
    if (help !== undefined) {
      print(`${help}\n`);
      return exitCodes.done;
    }
    const [name = "", ...rest] = words;
    // citty drops the result of a sub-command, and with it the exit code.
    const command = await commandNamed(root, name);
    const known = await knownWords(command);
    const rawArgs = shieldNames(await fullNames(rest, command), known.valued);
    const unknown = unknownWord(rawArgs, known);
    if (unknown !== undefined) throw misuse(unknownText(unknown, name, known));
    const missing = missingArgument(rawArgs, known);
    if (missing !== undefined)
      throw misuse(`missing argument <${missing}> for 'cairn ${name}'; see cairn ${name} --help`);
    const { result } = await runCommand(command, { rawArgs });
    return typeof result === "number" ? result : exitCodes.done;
  } catch (error) {
    return report(error, words);
  }
}

/** Prints why a command failed: one line for an error of the user or the machine, a stack for a defect. */
function report(error: unknown, [command = ""]: readonly string[]): number {
  // citty gives errors about arguments a code.
  const typed = error instanceof Error && "code" in error && /^(E_|EARG$)/.test(String(error.code));
  if (isMisuse(error) || typed) {
    process.stderr.write(`${printableLines(error.message)}${typed ? `; see cairn ${command} --help` : ""}\n`);
    return exitCodes.misused;
  }
  const expected = error instanceof Failure ? error.context["reason"] : faultOf(error);
  process.stderr.write(`${printableLines(typeof expected === "string" ? expected : Bun.inspect(error))}\n`);
  return exitCodes.failed;
}

/** Error codes of the machine, which are not defects: disks, handles, an unreachable database server. */
const machineCodes =
  /^(ENOSPC|EDQUOT|EROFS|EMFILE|ENFILE|SQLITE_(FULL|READONLY|IOERR|CANTOPEN|NOTADB)(_\w+)?|ERR_POSTGRES_\w+)$/;

/** The message of an error that the machine or its data caused, directly or as a `cause`. */
function faultOf(error: unknown): string | undefined {
  if (isTimeout(error)) return "no response in time";
  if (!(error instanceof Error)) return undefined;
  const isFault = "code" in error && machineCodes.test(String(error.code));
  return isFault || isSchemaMismatch(error) || faultOf(error.cause) !== undefined ? error.message : undefined;
}

/** The requested help, or `undefined` for a command to run. @throws Misuse for an unknown command. */
async function helpFor(root: CommandDef, words: readonly string[]): Promise<string | undefined> {
  const first = words[0];
  const names = Object.keys((await resolved(root.subCommands)) ?? {});
  const asked = first === undefined || words.includes("--help") || words.includes("-h") || first === "help";
  const word = first === "help" ? words[1] : first;
  if (asked && (word === undefined || word.startsWith("-"))) return rootHelp(root);
  if (!asked && (word === "--version" || word === "-v")) return version;
  if (word === undefined || !names.includes(word)) throw unknownCommand(word ?? "", names);
  return asked ? commandHelp(root, word) : undefined;
}

function unknownCommand(word: string, names: readonly string[]): Error {
  const meant = intended(word, names);
  const hint = meant === undefined ? `expected one of ${names.join(", ")}` : `did you mean '${meant}'?`;
  return misuse(`unknown command '${word}': ${hint}`);
}

async function rootHelp(root: CommandDef): Promise<string> {
  const usage = plain(await renderUsage(root));
  return `${usage}\nSETTINGS (from the environment, or a .env file)\n\n${settingsHelp()}`;
}

async function commandHelp(root: CommandDef, name: string): Promise<string> {
  return `${plain(await renderUsage(await commandNamed(root, name), root))}\nSettings: cairn --help`;
}

async function commandNamed(root: CommandDef, name: string): Promise<CommandDef<ArgsDef>> {
  const subCommands = (await resolved(root.subCommands)) ?? {};
  const command = await resolved<CommandDef<ArgsDef> | undefined>(subCommands[name]);
  if (command === undefined) throw misuse(`unknown command '${name}'`);
  return command;
}

async function knownWords({ args }: CommandDef<ArgsDef>): Promise<KnownWords> {
  const defined = Object.entries((await resolved(args)) ?? {});
  const required = defined.filter(([, arg]) => arg.type === "positional" && arg.required !== false).length;
  const ofType = (type: string) => defined.filter(([, arg]) => arg.type === type).map(([name]) => name);
  return { valued: ofType("string"), flags: ofType("boolean"), positionals: ofType("positional"), required };
}

/** Replaces the short name of an option, such as -o, by its name. */
async function fullNames(words: readonly string[], { args }: CommandDef<ArgsDef>): Promise<string[]> {
  const defined = Object.entries((await resolved(args)) ?? {});
  const short = defined.flatMap(([name, arg]) =>
    "alias" in arg && typeof arg.alias === "string" ? [[`-${arg.alias}`, `--${name}`] as const] : [],
  );
  const names = new Map<string, string>(short);
  return words.map((word) => names.get(word) ?? word);
}

function unknownText(word: string, command: string, { valued, flags }: KnownWords): string {
  if (!word.startsWith("-")) return `unexpected argument '${word}' for 'cairn ${command}'`;
  const [name = ""] = word.replace(/^-+/, "").split("=", 1);
  const meant = flags.includes(name) && word.includes("=") ? undefined : intended(name, [...valued, ...flags]);
  if (meant !== undefined) return `unknown option '${word}' for 'cairn ${command}': did you mean '--${meant}'?`;
  // A file may have such a name.
  const hint = existsSync(word) ? `; to name the file, write ./${word}` : "";
  return `unknown option '${word}' for 'cairn ${command}'${hint}`;
}

/** The name that was meant: within one edit of three characters, or two of more. Upper case is read as lower. */
function intended(word: string, names: readonly string[]): string | undefined {
  const editsMax = Math.min(2, Math.ceil(word.length / 3));
  return nearestName(word.toLowerCase(), names, editsMax);
}

/** citty colours its usage text; a pipe gets plain text. */
function plain(text: string): string {
  return process.stdout.isTTY ? text : Bun.stripANSI(text);
}

/** The options and arguments of a command. */
export type KnownWords = Readonly<{
  /** Options with a value, and flags; names without dashes. */
  valued: readonly string[];
  flags: readonly string[];
  /** Arguments in order; the first `required` must be given. */
  positionals: readonly string[];
  required: number;
}>;

/** An id or a block hash that starts with a dash: base64url of 32 or 48 bytes. */
const dashedName = /^-(?:[A-Za-z0-9_-]{42}|[A-Za-z0-9_-]{63})$/;

/** An amount below zero, as the value of an option. */
const negativeAmount = /^-\d{1,19}$/;

/**
 * Protects ids that start with a dash, and amounts below zero, from being read as options: joins one to the option
 * before it with `=`, or moves an id behind `--`, after which no word is an option.
 *
 * @param words - The words after the command's name.
 * @param valued - Names of the options with a value, without dashes.
 */
export function shieldNames(words: readonly string[], valued: readonly string[]): string[] {
  const options = new Set(valued.map((name) => `--${name}`));
  const shielded: string[] = [];
  const names: string[] = [];
  for (const word of words) {
    const before = shielded.at(-1);
    const isValue = before !== undefined && options.has(before);
    if (isValue && (dashedName.test(word) || negativeAmount.test(word))) shielded.splice(-1, 1, `${before}=${word}`);
    else if (!dashedName.test(word)) shielded.push(word);
    else names.push(word);
  }
  if (names.length === 0) return shielded;
  return shielded.includes("--") ? [...shielded, ...names] : [...shielded, "--", ...names];
}

/** The first word that a command does not know, or `undefined`: citty would ignore a mistyped `--ephemeral`. */
export function unknownWord(words: readonly string[], known: KnownWords): string | undefined {
  const { unknown, beside } = sortWords(words, known);
  return unknown ?? beside[known.positionals.length];
}

/** The first required argument that is not given. */
export function missingArgument(words: readonly string[], known: KnownWords): string | undefined {
  return known.positionals.slice(0, known.required)[sortWords(words, known).beside.length];
}

/** The first unknown option, and the words that are neither options nor their values. */
function sortWords(words: readonly string[], { valued, flags }: KnownWords) {
  const ends = words.indexOf("--");
  const [options, rest] = ends === -1 ? [words, []] : [words.slice(0, ends), words.slice(ends + 1)];
  const beside: string[] = [];
  let unknown: string | undefined;
  for (let index = 0; index < options.length; index += 1) {
    const word = options[index] ?? "";
    const [name = "", value] = word.slice(2).split("=", 2);
    // A lone dash is standard input.
    if (!word.startsWith("-") || word === "-") beside.push(word);
    else if (word.startsWith("--") && valued.includes(name)) index += value === undefined ? 1 : 0;
    else if (!word.startsWith("--") || !flags.includes(name) || value !== undefined) unknown ??= word;
  }
  return { unknown, beside: [...beside, ...rest] };
}
