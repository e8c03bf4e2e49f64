/**
 * `cairn ledger check`: is every credit where it must be. It may run beside the program that uses the ledger.
 * @module
 */
import { existsSync } from "node:fs";
import type { Config } from "../settings.ts";
import { checkLedger, type Finding } from "../store/ledger/check.ts";
import type { LedgerDatabase } from "../store/ledger/database.ts";
import { openLedger } from "../store/ledger/open.ts";
import { checkIntegrity, closeDatabase, openForReading } from "../store/sqlite.ts";
import { exitCodes, misuse } from "./complaints.ts";
import { dataFolderAt } from "./data-folder.ts";

/** How it is run. */
export type LedgerOptions = Readonly<{
  /** What to do with the ledger; `check` is all there is. */
  action: string;
  json: boolean;
}>;

/** What was found; no findings means well. */
type Report = Readonly<{
  /** The file, or `PostgreSQL`; `none yet` before the first start. */
  ledger: string;
  accounts: number;
  transfers: number;
  entries: number;
  findings: readonly Finding[];
}>;

/** Lines of a damaged file that are told. */
const faultsMax = 100;
/** Page cache of the walk over the whole file, bytes. */
const walkCacheBytes = 16 * 2 ** 20;

/** Checks, prints, and answers the exit code: 1 when something is wrong. */
export async function runLedger(config: Config, options: LedgerOptions): Promise<number> {
  if (options.action !== "check") throw misuse(`${options.action} is no action of ledger; check is`);
  const url = config.LEDGER_URL;
  const path = dataFolderAt(config.DATA_DIR).ledger;
  const report = url === undefined && !existsSync(path) ? nothing : await examine(url, path);
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : page(report));
  return report.findings.length === 0 ? exitCodes.done : exitCodes.failed;
}

const nothing: Report = { ledger: "none yet", accounts: 0, transfers: 0, entries: 0, findings: [] };

async function examine(url: string | undefined, path: string): Promise<Report> {
  // A damaged file is told as such before anything is asked of its rows.
  const faults = url === undefined ? fileFaults(path) : [];
  const place = url === undefined ? path : "PostgreSQL";
  if (faults.length > 0) return { ...nothing, ledger: place, findings: faults };
  const database = await openLedger({ url, path });
  try {
    return { ledger: place, ...(await countRows(database)), findings: await checkLedger(database) };
  } finally {
    await database.close();
  }
}

function fileFaults(path: string): Finding[] {
  const rule = "the ledger's file is whole";
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

function page({ ledger, accounts, transfers, entries, findings }: Report): string {
  const lines = [
    `ledger     ${ledger}`,
    `holds      ${accounts} accounts, ${transfers} transfers, ${entries} entries`,
    findings.length === 0 ? "found      every credit is where it must be" : `found      ${findings.length}:`,
    ...findings.map(({ rule, subject, found }) => `  not so: ${rule}; ${subject}: ${found}`),
  ];
  return `${lines.join("\n")}\n`;
}
