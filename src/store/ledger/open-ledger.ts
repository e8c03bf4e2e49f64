/**
 * Opens the ledger on PostgreSQL or SQLite, as the settings say.
 * @module
 */
import type { LedgerDatabase } from "./ledger-database.ts";
import { openPostgresLedger } from "./postgres-ledger.ts";
import { openSqliteLedger } from "./sqlite-ledger.ts";

/** Where a ledger is. */
export type LedgerPlace = Readonly<{
  /** `postgres://…`; `undefined` is the file. */
  url: string | undefined;
  /** The SQLite file. */
  path: string;
}>;

/**
 * Opens the ledger and brings it to the newest version.
 *
 * @throws Error when it cannot be reached, is not a ledger, or a newer program wrote it.
 */
export function openLedger({ url, path }: LedgerPlace): Promise<LedgerDatabase> {
  return url === undefined ? openSqliteLedger({ path }) : openPostgresLedger(url);
}
