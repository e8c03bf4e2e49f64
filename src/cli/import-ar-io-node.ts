/**
 * `cairn import --from ar-io-node`: takes over the data folder of an ar-io-node, and reports what its settings mean
 * here. The folder is only read.
 * @module
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { exitCodes, misuse } from "../app/complaints.ts";
import { type ExplainedName, explainEnvironment, readConfig } from "../config/config.ts";
import { jsonText } from "../lib/printable.ts";
import { settingsFaults } from "./check-settings.ts";
import { explainReport, readEnvFile } from "./environment.ts";

export type ArIoNodeOptions = Readonly<{
  /** The data folder of ar-io-node, or the folder that contains it as `data`. */
  folder: string;
  /** Its `.env`; by default the one in the folder or beside it. */
  env: string | undefined;
  json: boolean;
}>;

/** Imports the folder and prints a report. @returns The exit code. @throws Misuse for another folder. */
export async function runArIoNodeImport(options: ArIoNodeOptions): Promise<number> {
  const folder = dataFolderOf(resolve(options.folder));
  const settings = readSettings(folder, options.env);
  process.stdout.write(options.json ? jsonText({ settings }) : settingsText(settings));
  return exitCodes.done;
}

function dataFolderOf(folder: string): string {
  const found = [folder, join(folder, "data")].find((each) => existsSync(join(each, "sqlite", "core.db")));
  if (found === undefined) throw misuse(`${folder} is not a data folder of ar-io-node: sqlite/core.db does not exist`);
  return found;
}

/** What the settings of the other gateway mean here. */
type SettingsReport = Readonly<{
  /** The `.env` that was read; null: none was found. */
  path: string | null;
  names: readonly ExplainedName[];
  /** Complaints about values that are not valid here. */
  invalid: readonly string[];
}>;

function readSettings(folder: string, given: string | undefined): SettingsReport {
  const path = given ?? [folder, dirname(folder)].map((each) => join(each, ".env")).find((each) => existsSync(each));
  if (path === undefined) return { path: null, names: [], invalid: [] };
  const environment = readEnvFile(path, "--env");
  const { filled, complaints } = readConfig(environment, "serve");
  const invalid = [...new Set([...complaints, ...settingsFaults(filled)])];
  return { path, names: explainEnvironment(environment), invalid };
}

function settingsText({ path, names, invalid }: SettingsReport): string {
  if (path === null) return "settings: no .env was found; --env names it\n";
  return `settings of ${path}\n\n${explainReport(names, invalid)}\n`;
}
