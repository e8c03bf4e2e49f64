/**
 * A question to whoever sits at the terminal, answered yes or no.
 * @module
 */
import { createInterface } from "node:readline/promises";
import { durationText } from "./quantities.ts";

/** Where a question is asked. */
export type Terminal = Readonly<{
  /** Whether a person can be asked: both what is read and what is written are a terminal. */
  isTerminal: boolean;
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}>;

/** How long an answer is waited for. Milliseconds. */
const responseMsMax = 5 * 60_000;

/** The terminal of this process. Questions go to standard error: standard output is for what a command answers. */
export function ownTerminal(): Terminal {
  const { stdin: input, stderr: output } = process;
  return { isTerminal: input.isTTY === true && output.isTTY === true, input, output };
}

/**
 * Asks. Only `y` and `yes` mean yes; no answer in time, and an end of the input, mean no.
 *
 * @param question - Without its " [y/N] ".
 */
export async function askYesNo(
  { input, output }: Terminal,
  question: string,
  waitMs: number = responseMsMax,
): Promise<boolean> {
  // The terminal stays as it is, so that Ctrl-C ends the program as usual.
  const lines = createInterface({ input, terminal: false });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), waitMs);
  try {
    output.write(`${question} [y/N] `);
    const response = await Promise.race([firstLine(lines), ended(late.signal)]);
    if (response === undefined)
      output.write(`\nno answer${late.signal.aborted ? ` in ${durationText(waitMs)}` : ""}\n`);
    return /^y(es)?$/i.test(response?.trim() ?? "");
  } finally {
    clearTimeout(timer);
    lines.close();
  }
}

type Lines = ReturnType<typeof createInterface>;

function firstLine(lines: Lines): Promise<string | undefined> {
  return new Promise((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(undefined));
  });
}

function ended(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));
}
