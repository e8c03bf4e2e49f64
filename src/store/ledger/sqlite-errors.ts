/**
 * What SQLite's errors mean for the ledger.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Fault } from "./session.ts";

/** Errors after which what is on the disk is unknown. */
const damagePattern = /^SQLITE_(IOERR|CORRUPT|NOTADB)/;
/** Errors of the world that leave the file as it was. */
const lossPattern = /^SQLITE_(BUSY|FULL|CANTOPEN|NOMEM|PROTOCOL)/;

/** Tells whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}

/** What an error of a statement means for the transaction around it. */
export function sharedFaultOf(error: unknown): Fault {
  const code = codeOf(error);
  if (damagePattern.test(code)) return "damage";
  // A full disk may have ended the transaction: there is no savepoint to go back to.
  return lossPattern.test(code) ? "lost" : "own";
}

/** The world's errors of a read become an expected failure; ours (a write within a read) stay what they are. */
export function explained(error: unknown): unknown {
  if (sharedFaultOf(error) === "own") return error;
  return new Failure("database_unavailable", { reason: "the ledger's file cannot be used" }, error);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
