/**
 * Errors that only report that the client disconnected.
 * @module
 */
import { Failure } from "../failures.ts";

/** Status of a request whose client disconnected before the response; only metrics and the log use it. */
export const clientClosedStatus = 499;

/**
 * Whether an error only reports that the client disconnected. Defects are logged even then.
 *
 * @param error - A body that ended early is an AbortError of the runtime; the signal may be aborted only after it.
 */
export function reportsDisconnect(error: unknown, { aborted, reason }: AbortSignal): boolean {
  if (isClosedConnection(error)) return true;
  if (!aborted) return false;
  const isAbort = error instanceof Error && error.name === "AbortError";
  return isAbort || error === reason || error instanceof Failure;
}

/** The runtime's error for a request body whose connection was closed (Bun 1.4.5). */
function isClosedConnection(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError" && error.message === "The connection was closed.";
}
