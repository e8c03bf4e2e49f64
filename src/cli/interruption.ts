/**
 * Ctrl-C in commands that a repeated run resumes.
 * @module
 */
import { exitCodes } from "../app/complaints.ts";

const interruption = new Error("stopped; run the command again to continue");

/** Aborts at SIGINT, once. @returns Removes the handler. */
export function stopAtInterrupt(stop: AbortController): () => void {
  const onInterrupt = () => stop.abort(interruption);
  process.once("SIGINT", onInterrupt);
  return () => process.off("SIGINT", onInterrupt);
}

/** The exit code of a command that ended with an error. */
export function failureCodeOf({ reason }: AbortSignal): number {
  return reason === interruption ? exitCodes.interrupted : exitCodes.failed;
}
