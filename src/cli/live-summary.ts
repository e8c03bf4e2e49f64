/**
 * The live summary of `cairn dev`: the rows of `cairn status` at the end of the terminal, while lines of the log pass
 * above them.
 * @module
 */
import type { OpenGateway } from "../app/open-gateway.ts";
import type { Log } from "../lib/log.ts";
import { openBackgroundLoop } from "../lib/loop.ts";
import { pageOf } from "./status.ts";

/** Text at the end of a terminal that is replaced; lines are written above it. */
export type LiveText = Readonly<{
  /** Writes a complete line, with its newline. */
  line: (line: string) => void;
  /** Replaces the text; every line of it is cut off at the width of the terminal. */
  show: (text: string) => void;
  /** Leaves the text where it is; later lines follow it. */
  end: () => void;
}>;

/** The size of a terminal, characters and lines; it changes when the window does. */
export type TerminalSize = () => Readonly<{ columns: number; rows: number }>;

/** Removes the last lines of a terminal. */
const eraseLines = (count: number) => (count === 0 ? "" : `\x1b[${count}A\x1b[J`);

/** @param write - Writes to the terminal in the order of the calls. */
export function createLiveText(write: (text: string) => void, size: TerminalSize): LiveText {
  let shown: readonly string[] = [];
  return {
    line: (line) => write(`${eraseLines(shown.length)}${line}${shown.join("")}`),
    show: (text) => {
      const { columns, rows } = size();
      const lines = text.split("\n").slice(0, -1);
      // Lines above the first one of the screen cannot be erased.
      const next = lines.slice(0, Math.max(0, rows - 1)).map((line) => `${line.slice(0, columns - 1)}\n`);
      if (next.join("") === shown.join("")) return;
      write(`${eraseLines(shown.length)}${next.join("")}`);
      shown = next;
    },
    end: () => {
      shown = [];
    },
  };
}

/** Time between two readings. Milliseconds. */
const intervalMs = 2_000;

/** Shows the status of a gateway until it is closed. */
export function openLiveSummary(
  { status, health }: Pick<OpenGateway, "status" | "health">,
  live: LiveText,
  log: Log,
): Readonly<{ close: () => Promise<void> }> {
  const show = async () => {
    const { status: state, reasons } = health.record();
    live.show(`\n${pageOf({ health: { status: state, reasons }, operator: await status() })}`);
    return intervalMs;
  };
  const loop = openBackgroundLoop("live summary", show, (error) => {
    log.debug("the status could not be read", { error });
    return intervalMs;
  });
  return {
    close: async () => {
      live.end();
      await loop.close();
    },
  };
}
