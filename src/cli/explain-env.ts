/**
 * `cairn config --explain-env <file>`: what becomes of each name of an operator's `.env`, of this program or of
 * ar-io-node. Values are printed only where they were translated, so that no secret is.
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { misuse } from "../app/complaints.ts";
import type { ExplainedName } from "../config/config.ts";
import { printable } from "../lib/printable.ts";

/** A file of settings has some KiB; a larger one is not one. */
const envBytesMax = 1024 * 1024;

/** Reads a file of lines `NAME=value`. @throws Misuse when it cannot be read. */
export function readEnvFile(path: string): Readonly<Record<string, string | undefined>> {
  if (path === "") throw misuse("missing argument <file> for '--explain-env'");
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
  same: "not read, and the same here in any case",
  foreign: "without effect here; what to use instead",
  unknown: "not a setting of this version",
} as const satisfies Record<ExplainedName["kind"], string>;

/** Writes the report. @param faults - Complaints about values. */
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
