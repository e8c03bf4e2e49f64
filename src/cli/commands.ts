/**
 * The commands of `cairn`: arguments, descriptions and the settings that each reads.
 *
 * The code of a command is imported when it runs, so that `cairn version` does not load what `cairn serve` needs.
 * Without options the client commands use a running `cairn dev`: its ports and its funded wallet.
 * @module
 */
import { type CommandDef, defineCommand } from "citty";
import { badSettings, exitCodes, misuse } from "../app/complaints.ts";
import {
  configRecord,
  explainEnvironment,
  type Mode,
  printConfig,
  type ReadConfig,
  readConfig,
} from "../config/config.ts";
import type { Config } from "../config/settings.ts";
import { invalidValue, jsonText, printableLines } from "../lib/printable.ts";
import { version } from "../version.ts";
import { type Environment, explainReport, type ReadEnvironment, readEnvFile, stateFolderOf } from "./environment.ts";
import {
  accountsCommand,
  adminAccess,
  adminArguments,
  paymentsCommand,
  promoCommand,
  solvencyCommand,
  statementCommand,
} from "./operator-commands.ts";
import { print } from "./print.ts";
import {
  balanceCommand,
  jsonArgument,
  localUrl,
  priceCommand,
  type ReadSettings,
  receiptCommand,
  toArgument,
  topUpCommand,
  uploadCommand,
  walletArgument,
} from "./service-commands.ts";

/** Reads the environment, for a command that needs it. */
export type AskEnvironment = () => ReadEnvironment;

const portArgument = {
  type: "string",
  description: "Port of the gateway; 0 picks free ports for all services",
  valueHint: "port",
} as const;
/** The program with all its commands. */
export function commands(environment: AskEnvironment): CommandDef {
  const settings: ReadSettings = {
    environment: () => environment().values,
    // What only `dev` requires of settings must not stop a command: another program may run by them.
    config: () => configOf(environment(), "serve", {}),
  };
  const program: CommandDef = defineCommand({
    meta: {
      name: "cairn",
      version,
      description:
        "Permanent storage on your own machine: gateway, uploads, payment and a development chain in one program",
    },
    subCommands: {
      dev: devCommand(environment),
      serve: serveCommand(environment),
      status: statusCommand(settings),
      upload: uploadCommand(settings),
      balance: balanceCommand(settings),
      topup: topUpCommand(settings),
      receipt: receiptCommand(settings),
      price: priceCommand(settings),
      get: getCommand(settings),
      verify: verifyCommand(settings),
      mine: mineCommand(settings),
      mint: mintCommand(settings),
      export: exportCommand(environment),
      import: importCommand(environment),
      snapshot: snapshotCommand(settings, environment),
      sql: sqlCommand(environment),
      doctor: doctorCommand(environment),
      backup: backupCommand(environment),
      restore: restoreCommand(environment),
      accounts: accountsCommand(settings),
      payments: paymentsCommand(settings),
      promo: promoCommand(settings),
      solvency: solvencyCommand(() => configOf(environment(), "serve", {})),
      statement: statementCommand(() => configOf(environment(), "serve", {})),
      ledger: ledgerCommand(environment),
      config: configCommand(environment),
      completions: completionsCommand(() => program),
      version: defineCommand({
        meta: { name: "version", description: "Print the version" },
        run: () => {
          print(`${version}\n`);
        },
      }),
    },
  });
  return program;
}

function devCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "dev", description: "Run all services with a development chain and sample content" },
    args: {
      ephemeral: { type: "boolean", description: "Use a temporary folder that is removed at the end" },
      port: portArgument,
      json: { type: "boolean", description: "Print one line of addresses and wallets" },
      log: { type: "boolean", description: "Print a line for each response" },
    },
    run: async ({ args }) => {
      const overrides = { ...portOverride(args.port), ...(args.log === true ? { LOG_REQUESTS: "true" } : {}) };
      const config = await checkedConfig(environment(), "dev", overrides);
      const options = { ephemeral: args.ephemeral === true, json: args.json === true };
      const { beginDevKeys } = await import("./dev-keys.ts");
      const makeRsaKey = beginDevKeys(config, options);
      const { runDev } = await import("./dev.ts");
      const path = environment().values["PATH"] ?? "";
      const isLive = !options.json && process.stdout.isTTY === true && process.stderr.isTTY === true;
      return runDev(config, { ...options, isLive, path, makeRsaKey });
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

function statusCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "status", description: "Print how far a running gateway is; on a terminal until Ctrl-C" },
    args: {
      ...adminArguments,
      once: { type: "boolean", description: "Print once, also on a terminal" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const json = args.json === true;
      const { runStatus } = await import("./status.ts");
      return runStatus({
        ...(await adminAccess(config(), args)),
        json,
        isLive: !json && args.once !== true && process.stdout.isTTY === true,
      });
    },
  });
}

const verifyArguments = {
  id: { type: "positional", description: "Id of a transaction or data item", required: true },
  gateway: {
    type: "string",
    description: "Gateway for proof and content; default: this machine, GATEWAY_PORT",
    valueHint: "url",
  },
  range: { type: "string", description: "First and last byte, such as 0-99", valueHint: "a-b" },
  "block-hash": { type: "string", description: "Trusted hash of the block", valueHint: "hash" },
  "tx-root": { type: "string", description: "Trusted tx_root of the block", valueHint: "root" },
  block: { type: "string", description: "Trusted JSON of the block", valueHint: "file" },
  owner: {
    type: "string",
    description: "Expected address of the signer; required for ECDSA transactions",
    valueHint: "address",
  },
  proof: { type: "string", description: "Recorded response of /svc/proof/{id}", valueHint: "file" },
  data: { type: "string", description: "Content of the proof's range, or the whole content", valueHint: "file" },
  json: jsonArgument,
} as const;

function verifyCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "verify", description: "Verify content by its proof, trusting only a block" },
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

function getCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "get", description: "Write the content of an id, after its proof or signature is verified" },
    args: {
      id: verifyArguments.id,
      output: { type: "string", alias: "o", description: "File; default: standard output", valueHint: "file" },
      gateway: verifyArguments.gateway,
      "block-hash": verifyArguments["block-hash"],
      owner: verifyArguments.owner,
    },
    run: async ({ args }) => {
      const { id, output, owner } = args;
      const gateway = args.gateway ?? localUrl(config().GATEWAY_PORT);
      const { runGet } = await import("./get.ts");
      return runGet({ id, output, gateway, owner, blockHash: args["block-hash"] });
    },
  });
}

const nodeArgument = {
  type: "string",
  description: "URL of the development chain; default: this machine, DEVNET_PORT",
  valueHint: "url",
} as const;

function mineCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "mine", description: "Mine blocks of a running cairn dev" },
    args: {
      count: { type: "positional", description: "Number of blocks; default: 1", required: false },
      node: nodeArgument,
    },
    run: async ({ args }) => {
      const { runMine } = await import("./chain-controls.ts");
      return runMine({ node: args.node ?? localUrl(config().DEVNET_PORT), count: args.count });
    },
  });
}

function mintCommand({ config }: ReadSettings) {
  return defineCommand({
    meta: { name: "mint", description: "Give an address new AR on the chain of a running cairn dev" },
    args: {
      address: { type: "positional", description: "Address of an Arweave wallet", required: true },
      amount: { type: "positional", description: "Winston, or AR such as 1.5AR", required: true },
      node: nodeArgument,
    },
    run: async ({ args }) => {
      const { runMint } = await import("./chain-controls.ts");
      const { address, amount } = args;
      return runMint({ node: args.node ?? localUrl(config().DEVNET_PORT), address, amount });
    },
  });
}

function doctorCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: {
      name: "doctor",
      description: "Check the data folder: databases, cached bytes, agreement with the chain",
    },
    args: {
      json: jsonArgument,
      offline: { type: "boolean", description: "Send no request to nodes" },
      "accept-loss": {
        type: "string",
        description: "Give up a lost or damaged database, so that the next start creates a new one",
        valueHint: "name",
      },
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const lost = args["accept-loss"];
      if (lost !== undefined) {
        const { acceptLoss } = await import("./doctor.ts");
        return acceptLoss(config, lost);
      }
      const { runDoctor } = await import("./doctor.ts");
      return runDoctor(config, { json: args.json === true, offline: args.offline === true });
    },
  });
}

function exportCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "export", description: "Write the final blocks of the index to Parquet files" },
    args: {
      folder: { type: "positional", description: "Folder to write to", required: true },
      from: { type: "string", description: "First height; default: the first of the index", valueHint: "height" },
      to: { type: "string", description: "Last height; default: the last final one", valueHint: "height" },
      rows: { type: "string", description: "Most rows of a file; default: no limit", valueHint: "count" },
      partition: { type: "string", description: "Heights that share files; default: 1000", valueHint: "count" },
      "items-only": { type: "boolean", description: "Leave out transactions of the chain" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const { folder, from, to, rows, partition } = args;
      const { runExportCommand } = await import("./export.ts");
      const options = { itemsOnly: args["items-only"] === true, json: args.json === true };
      return runExportCommand(config, { folder, from, to, rows, partition, ...options });
    },
  });
}

function importCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: {
      name: "import",
      description: "Load exported Parquet files into the columnar store, or take over the data of an ar-io-node",
    },
    args: {
      folder: {
        type: "positional",
        description: "Folder that cairn export wrote, or the data folder of ar-io-node",
        required: true,
      },
      from: { type: "string", description: "Program that wrote the folder: ar-io-node", valueHint: "program" },
      env: { type: "string", description: "The .env of ar-io-node; default: beside its data", valueHint: "file" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { folder, from, env } = args;
      if (from !== undefined && from !== "ar-io-node") throw misuse(invalidValue("--from", from, "ar-io-node"));
      if (env !== undefined && from === undefined) throw misuse("--env requires --from ar-io-node");
      if (from !== undefined) {
        const config = configOf(environment(), "serve", {});
        const { runArIoNodeImport } = await import("./import-ar-io-node.ts");
        return await runArIoNodeImport(config, { folder, env, json: args.json === true });
      }
      const config = configOf(environment(), "serve", {});
      const { runImport } = await import("./import.ts");
      return runImport(config, { folder, json: args.json === true });
    },
  });
}

function snapshotCommand({ config }: ReadSettings, environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "snapshot", description: "Publish exported history, or fetch it: cairn snapshot publish|fetch" },
    args: {
      action: { type: "positional", description: "publish or fetch", required: true, valueHint: "publish|fetch" },
      subject: {
        type: "positional",
        description: "Folder that cairn export wrote, or the published id",
        required: true,
        valueHint: "folder",
      },
      gateway: { type: "string", description: "fetch: gateway to fetch from; required", valueHint: "url" },
      sample: { type: "string", description: "Rows whose proofs fetch verifies; default: 1000", valueHint: "count" },
      wallet: walletArgument,
      to: toArgument("upload", "UPLOAD_PORT"),
      yes: { type: "boolean", description: "Skip the confirmation of a large upload" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { fetchSnapshot, publishSnapshot } = await import("./snapshot.ts");
      const { action, subject, gateway, sample, wallet } = args;
      const json = args.json === true;
      if (action === "fetch")
        return fetchSnapshot(configOf(environment(), "serve", {}), { id: subject, gateway, sample, json });
      if (action !== "publish") throw misuse(invalidValue("<action>", action, "publish or fetch"));
      const settings = config();
      return publishSnapshot(settings, {
        path: subject,
        wallet,
        to: args.to ?? localUrl(settings.UPLOAD_PORT),
        ...{
          index: undefined,
          fallback: undefined,
          tag: ["Type=cairn-snapshot"],
          tags: undefined,
          hidden: false,
          followLinks: false,
        },
        yes: args.yes === true,
        wincUnconfirmedMax: BigInt(settings.UPLOAD_CONFIRM_WINC),
        dryRun: false,
        json,
        dataDir: settings.DATA_DIR,
        stateFolder: stateFolderOf(environment().values),
      });
    },
  });
}

function sqlCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "sql", description: "Run a SELECT over exported files; tables: items, item_tags, blocks, …" },
    args: {
      query: { type: "positional", description: "One statement of DuckDB's SQL", required: true },
      folder: {
        type: "string",
        description: "Folder of exports; default: that of the data folder",
        valueHint: "folder",
      },
      json: { type: "boolean", description: "Print a JSON array" },
      csv: { type: "boolean", description: "Print CSV with a header" },
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const { runSql } = await import("./sql.ts");
      const { query, folder } = args;
      const options = { json: args.json === true, csv: args.csv === true };
      return runSql(config, { query, folder, ...options, stateFolder: stateFolderOf(environment().values) });
    },
  });
}

function backupCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "backup", description: "Copy the data folder, also beside a running program, and check the copy" },
    args: {
      folder: { type: "positional", description: "Folder to write to; absent or empty", required: true },
      "without-index": { type: "boolean", description: "Leave out the index and the columnar store" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const { runBackup } = await import("./backup/backup.ts");
      const withIndex = args["without-index"] !== true;
      return runBackup(config, { target: args.folder, withIndex, json: args.json === true });
    },
  });
}

function restoreCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: { name: "restore", description: "Write a backup to the data folder, which must be absent or empty" },
    args: {
      folder: { type: "positional", description: "Folder that cairn backup wrote", required: true },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const config = configOf(environment(), "serve", {});
      const { runRestore } = await import("./backup/restore.ts");
      return runRestore(config, { source: args.folder, json: args.json === true });
    },
  });
}

function ledgerCommand(environment: AskEnvironment) {
  return defineCommand({
    meta: {
      name: "ledger",
      description: "Check that the ledger is consistent, or undo double charges",
    },
    args: {
      action: { type: "positional", description: "check or repair", required: true, valueHint: "check|repair" },
      json: jsonArgument,
      "dry-run": { type: "boolean", description: "repair: print the transfers, write nothing" },
      gateway: {
        type: "string",
        description: "Gateway for uploads that are only on the chain; default: this machine",
        valueHint: "url",
      },
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
      description: "Print the settings in force, secrets hidden; exit code 2 for an invalid one",
    },
    args: {
      dev: { type: "boolean", description: "With the defaults of `cairn dev`" },
      "explain-env": {
        type: "string",
        description: "Explain each name of a .env file, also of ar-io-node",
        valueHint: "file",
      },
      json: { type: "boolean", description: "Print one line, with the names that set each value" },
    },
    run: async ({ args }) => {
      const path = args["explain-env"];
      const mode = args.dev === true ? "dev" : "serve";
      if (path !== undefined) return await explainEnv(path, mode);
      const read = await checkedSettings(environment(), mode, {});
      print(`${args.json === true ? jsonText(configRecord(read)) : printConfig(read.config)}\n`);
      return exitCodes.done;
    },
  });
}

function completionsCommand(program: () => CommandDef) {
  return defineCommand({
    meta: { name: "completions", description: "Print a script that completes commands and options in a shell" },
    args: {
      shell: {
        type: "positional",
        description: "bash, zsh or fish",
        required: true,
        valueHint: "bash|zsh|fish",
      },
    },
    run: async ({ args }) => {
      const { completionScript } = await import("./completions.ts");
      print(await completionScript(program(), args.shell));
      return exitCodes.done;
    },
  });
}

async function explainEnv(path: string, mode: Mode): Promise<number> {
  const { settingsFaults } = await import("./check-settings.ts");
  const environment = readEnvFile(path, "--explain-env");
  const { filled, complaints } = readConfig(environment, mode);
  const faults = [...new Set([...complaints, ...settingsFaults(filled)])];
  print(`${explainReport(explainEnvironment(environment), faults)}\n`);
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

/** The settings, for commands that do not open the program. */
function configOf(environment: ReadEnvironment, mode: Mode, overrides: Environment): Config {
  const { config, warnings, complaints } = readAll(environment, mode, overrides);
  warn(warnings);
  if (complaints.length > 0) throw badSettings(complaints);
  return config;
}

/** The values of the settings after all checks. */
async function checkedConfig(environment: ReadEnvironment, mode: Mode, overrides: Environment): Promise<Config> {
  return (await checkedSettings(environment, mode, overrides)).config;
}

/** The settings after all checks; every fault is reported at once. */
async function checkedSettings(environment: ReadEnvironment, mode: Mode, overrides: Environment): Promise<ReadConfig> {
  const read = readAll(environment, mode, overrides);
  const { filled, warnings, complaints } = read;
  warn(warnings);
  // Imported here because it imports every part of the program.
  const { settingsFaults } = await import("./check-settings.ts");
  const all = [...complaints, ...settingsFaults(filled)];
  if (all.length > 0) throw badSettings([...new Set(all)]);
  return read;
}

function readAll({ values, complaints }: ReadEnvironment, mode: Mode, overrides: Environment): ReadConfig {
  const read = readConfig({ ...values, ...overrides }, mode);
  return { ...read, complaints: [...complaints, ...read.complaints] };
}

function warn(warnings: readonly string[]): void {
  for (const warning of warnings) process.stderr.write(`warning: ${printableLines(warning)}\n`);
}
