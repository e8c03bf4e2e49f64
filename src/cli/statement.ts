/**
 * `cairn statement`: the statement of a month as CSV, from the ledger; may run beside the program that uses it.
 * @module
 */
import { existsSync, writeFileSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { dataFolderAt, existingDataFolder } from "../app/data-folder.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { invalidValue } from "../lib/printable.ts";
import { readMonth, readStatement, writeStatement } from "../payment/operator/statement.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { print } from "./print.ts";

export type StatementOptions = Readonly<{
  /** Such as `2026-11`. */
  month: string;
  /** File; undefined: standard output. */
  output: string | undefined;
  /** Unix milliseconds. */
  now: number;
}>;

/** Writes the statement. @returns The exit code. @throws Misuse. */
export async function runStatement(config: Config, { month: name, output, now }: StatementOptions): Promise<number> {
  const month = readMonth(name);
  if (month === undefined) throw misuse(invalidValue("--month", name, "a month such as 2026-11"));
  if (month.from > now) throw misuse(invalidValue("--month", name, "a month that has begun (UTC)"));
  const url = config.LEDGER_URL;
  const { ledger: path } = (url === undefined ? existingDataFolder : dataFolderAt)(config.DATA_DIR);
  if (url === undefined && !existsSync(path)) throw misuse(`there is no ledger in ${config.DATA_DIR}`);
  const ledger = await openLedger({ url, path });
  try {
    const text = writeStatement(month, await ledger.read((tx) => readStatement(tx, month)));
    if (output === undefined) print(text);
    else writeTo(output, text);
    return exitCodes.done;
  } finally {
    await ledger.close();
  }
}

function writeTo(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new Failure("source_failed", { reason: `${path} cannot be written: ${String(error)}` }, error);
  }
}
