/**
 * `cairn ledger check`: is every credit where it must be. It may run beside the program that uses the ledger.
 * `cairn ledger repair` undoes double charges (ledger-repair.ts).
 * @module
 */

import { existsSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { dataFolderAt, existingDataFolder } from "../app/data-folder.ts";
import { type DatabaseFinding, examineDatabases } from "../app/databases.ts";
import type { Config } from "../config/settings.ts";
import { jsonText, printable } from "../lib/printable.ts";
import { checkLedger, type Finding } from "../store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { checkIntegrity, closeDatabase, openForReading } from "../store/sqlite.ts";
import { type DoubleCharge, findDoubleCharges } from "../upload/double-charges.ts";
import { repairLedger, unreadText } from "./ledger-repair.ts";
import { createSigningReader, type SigningReader } from "./read-signing.ts";

/** How it is run. */
export type LedgerOptions = Readonly<{
  /** `check` or `repair`. */
  action: string;
  json: boolean;
  /** `repair` prints what it would do, and writes nothing. */
  dryRun: boolean;
  /** Where uploads that are on the chain are read; without a slash at its end. */
  gateway: string;
}>;

/** What was found; no findings means well. */
type Report = Readonly<{
  /** The file, or `PostgreSQL`; `none yet` before the first start. */
  ledger: string;
  accounts: number;
  transfers: number;
  entries: number;
  findings: readonly Finding[];
  /** What could not be checked; sentences. */
  unchecked: readonly string[];
}>;

const wholeRule = "the ledger's file is whole";
/** Lines of a damaged file that are told. */
const faultsMax = 100;
/** Page cache of the walk over the whole file, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/** Checks, prints, and answers the exit code: 1 when something is wrong. */
export async function runLedger(config: Config, options: LedgerOptions): Promise<number> {
  const { action } = options;
  if (action !== "check" && action !== "repair")
    throw misuse(`unknown action '${action}' of 'cairn ledger': expected check or repair`);
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
  process.stdout.write(options.json ? `${jsonText(report)}\n` : page(report));
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

/** A ledger that is not the one of its folder is not opened: that would make tables in it. */
async function reportOf(loss: DatabaseFinding | undefined, examineIt: () => Report | Promise<Report>): Promise<Report> {
  if (loss === undefined) return await examineIt();
  const rule = loss.fault === "damaged" ? wholeRule : "the data folder has the ledger that it remembers";
  return {
    ...nothing,
    ledger: loss.subject,
    findings: [{ rule, subject: loss.subject, found: loss.sentence }],
  };
}

/** Why the ledger is not the one that the folder remembers; an older copy of it is. */
async function findLoss(config: Config): Promise<DatabaseFinding | undefined> {
  const { databases } = await examineDatabases(dataFolderAt(config.DATA_DIR), config);
  const finding = databases.find(({ known }) => known.name === "ledger")?.finding;
  return finding?.fault === "older" ? undefined : finding;
}

async function examine(url: string | undefined, path: string, signings: SigningReader): Promise<Report> {
  // A damaged file is told as such before anything is asked of its rows.
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
  const rule = "an act of signing is charged once";
  return { rule, subject: id, found: `repeats ${firstId}; 'cairn ledger repair --dry-run' tells more` };
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
    // A file that cannot be opened is the finding.
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
    findings.length === 0 ? "found      every credit is where it must be" : `found      ${findings.length}:`,
    ...findings.map(({ rule, subject, found }) => `  not so: ${printable(`${rule}; ${subject}: ${found}`)}`),
    ...unchecked.map((text) => `  ${text}`),
  ];
  return `${lines.join("\n")}\n`;
}
