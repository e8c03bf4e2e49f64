/**
 * Text for a terminal: quantities, rows, confirmation questions and progress.
 * @module
 */
import { createInterface } from "node:readline/promises";
import type { Clock } from "../lib/clock.ts";
import { printable } from "../lib/printable.ts";
import { bytesText, durationText } from "../lib/quantity-text.ts";

/** A name and a value. */
export type PageRow = readonly [string, string];

/** One line for each row, values aligned. Control characters are escaped. @param width - Characters of the names. */
export function rowsText(rows: readonly PageRow[], width: number): string {
  return rows.map(([name, value]) => `  ${printable(name).padEnd(width)} ${printable(value)}\n`).join("");
}

export type Terminal = Readonly<{
  /** Whether input and output both are a terminal. */
  isTerminal: boolean;
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}>;

/** Timeout of a question. Milliseconds. */
const responseMsMax = 5 * 60_000;

/** The terminal of this process. Questions go to standard error: standard output is for results. */
export function ownTerminal(): Terminal {
  const { stdin: input, stderr: output } = process;
  return { isTerminal: input.isTTY === true && output.isTTY === true, input, output };
}

/**
 * Asks for confirmation. Only `y` and `yes` mean yes; a timeout and the end of the input mean no.
 *
 * @param question - Without " [y/N] ".
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
      output.write(`\nno response${late.signal.aborted ? ` in ${durationText(waitMs)}` : ""}\n`);
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

export type ProgressScreen = Readonly<{
  write: (text: string) => void;
  isTerminal: boolean;
  /** Characters per line, for a terminal. */
  columns: number;
}>;

export type Progress = Readonly<{
  /** Counts processed bytes. */
  add: (bytes: number) => void;
  /** Counts skipped bytes: they are done, but do not count for the rate. */
  pass: (bytes: number) => void;
  /** Counts a finished file. */
  count: () => void;
  /** Prints a message on its own line. */
  say: (text: string) => void;
  /** Removes the bar. */
  end: () => void;
}>;

export type ProgressOptions = Readonly<{
  screen: ProgressScreen;
  clock: Clock;
  /** For example "uploading". */
  verb: string;
  bytesTotal: number;
  filesTotal: number;
}>;

/** Minimum interval between updates of a terminal. Milliseconds. */
const paintEveryMs = 100;

/** Minimum interval between lines elsewhere. Milliseconds. */
const lineEveryMs = 5_000;

const columnsDefault = 80;
const barWidthMax = 40;
const eraseLine = "\r\x1b[K";

/** Standard error: standard output is for results. */
export function errorScreen(): ProgressScreen {
  const { stderr } = process;
  return {
    write: (text) => stderr.write(text),
    isTerminal: stderr.isTTY === true,
    columns: stderr.columns ?? columnsDefault,
  };
}

/** Shows progress: a bar with rate and remaining time on a terminal, a line every few seconds elsewhere. */
export function createProgress({ screen, clock, verb, bytesTotal, filesTotal }: ProgressOptions): Progress {
  const startedAt = clock();
  let done = 0;
  let passed = 0;
  let files = 0;
  let shownAt = screen.isTerminal ? 0 : startedAt;

  function stateText(): string {
    // The size of the items' headers is only an estimate before they are signed.
    const handled = Math.min(bytesTotal, done + passed);
    const share = bytesTotal === 0 ? 1 : handled / bytesTotal;
    const elapsedMs = Math.max(1, clock() - startedAt);
    const rate = (done * 1_000) / elapsedMs;
    const left = bytesTotal - handled;
    const percent = `${Math.floor(share * 100)} %`;
    const count = filesTotal > 1 ? `${files} of ${filesTotal} files, ` : "";
    const size = `${count}${bytesText(handled)} of ${bytesText(bytesTotal)}`;
    const pace = done === 0 ? "" : `, ${bytesText(Math.round(rate))}/s, ${durationText((left / rate) * 1_000)} left`;
    const text = `${verb} ${percent}, ${size}${pace}`;
    return screen.isTerminal ? fit(text, share, screen.columns) : text;
  }

  function show(): void {
    const now = clock();
    if (now - shownAt < (screen.isTerminal ? paintEveryMs : lineEveryMs)) return;
    shownAt = now;
    screen.write(screen.isTerminal ? `${eraseLine}${stateText()}` : `${stateText()}\n`);
  }

  return {
    add: (bytes) => {
      done += bytes;
      show();
    },
    pass: (bytes) => {
      passed += bytes;
      show();
    },
    count: () => {
      files += 1;
      show();
    },
    say: (text) => {
      screen.write(`${screen.isTerminal ? eraseLine : ""}${printable(text)}\n`);
      if (screen.isTerminal) shownAt = 0;
    },
    end: () => {
      if (screen.isTerminal) screen.write(eraseLine);
    },
  };
}

export type Bar = Readonly<{
  /** @param share - 0 to 1. */
  show: (share: number, text: string) => void;
  /** Removes the bar. */
  end: () => void;
}>;

/** Shows a bar with a text on a terminal, a line every few seconds elsewhere. */
export function createBar(screen: ProgressScreen, clock: Clock): Bar {
  let shownAt = screen.isTerminal ? 0 : clock();
  return {
    show: (share, text) => {
      const now = clock();
      if (now - shownAt < (screen.isTerminal ? paintEveryMs : lineEveryMs)) return;
      shownAt = now;
      screen.write(screen.isTerminal ? `${eraseLine}${fit(text, share, screen.columns)}` : `${text}\n`);
    },
    end: () => {
      if (screen.isTerminal) screen.write(eraseLine);
    },
  };
}

/** Adds a bar if the line is wide enough; the text never wraps, because a wrapped line cannot be overwritten. */
function fit(text: string, share: number, columns: number): string {
  const width = Math.min(barWidthMax, columns - text.length - 4);
  if (width < 10) return text.slice(0, Math.max(0, columns - 1));
  const full = Math.min(width, Math.round(share * width));
  return `[${"#".repeat(full)}${"-".repeat(width - full)}] ${text}`;
}
