/**
 * Migration scripts of a database, and the selection of those that an existing database has not run yet.
 *
 * A released script is never edited. An unreleased script may be, so a database of the same version may have other
 * tables. A fingerprint of the scripts is stored beside the version, and opening such a database fails at once.
 * @module
 */
import { sha256 } from "./hash.ts";

/** The schema version that a database states. */
export type StoredSchema = Readonly<{
  /** Number of scripts that the database has run; 0 for a new database. */
  version: number;
  /** Fingerprint of these scripts; `undefined` when none is stored. */
  fingerprint: string | undefined;
}>;

const fingerprintDigits = 16;

/**
 * The fingerprint of scripts.
 *
 * @returns 16 hexadecimal digits; comments and white space do not change them.
 */
export function schemaFingerprint(scripts: readonly string[]): string {
  const text = scripts.map((script) => script.replace(/--.*$/gm, "").replace(/\s+/g, " ").trim());
  const digest = sha256(new TextEncoder().encode(JSON.stringify(text)));
  return Buffer.from(digest).toString("hex").slice(0, fingerprintDigits);
}

/** A phrase of both errors, and of no other error. */
const knownPhrase = "this build knows";

/**
 * Selects the scripts that a database must run to reach the newest version.
 *
 * @param scripts - All scripts in order; script n migrates version n to n + 1.
 * @throws Error when a newer program created the database, or a program with other scripts.
 */
export function scriptsToRun(scripts: readonly string[], stored: StoredSchema): readonly string[] {
  const { version, fingerprint } = stored;
  if (version > scripts.length)
    throw new Error(
      `a newer program created this database: its version is ${version}, ${knownPhrase} ${scripts.length}`,
    );
  const here = schemaFingerprint(scripts.slice(0, version));
  if (version === 0 || fingerprint === here) return scripts.slice(version);
  throw new Error(
    `an unreleased build of this program created this database: version ${version} has the fingerprint ` +
      `${fingerprint ?? "none"}, ${knownPhrase} ${here}; use that build, or start again with an empty ` +
      "folder (DATA_DIR) or, where the ledger is on PostgreSQL, an empty database (LEDGER_URL)",
  );
}

/** Whether an error, or its message alone (from a thread), reports an incompatible schema. */
export function isSchemaMismatch(error: Error): boolean {
  return error.message.includes(knownPhrase);
}
