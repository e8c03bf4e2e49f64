/**
 * Opening the ledger where the settings say it is.
 * @module
 */
import type { LedgerDatabase } from "./database.ts";
import { openPostgresLedger } from "./postgres.ts";
import { openSqliteLedger } from "./sqlite.ts";

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
 * @throws Error when it cannot be reached, is no ledger, or a newer program's.
 */
export function openLedger({ url, path }: LedgerPlace): Promise<LedgerDatabase> {
  return url === undefined ? openSqliteLedger({ path }) : openPostgresLedger(url);
}
