/**
 * An open ledger, put together from its two sides, whichever database they are on.
 * @module
 */
import type { LedgerDatabase } from "./database.ts";
import type { Reads } from "./reads.ts";
import type { Writes } from "./writes.ts";

/** Puts it together. @param closeAll - Closes what both sides stand on, once nothing is under way. */
export function openedLedger(
  kind: LedgerDatabase["kind"],
  writes: Writes,
  reads: Reads,
  closeAll: () => Promise<void>,
): LedgerDatabase {
  let closed: Promise<void> | undefined;
  const close = async () => {
    await Promise.all([writes.finish(), reads.finish()]);
    await closeAll();
  };
  return {
    kind,
    write: writes.write,
    read: reads.read,
    faults: writes.faults,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
