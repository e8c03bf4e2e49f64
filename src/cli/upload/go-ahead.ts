/**
 * Whether an upload is meant: what is uploaded is public and stays for ever, so a terminal is asked before very many
 * files, very many bytes, or a private key.
 * @module
 */

import { printable } from "../../lib/printable.ts";
import { bytesText, countText } from "../quantities.ts";
import { askYesNo, type Terminal } from "../question.ts";
import type { LocalFiles } from "./files.ts";

/** More than this is seldom meant without a thought. */
const filesUnaskedMax = 1_000;
const bytesUnaskedMax = 2 ** 30;

/**
 * Asks where somebody can be asked. Without a terminal, as in a script, it says what is uploaded and goes on.
 *
 * @param yes - Whether the answer was given on the command line.
 */
export async function isWanted({ kind, files, isKey }: LocalFiles, yes: boolean, terminal: Terminal): Promise<boolean> {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const isLarge = files.length > filesUnaskedMax || size > bytesUnaskedMax;
  if (!isLarge && !isKey) return true;
  const name = kind === "file" ? printable(files[0]?.path ?? "") : countText(files.length, "file");
  const what = `${name}, ${bytesText(size)}${isKey ? ", a private key," : ""}`;
  const says = `${what} will be public, and cannot be removed.`;
  if (yes) return true;
  if (!terminal.isTerminal) {
    terminal.output.write(`${says}\n`);
    return true;
  }
  if (await askYesNo(terminal, `${says} Upload?`)) return true;
  terminal.output.write("nothing was uploaded\n");
  return false;
}
