/**
 * What PostgreSQL's errors mean for the ledger.
 * Source: PostgreSQL, appendix A (error codes), §13.5 (which of them to run again).
 * @module
 */
import { Failure } from "../../failures.ts";
import { isLate } from "./run-work.ts";
import type { Fault } from "./session.ts";

/** Another transaction was in the way: serialisation, deadlock, a lock that was not to be had in time. */
const conflictCodes = ["40001", "40P01", "55P03"];
/** A row that another transaction wrote after this one had looked for it in vain. */
const uniqueCode = "23505";
/** A write within a read; for a writer, a server that is not the first of its kind. */
const readOnlyCode = "25006";
/** Classes of the world's errors: connection, resources, limits, an operator's hand, the system, the server itself. */
const lossPattern = /^(08|25006|53|54|57|58|F0|XX)/;

/** What an error of a statement means for the transaction around it. */
export function sharedFaultOf(error: unknown): Fault {
  if (isLate(error)) return "lost";
  const state = sqlStateOf(error);
  if (state === undefined) return isClientError(error) ? "lost" : "own";
  if (conflictCodes.includes(state)) return "again";
  if (state === uniqueCode) return "unsure";
  return lossPattern.test(state) ? "lost" : "own";
}

/** The world's errors of a read become an expected failure; ours (a write within a read) stay what they are. */
export function explained(error: unknown): unknown {
  const fault = sharedFaultOf(error);
  if (isLate(error) || fault === "own" || fault === "unsure") return error;
  if (sqlStateOf(error) === readOnlyCode) return error;
  return unavailable("the ledger's database cannot be used", error);
}

/** The failure that callers see. */
export function unavailable(reason: string, cause: unknown): Failure {
  return new Failure("database_unavailable", { reason }, cause);
}

/** The five characters of a server's error; `undefined` when it is none. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error && "errno" in error)) return undefined;
  return typeof error.errno === "string" && /^[0-9A-Z]{5}$/.test(error.errno) ? error.errno : undefined;
}

/** Bun's own: refused, closed, timed out. */
function isClientError(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^ERR_POSTGRES_/.test(String(error.code));
}
