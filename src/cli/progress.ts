/**
 * Progress of long work: a bar with rate and time left on a terminal, a line now and then elsewhere.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { printable } from "../lib/printable.ts";
import { bytesText, durationText } from "./quantities.ts";

/** Where progress is shown. */
export type ProgressScreen = Readonly<{
  write: (text: string) => void;
  isTerminal: boolean;
  /** Characters a line; only of a terminal. */
  columns: number;
}>;

/** Tells how far work is. */
export type Progress = Readonly<{
  /** So many more bytes are done by work. */
  add: (bytes: number) => void;
  /** So many bytes need not be done: they count as done, and say nothing of the rate. */
  pass: (bytes: number) => void;
  /** One more file is done. */
  count: () => void;
  /** Says something in between, on a line of its own. */
  say: (text: string) => void;
  /** Takes the bar away, or says where it ended. */
  end: () => void;
}>;

/** What there is to do. */
export type ProgressOptions = Readonly<{
  screen: ProgressScreen;
  clock: Clock;
  /** What is done: "uploading". */
  verb: string;
  bytesTotal: number;
  filesTotal: number;
}>;

/** A terminal is painted no more often. Milliseconds. */
const paintEveryMs = 100;

/** Elsewhere a line is written no more often. Milliseconds. */
const lineEveryMs = 5_000;

const usualColumns = 80;
const barWidthMax = 40;
const eraseLine = "\r\x1b[K";

/** Standard error: what a command answers goes to standard output. */
export function errorScreen(): ProgressScreen {
  const { stderr } = process;
  return {
    write: (text) => stderr.write(text),
    isTerminal: stderr.isTTY === true,
    columns: stderr.columns ?? usualColumns,
  };
}

/** Begins to show progress. */
export function createProgress({ screen, clock, verb, bytesTotal, filesTotal }: ProgressOptions): Progress {
  const startedAt = clock();
  let done = 0;
  let passed = 0;
  let files = 0;
  let shownAt = screen.isTerminal ? 0 : startedAt;

  function stateText(): string {
    // How large the items' headers are is known only roughly before they are signed.
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

/** A bar where there is room for one; never a line that wraps, for that could not be painted over. */
function fit(text: string, share: number, columns: number): string {
  const width = Math.min(barWidthMax, columns - text.length - 4);
  if (width < 10) return text.slice(0, Math.max(0, columns - 1));
  const full = Math.min(width, Math.round(share * width));
  return `[${"#".repeat(full)}${"-".repeat(width - full)}] ${text}`;
}
