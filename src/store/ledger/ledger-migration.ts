/**
 * Brings a ledger to the newest version of its schema.
 * @module
 */
import { schemaFingerprint, scriptsToRun } from "../../lib/schema-scripts.ts";
import type { Tx } from "./ledger-database.ts";
import { ledgerSchema } from "./ledger-schema.ts";

/** The statements of a script, one by one. */
function statementsOf(script: string): string[] {
  return script
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}

/**
 * Brings a ledger to the newest version.
 *
 * @param written - Converts a statement to the database's dialect.
 * @param scripts - Those of this program; tests have more.
 * @throws Error when a newer program, or a program with other scripts, wrote the ledger.
 */
export async function migrate(
  tx: Tx,
  written: (statement: string) => string = (statement) => statement,
  scripts: readonly string[] = ledgerSchema,
): Promise<void> {
  await tx.run("CREATE TABLE IF NOT EXISTS ledger_version (version BIGINT NOT NULL)");
  await tx.run("CREATE TABLE IF NOT EXISTS ledger_fingerprint (fingerprint TEXT NOT NULL)");
  const row = await tx.get<{ version: bigint }>("SELECT version FROM ledger_version");
  const made = await tx.get<{ fingerprint: string }>("SELECT fingerprint FROM ledger_fingerprint");
  const version = Number(row?.version ?? 0n);
  const toRun = scriptsToRun(scripts, { version, fingerprint: made?.fingerprint });
  if (toRun.length === 0) return;
  for (const script of toRun) for (const statement of statementsOf(script)) await tx.run(written(statement));
  await tx.run("DELETE FROM ledger_version");
  await tx.run("INSERT INTO ledger_version (version) VALUES (?)", BigInt(scripts.length));
  await tx.run("DELETE FROM ledger_fingerprint");
  await tx.run("INSERT INTO ledger_fingerprint (fingerprint) VALUES (?)", schemaFingerprint(scripts));
}
