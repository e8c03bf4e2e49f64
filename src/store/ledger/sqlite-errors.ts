/**
 * What SQLite's errors mean for the ledger.
 * @module
 */
import { Failure } from "../../failures.ts";

/** Tells whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_BUSY/.test(codeOf(error));
}

/** Tells whether what is on the disk is unknown from now on. */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(codeOf(error));
}

/** The world's errors become an expected failure; ours (a constraint, a write within a read) stay what they are. */
export function explained(error: unknown): unknown {
  if (!/^SQLITE_(BUSY|IOERR|CORRUPT|NOTADB|FULL|CANTOPEN|NOMEM|PROTOCOL)/.test(codeOf(error))) return error;
  return new Failure("database_unavailable", { reason: "the ledger's file cannot be used" }, error);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
