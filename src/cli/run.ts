/**
 * The commands: their arguments, their help, and what the process says and answers when one ends.
 *
 * A command is loaded when it is run, so that `cairn version` does not wait for what `cairn serve` needs.
 * @module
 */
import { existsSync } from "node:fs";
import { type ArgsDef, type CommandDef, defineCommand, renderUsage, runCommand } from "citty";
import { badSettings, exitCodes, isMisuse, misuse } from "../app/complaints.ts";
import {
  explainEnvironment,
  type Mode,
  printConfig,
  type ReadConfig,
  readConfig,
  settingsHelp,
} from "../config/config.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { printableLines } from "../lib/printable.ts";
import { isSchemaRefusal } from "../lib/schema-scripts.ts";
import { version } from "../version.ts";
import {
  balanceCommand,
  localUrl,
  type ReadSettings,
  receiptCommand,
  topUpCommand,
  uploadCommand,
} from "./client-commands.ts";
import type { Environment, ReadEnvironment } from "./environment.ts";
import { type KnownWords, shieldNames, unknownWord } from "./words.ts";

/** Reads the environment when a command wants it. */
type AskEnvironment = () => ReadEnvironment;

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
      process.stdout.write(`${help}\n`);
      return exitCodes.done;
    }
    const [name = "", ...rest] = words;
    // citty drops what a sub-command of a command answers, and with it the exit code.
    const command = await commandNamed(root, name);
    const known = await knownWords(command);
    const rawArgs = shieldNames(rest, known.valued);
    const unknown = unknownWord(rawArgs, known);
    if (unknown !== undefined) throw misuse(`${unknown} is no ${kindOf(unknown)} of ${name}${fileHint(unknown)}`);
    const { result } = await runCommand(command, { rawArgs });
    return typeof result === "number" ? result : exitCodes.done;
  } catch (error) {
    return report(error, words);
  }
}

/** Says why a command ended badly, in one line where it is the user's doing. */
function report(error: unknown, [command = ""]: readonly string[]): number {
  // citty marks what was typed wrongly with a code.
  const typed = error instanceof Error && "code" in error && /^(E_|EARG$)/.test(String(error.code));
  if (isMisuse(error) || typed) {
    process.stderr.write(`${printableLines(error.message)}${typed ? `; cairn ${command} --help says more` : ""}\n`);
    return exitCodes.misused;
  }
  const expected = error instanceof Failure ? error.context["reason"] : faultOf(error);
  process.stderr.write(`${printableLines(typeof expected === "string" ? expected : Bun.inspect(error))}\n`);
  return exitCodes.failed;
}

/** What is the machine's doing, not a defect's: disks, handles, a database server that cannot be reached. */
const machineCodes =
  /^(ENOSPC|EDQUOT|EROFS|EMFILE|ENFILE|SQLITE_(FULL|READONLY|IOERR|CANTOPEN|NOTADB)(_\w+)?|ERR_POSTGRES_\w+)$/;

/** The message of an error that the machine or its data caused, itself or as the cause of what was thrown. */
function faultOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const isFault = "code" in error && machineCodes.test(String(error.code));
  return isFault || isSchemaRefusal(error) || faultOf(error.cause) !== undefined ? error.message : undefined;
}

const portArgument = {
  type: "string",
  description: "Port of the gateway; 0 takes free ones",
  valueHint: "port",
} as const;
const jsonArgument = { type: "boolean", description: "Print JSON instead of text" } as const;

function commands(environment: AskEnvironment): CommandDef {
  const settings: ReadSettings = {
    environment: () => environment().values,
    config: () => configOf(environment(), "dev", {}),
  };
  return defineCommand({
    meta: {
      name: "cairn",
      version,
      description:
        "Permanent storage on your own machine: gateway, uploads, payment and a development chain in one program",
    },
    subCommands: {
      dev: devCommand(environment),
      serve: serveCommand(environment),
      upload: uploadCommand(settings),
      balance: balanceCommand(settings),
      topup: topUpCommand(settings),
      receipt: receiptCommand(settings),
      verify: verifyCommand(settings),
      doctor: doctorCommand(environment),
      ledger: ledgerCommand(environment),
      config: configCommand(environment),
      version: defineCommand({
        meta: { name: "version", description: "Print the version" },
        run: () => {
          process.stdout.write(`${version}\n`);
        },
      }),
    },
  });
}

function devCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "dev", description: "Run everything here, with a development chain and sample content" },
    args: {
      ephemeral: { type: "boolean", description: "Use a new folder and remove it at the end" },
      port: portArgument,
      json: { type: "boolean", description: "Print one line of addresses and wallets" },
    },
    run: async ({ args }) => {
      const config = await checkedConfig(environment(), "dev", portOverride(args.port));
      const options = { ephemeral: args.ephemeral === true, json: args.json === true };
      const { beginDevKeys } = await import("./dev-keys.ts");
      const makeRsaKey = beginDevKeys(config, options);
      const { runDev } = await import("./dev.ts");
      const path = environment().values["PATH"] ?? "";
      return runDev(config, { ...options, path, makeRsaKey });
    },
  });
}

function serveCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "serve", description: "Run the gateway against the nodes of TRUSTED_NODE_URL" },
    args: { port: portArgument, json: { type: "boolean", description: "Print one line of addresses" } },
    run: async ({ args }) => {
      const config = await checkedConfig(environment(), "serve", portOverride(args.port));
      const { runServe } = await import("./serve.ts");
      return runServe(config, { json: args.json === true });
    },
  });
}

const verifyArguments = {
  id: { type: "positional", description: "Id of a transaction or data item", required: true },
  gateway: {
    type: "string",
    description: "Gateway that is asked for proof and bytes; unset is this machine's, at GATEWAY_PORT",
    valueHint: "url",
  },
  range: { type: "string", description: "First and last byte, as in 0-99", valueHint: "a-b" },
  "block-hash": { type: "string", description: "Hash of the block, known from elsewhere", valueHint: "hash" },
  "tx-root": { type: "string", description: "tx_root of the block, known from elsewhere", valueHint: "root" },
  block: { type: "string", description: "The block's JSON, known from elsewhere", valueHint: "file" },
  owner: {
    type: "string",
    description: "Who must have signed; needed for ECDSA transactions",
    valueHint: "address",
  },
  proof: { type: "string", description: "A recorded answer of /svc/proof/{id}", valueHint: "file" },
  data: { type: "string", description: "The bytes that it is about, or all", valueHint: "file" },
  json: jsonArgument,
} as const;

function verifyCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "verify", description: "Check content by its proof, believing nothing but a block" },
    args: verifyArguments,
    run: async ({ args }) => {
      const { id, range, block, owner, proof, data } = args;
      const isOffline = proof !== undefined || data !== undefined;
      const gateway = args.gateway ?? (isOffline ? undefined : localUrl(config().GATEWAY_PORT));
      const options = { id, gateway, range, block, owner, proof, data, json: args.json === true };
      const { runVerify } = await import("./verify.ts");
      return runVerify({ ...options, blockHash: args["block-hash"], txRoot: args["tx-root"] });
    },
  });
}

function doctorCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: {
      name: "doctor",
      description: "Check the folder: databases, cached bytes, agreement with the chain",
    },
    args: {
      json: jsonArgument,
      offline: { type: "boolean", description: "Ask no node" },
      "accept-loss": {
        type: "string",
        description: "Forget a database that is lost or damaged, so that the next start begins anew",
        valueHint: "name",
      },
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const lost = args["accept-loss"];
      if (lost !== undefined) {
        const { acceptLoss } = await import("./accept-loss.ts");
        return acceptLoss(config, lost);
      }
      const { runDoctor } = await import("./doctor.ts");
      return runDoctor(config, { json: args.json === true, offline: args.offline === true });
    },
  });
}

function ledgerCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: {
      name: "ledger",
      description: "Check that every credit is where it must be, or undo double charges",
    },
    args: {
      action: { type: "positional", description: "check or repair", required: true },
      json: jsonArgument,
      "dry-run": { type: "boolean", description: "repair: print the transfers, write nothing" },
      gateway: { type: "string", description: "Where uploads on the chain are read", valueHint: "url" },
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const { runLedger } = await import("./ledger.ts");
      const { readServiceUrl } = await import("./service-client.ts");
      const gateway = args.gateway ?? localUrl(config.GATEWAY_PORT);
      const options = { action: args.action, json: args.json === true, dryRun: args["dry-run"] === true };
      return runLedger(config, { ...options, gateway: readServiceUrl(gateway, "--gateway") });
    },
  });
}

function configCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: {
      name: "config",
      description: "Print the settings in force, secrets hidden; exit code 2 when one is bad",
    },
    args: {
      dev: { type: "boolean", description: "As `cairn dev` would read them" },
      "explain-env": {
        type: "string",
        description: "Say of each name in a .env file, also one of ar-io-node, what becomes of it",
        valueHint: "file",
      },
    },
    run: async ({ args }) => {
      const path = args["explain-env"];
      if (path !== undefined) return await explainEnv(path, args.dev === true ? "dev" : "serve");
      const config = await checkedConfig(environment(), args.dev === true ? "dev" : "serve", {});
      process.stdout.write(`${printConfig(config)}\n`);
      return exitCodes.done;
    },
  });
}

async function explainEnv(path: string, mode: Mode): Promise<number> {
  const { explainReport, readEnvFile } = await import("./explain-env.ts");
  const { settingsFaults } = await import("./check-settings.ts");
  const environment = readEnvFile(path);
  const { filled, complaints } = readConfig(environment, mode);
  const faults = [...new Set([...complaints, ...settingsFaults(filled)])];
  process.stdout.write(`${explainReport(explainEnvironment(environment), faults)}\n`);
  return faults.length === 0 ? exitCodes.done : exitCodes.misused;
}

const freePorts: Environment = {
  GATEWAY_PORT: "0",
  PAYMENT_PORT: "0",
  UPLOAD_PORT: "0",
  DEVNET_PORT: "0",
  SANDBOX_PORT: "0",
};

function portOverride(port: string | undefined): Environment {
  if (port === undefined) return {};
  return port === "0" ? freePorts : { GATEWAY_PORT: port };
}

/** The settings that are read one by one: what a command needs that opens no part of the program. */
function configOf(environment: ReadEnvironment, mode: Mode, overrides: Environment): Config {
  const { config, warnings, complaints } = readAll(environment, mode, overrides);
  warn(warnings);
  if (complaints.length > 0) throw badSettings(complaints);
  return config;
}

/** The settings with all that can be said of them before anything is opened: one list of everything that is wrong. */
async function checkedConfig(environment: ReadEnvironment, mode: Mode, overrides: Environment): Promise<Config> {
  const { config, filled, warnings, complaints } = readAll(environment, mode, overrides);
  warn(warnings);
  // Loaded only where it is needed: it knows every part of the program.
  const { settingsFaults } = await import("./check-settings.ts");
  const all = [...complaints, ...settingsFaults(filled)];
  if (all.length > 0) throw badSettings([...new Set(all)]);
  return config;
}

function readAll({ values, complaints }: ReadEnvironment, mode: Mode, overrides: Environment): ReadConfig {
  const read = readConfig({ ...values, ...overrides }, mode);
  return { ...read, complaints: [...complaints, ...read.complaints] };
}

function warn(warnings: readonly string[]): void {
  for (const warning of warnings) process.stderr.write(`warning: ${printableLines(warning)}\n`);
}

/** The help that was asked for, or nothing; an unknown command is a misuse. */
async function helpFor(root: CommandDef, words: readonly string[]): Promise<string | undefined> {
  const first = words[0];
  const names = Object.keys((await resolved(root.subCommands)) ?? {});
  const asked = first === undefined || words.includes("--help") || words.includes("-h") || first === "help";
  const word = first === "help" ? words[1] : first;
  const named = word !== undefined && names.includes(word) ? word : undefined;
  if (asked) return named === undefined ? rootHelp(root) : commandHelp(root, named);
  if (first === "--version" || first === "-v") return version;
  if (named === undefined) throw misuse(`${first} is not a command; the commands are ${names.join(", ")}`);
  return undefined;
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
  if (command === undefined) throw misuse(`${name} is not a command`);
  return command;
}

async function knownWords({ args }: CommandDef<ArgsDef>): Promise<KnownWords> {
  const defined = Object.entries((await resolved(args)) ?? {});
  const ofType = (type: string) => defined.filter(([, arg]) => arg.type === type).map(([name]) => name);
  return {
    valued: ofType("string"),
    flags: ofType("boolean"),
    positionals: ofType("positional").length,
  };
}

function kindOf(word: string): string {
  return word.startsWith("-") ? "option" : "argument";
}

/** A file may have such a name, and then a path that an option cannot be. */
function fileHint(word: string): string {
  return word.startsWith("-") && existsSync(word) ? `; the file of that name is ./${word}` : "";
}

async function resolved<Value>(value: Value | Promise<Value> | (() => Value | Promise<Value>)): Promise<Value> {
  return value instanceof Function ? value() : value;
}

/** citty colours its usage; a pipe wants plain text. */
function plain(text: string): string {
  return process.stdout.isTTY ? text : Bun.stripANSI(text);
}
