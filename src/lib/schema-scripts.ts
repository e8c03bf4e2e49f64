/**
 * The scripts that make a database's tables, and which of them a database that exists has yet to run.
 *
 * A script that was released is never edited. One that was not may be, and a database that was made by it before has
 * then the same version and other tables: a fingerprint of the scripts is kept beside the version, so that this is
 * told when it is opened, and not by a statement that fails some day.
 * @module
 */
import { sha256 } from "./hash.ts";

/** What a database says of its tables. */
export type StoredSchema = Readonly<{
  /** How many scripts it has run; 0 when it is new. */
  version: number;
  /** Of those scripts; `undefined` where none was kept. */
  fingerprint: string | undefined;
}>;

const fingerprintDigits = 16;

/**
 * Names what scripts make.
 *
 * @returns 16 hexadecimal digits; comments and white space do not change them.
 */
export function schemaFingerprint(scripts: readonly string[]): string {
  const text = scripts.map((script) => script.replace(/--.*$/gm, "").replace(/\s+/g, " ").trim());
  const digest = sha256(new TextEncoder().encode(JSON.stringify(text)));
  return Buffer.from(digest).toString("hex").slice(0, fingerprintDigits);
}

/** What both refusals say, and nothing else does. */
const refusal = "this build knows";

/**
 * Chooses what a database has yet to run to be of the newest version.
 *
 * @param scripts - All of them, in order; the n-th takes it from version n to n + 1.
 * @throws Error when a newer program made it, or scripts that are not the first ones of these.
 */
export function scriptsToRun(scripts: readonly string[], stored: StoredSchema): readonly string[] {
  const { version, fingerprint } = stored;
  if (version > scripts.length)
    throw new Error(`a newer program made it: its version is ${version}, ${refusal} ${scripts.length}`);
  const here = schemaFingerprint(scripts.slice(0, version));
  if (version === 0 || fingerprint === here) return scripts.slice(version);
  throw new Error(
    `a build of this program that was not released made its tables: version ${version} has the fingerprint ` +
      `${fingerprint ?? "none"}, ${refusal} ${here}; use the build that made it, or begin anew with an empty ` +
      "folder (DATA_DIR) or, where the ledger is on PostgreSQL, an empty database (LEDGER_URL)",
  );
}

/** Whether an error, or what it was made of, is such a refusal. One from a thread has its message, and no more. */
export function isSchemaRefusal(error: Error): boolean {
  return error.message.includes(refusal);
}
