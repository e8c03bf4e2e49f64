/**
 * Opening a ledger by its place, in whichever process: a file's path, or a `postgres://` URL.
 * @module
 */
import type { LedgerDatabase } from "../../src/store/ledger/ledger-database.ts";
import { openLedger } from "../../src/store/ledger/open-ledger.ts";

/** Opens it. */
export function openPlace(place: string): Promise<LedgerDatabase> {
  const isUrl = place.startsWith("postgres");
  return openLedger({ url: isUrl ? place : undefined, path: place });
}
