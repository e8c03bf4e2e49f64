/**
 * The ledger's tables: the scripts of all who keep state beside the money, in order.
 *
 * The n-th script takes a ledger from version n to n + 1, on SQLite and PostgreSQL alike. Statements end with `;` at
 * the end of a line. Once released, scripts are only added at the end.
 * @module
 */
import type { Tx } from "./database.ts";
import { approvalTables } from "./schema/approvals.ts";
import { bundleTables } from "./schema/bundles.ts";
import { giftTables } from "./schema/gifts.ts";
import { ledgerTables } from "./schema/ledger.ts";
import { multipartTables } from "./schema/multipart.ts";
import { nonceTables } from "./schema/nonces.ts";
import { paymentTables } from "./schema/payments.ts";
import { promoTables } from "./schema/promo.ts";
import { quoteTables } from "./schema/quotes.ts";
import { reservationTables } from "./schema/reservations.ts";
import { strangersNonceTables } from "./schema/strangers-nonces.ts";
import { uploadTables } from "./schema/uploads.ts";
import { x402Tables } from "./schema/x402.ts";

export const ledgerSchema: readonly string[] = [
  ledgerTables,
  approvalTables,
  reservationTables,
  nonceTables,
  quoteTables,
  giftTables,
  promoTables,
  paymentTables,
  uploadTables,
  bundleTables,
  multipartTables,
  x402Tables,
  strangersNonceTables,
];

/** The statements of a script, one by one. */
export function statementsOf(script: string): string[] {
  return script
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}

/**
 * Brings a ledger to the newest version.
 *
 * @param written - A statement as the database is to be told it.
 * @throws Error when a newer program wrote it.
 */
export async function migrate(
  tx: Tx,
  written: (statement: string) => string = (statement) => statement,
): Promise<void> {
  await tx.run("CREATE TABLE IF NOT EXISTS ledger_version (version BIGINT NOT NULL)");
  const row = await tx.get<{ version: bigint }>("SELECT version FROM ledger_version");
  const found = Number(row?.version ?? 0n);
  const newest = ledgerSchema.length;
  if (found > newest) throw new Error(`the ledger's version is ${found}, this program knows ${newest}`);
  if (found === newest) return;
  for (const script of ledgerSchema.slice(found))
    for (const statement of statementsOf(script)) await tx.run(written(statement));
  const sql =
    row === undefined
      ? "INSERT INTO ledger_version (version) VALUES (?)"
      : "UPDATE ledger_version SET version = ?";
  await tx.run(sql, BigInt(newest));
}
