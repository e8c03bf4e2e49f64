/**
 * `cairn ledger check`: verifies that the ledger is consistent; may run beside the program that uses the ledger.
 * `cairn ledger repair`: undoes double charges of older versions; `--dry-run` lists the transfers and writes nothing.
 * @module
 */
import { existsSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { dataFolderAt, existingDataFolder } from "../app/data-folder.ts";
import { type DatabaseFinding, examineDatabases } from "../app/databases.ts";
import { systemRandom } from "../app/random.ts";
import type { Config } from "../config/settings.ts";
import { invalidValue, jsonText, printable } from "../lib/printable.ts";
import { checkLedger, type Finding } from "../store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { createTransferIds } from "../store/ledger/transfers.ts";
import { checkIntegrity, closeDatabase, openForReading } from "../store/sqlite.ts";
import {
  type DoubleCharge,
  type DoubleCharges,
  findDoubleCharges,
  undoDoubleCharge,
  writeSignings,
} from "../upload/double-charges.ts";
import { print } from "./print.ts";
import { createSigningReader, type SigningReader } from "./signing-reader.ts";

export type LedgerOptions = Readonly<{
  /** `check` or `repair`. */
  action: string;
  json: boolean;
  /** `repair` prints the transfers and writes nothing. */
  dryRun: boolean;
  /** Gateway for uploads that are only on the chain; without a trailing slash. */
  gateway: string;
}>;

/** The result of a check. */
type Report = Readonly<{
  /** The file, or `PostgreSQL`; `none yet` before the first start. */
  ledger: string;
  accounts: number;
  transfers: number;
  entries: number;
  findings: readonly Finding[];
  /** Sentences about uploads that could not be checked. */
  unchecked: readonly string[];
}>;

const wholeRule = "the ledger's file is intact";
/** Maximum number of findings that are reported for a damaged file. */
const faultsMax = 100;
/** Page cache of an integrity check, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/** Runs the action and prints its report. @returns The exit code: 1 when there are findings. */
export async function runLedger(config: Config, options: LedgerOptions): Promise<number> {
  const { action } = options;
  if (action !== "check" && action !== "repair") throw misuse(invalidValue("<action>", action, "check or repair"));
  if (action === "check" && options.dryRun) throw misuse("--dry-run belongs to 'cairn ledger repair'");
  const url = config.LEDGER_URL;
  // A ledger on PostgreSQL needs no folder.
  const folderOf = url === undefined ? existingDataFolder : dataFolderAt;
  const { ledger: path, uploads } = folderOf(config.DATA_DIR);
  const exists = url !== undefined || existsSync(path);
  const loss = await findLoss(config);
  if (action === "repair") {
    if (loss !== undefined) throw misuse(loss.sentence);
    if (!exists) throw misuse(`there is no ledger in ${config.DATA_DIR}`);
    return await repairLedger({ url, path, uploads, ...options });
  }
  const report = await reportOf(loss, () =>
    exists ? examine(url, path, createSigningReader(uploads, options.gateway)) : nothing,
  );
  print(options.json ? `${jsonText(report)}\n` : page(report));
  return report.findings.length === 0 ? exitCodes.done : exitCodes.failed;
}

const nothing: Report = {
  ledger: "none yet",
  accounts: 0,
  transfers: 0,
  entries: 0,
  findings: [],
  unchecked: [],
};

/** A ledger that does not belong to the folder is not opened: opening it would create tables. */
async function reportOf(loss: DatabaseFinding | undefined, examineIt: () => Report | Promise<Report>): Promise<Report> {
  if (loss === undefined) return await examineIt();
  const rule = loss.fault === "damaged" ? wholeRule : "the ledger belongs to the data folder";
  return {
    ...nothing,
    ledger: loss.subject,
    findings: [{ rule, subject: loss.subject, found: loss.sentence }],
  };
}

/** Why the ledger does not belong to the folder; an older copy of the same ledger does. */
async function findLoss(config: Config): Promise<DatabaseFinding | undefined> {
  const { databases } = await examineDatabases(dataFolderAt(config.DATA_DIR), config);
  const finding = databases.find(({ known }) => known.name === "ledger")?.finding;
  return finding?.fault === "older" ? undefined : finding;
}

async function examine(url: string | undefined, path: string, signings: SigningReader): Promise<Report> {
  // Damage of the file is reported before its rows are read.
  const faults = url === undefined ? fileFaults(path) : [];
  const place = url === undefined ? path : "PostgreSQL";
  if (faults.length > 0) return { ...nothing, ledger: place, findings: faults };
  const database = await openLedger({ url, path });
  try {
    const doubles = await findDoubleCharges(database, signings.read, new AbortController().signal);
    const findings = [...(await checkLedger(database)), ...doubles.doubles.map(findingOf)];
    const unchecked = doubles.unread.map(unreadText);
    return { ledger: place, ...(await countRows(database)), findings, unchecked };
  } finally {
    signings.close();
    await database.close();
  }
}

function findingOf({ id, firstId }: DoubleCharge): Finding {
  const rule = "a signature is charged once";
  return { rule, subject: id, found: `repeats ${firstId}; see 'cairn ledger repair --dry-run'` };
}

function fileFaults(path: string): Finding[] {
  const rule = wholeRule;
  try {
    const db = openForReading(path, walkCacheBytes);
    try {
      return checkIntegrity(db, faultsMax).map((found) => ({ rule, subject: path, found }));
    } finally {
      closeDatabase(db);
    }
  } catch (error) {
    // A file that cannot be opened is a finding.
    return [{ rule, subject: path, found: error instanceof Error ? error.message : String(error) }];
  }
}

function countRows(database: LedgerDatabase) {
  return database.read(async (tx) => {
    const count = async (table: string) => {
      const row = await tx.get<{ rows: bigint }>(`SELECT COUNT(*) AS rows FROM ${table}`);
      return Number(row?.rows ?? 0n);
    };
    const accounts = await count("accounts");
    return { accounts, transfers: await count("transfers"), entries: await count("entries") };
  });
}

function page({ ledger, accounts, transfers, entries, findings, unchecked }: Report): string {
  const lines = [
    `ledger     ${ledger}`,
    `holds      ${accounts} accounts, ${transfers} transfers, ${entries} entries`,
    findings.length === 0 ? "found      no inconsistency" : `found      ${findings.length}:`,
    ...findings.map(({ rule, subject, found }) => `  failed: ${printable(`${rule}; ${subject}: ${found}`)}`),
    ...unchecked.map((text) => `  ${text}`),
  ];
  return `${lines.join("\n")}\n`;
}

export type RepairOptions = Readonly<{
  /** PostgreSQL; `undefined` selects the file. */
  url: string | undefined;
  path: string;
  /** The folder of uploads. */
  uploads: string;
  /** Gateway for uploads that are only on the chain; without a trailing slash. */
  gateway: string;
  dryRun: boolean;
  json: boolean;
}>;

/** Repairs the ledger and prints the transfers. @returns 1 when double charges remain, also after a dry run. */
export async function repairLedger(options: RepairOptions): Promise<number> {
  const { url, path, uploads, gateway, dryRun, json } = options;
  const signings = createSigningReader(uploads, gateway);
  const database = await openLedger({ url, path });
  try {
    const found = await findDoubleCharges(database, signings.read, new AbortController().signal);
    const undone = new Set<string>();
    if (!dryRun) {
      const makeId = createTransferIds(Date.now, systemRandom);
      for (const double of found.doubles)
        if (await undoDoubleCharge(database, double, { now: Date.now(), makeId })) undone.add(double.id);
      await writeSignings(database, found.signings);
    }
    const left = found.doubles.filter(({ id }) => !undone.has(id));
    print(json ? `${repairRecord(found, undone)}\n` : repairPage(found, undone, dryRun));
    return left.length === 0 ? exitCodes.done : exitCodes.failed;
  } finally {
    signings.close();
    await database.close();
  }
}

/** The line for an upload whose signature could not be read. */
function unreadText({ id, reason }: DoubleCharges["unread"][number]): string {
  return printable(`not compared: upload ${id}: ${reason}`);
}

function repairRecord({ doubles, unread }: DoubleCharges, undone: ReadonlySet<string>): string {
  const records = doubles.map(({ id, firstId, transfers, notes }) => ({
    id,
    firstId,
    undone: undone.has(id),
    notes,
    transfers: transfers.map(({ reason, to, winc }) => ({ reason, to, winc: winc.toString() })),
  }));
  return jsonText({ doubles: records, unread });
}

function repairPage({ doubles, unread }: DoubleCharges, undone: ReadonlySet<string>, dryRun: boolean): string {
  const lines = [
    doubles.length === 0 ? "every signature was charged once" : `charged twice: ${doubles.length}`,
    ...doubles.flatMap((double) => linesOf(double, undone.has(double.id), dryRun)),
    ...unread.map(unreadText),
  ];
  return `${lines.join("\n")}\n`;
}

function linesOf({ id, firstId, transfers, notes }: DoubleCharge, isUndone: boolean, dryRun: boolean): string[] {
  const state = isUndone ? "undone" : dryRun ? "would be undone" : "not undone";
  return [
    `upload ${id} repeats ${firstId}: ${state}`,
    ...transfers.map(({ reason, to, winc }) => `  ${winc} winc to ${to} (${reason})`),
    ...notes.map((note) => `  ${printable(note)}`),
  ];
}
