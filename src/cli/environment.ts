/**
 * The environment with its secrets: `NAME_FILE` names a file that holds the secret `NAME`.
 * @module
 */
import { readFileSync } from "node:fs";
import { secretNames } from "../config/config.ts";

/** Names and texts, as the settings are read from. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A secret is a line; a file beyond this is not one. */
const secretBytesMax = 64 * 1024;

/** The environment, and each file of a secret that cannot be read. */
export type ReadEnvironment = Readonly<{ values: Environment; complaints: readonly string[] }>;

/** Reads the secrets that are given by file. */
export function readEnvironment(environment: Environment): ReadEnvironment {
  const complaints: string[] = [];
  const secrets: Record<string, string> = {};
  for (const name of secretNames) {
    const file = environment[`${name}_FILE`];
    if (file === undefined || file === "" || (environment[name] ?? "") !== "") continue;
    try {
      const text = readFileSync(file, "utf8");
      if (text.length > secretBytesMax) throw new Error(`holds more than ${secretBytesMax} bytes`);
      secrets[name] = text.trim();
    } catch (error) {
      // The reason becomes one line of the complaint.
      complaints.push(`${name}_FILE ${file}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { values: { ...environment, ...secrets }, complaints };
}
