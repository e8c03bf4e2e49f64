/**
 * Standard output of the commands, which print a result and end.
 * @module
 */
import { exitCodes } from "../app/complaints.ts";

/**
 * Prints the result of a command to standard output.
 *
 * Where the reader, such as `head`, has closed it, the command ends as failed and says nothing, as other programs do
 * that a closed pipe ends: its result was not read.
 */
export function print(text: string): void {
  const { stdout } = process;
  if (stdout.listenerCount("error") === 0) stdout.on("error", endPrinting);
  stdout.write(text);
}

function endPrinting(error: Error): void {
  if (!isClosedPipe(error)) process.stderr.write(`standard output could not be written: ${error.message}\n`);
  process.exit(exitCodes.failed);
}

/** Whether the reader of the output, such as `head`, has closed it. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
