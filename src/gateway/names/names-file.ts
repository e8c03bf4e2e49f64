/**
 * The file of the operator's names, read again when it changes. An invalid file leaves the previous names in force.
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import type { NameRecord } from "../../chain/name-gateways.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Name } from "./name.ts";
import { type GivenNames, readNamesText } from "./names-text.ts";

/** Record of a name; absent when the file has the base name without this undername. */
export type FileResponse = Readonly<{ kind: "resolved"; record: NameRecord }> | Readonly<{ kind: "absent" }>;

export type NamesFile = Readonly<{
  /** Looks up a name; `undefined` when the file does not have its base name. */
  find: (name: Name) => FileResponse | undefined;
  /** Why the present file is not in force; empty while it is. */
  reasons: () => readonly string[];
}>;

/** Largest file; it is parsed in one go on the main thread. Bytes. */
export const namesFileBytesMax = 2 ** 20;

/** Shortest interval between checks of the file. Milliseconds. */
const lookEveryMs = 1_000;

/**
 * Opens a file of names.
 *
 * @throws Failure `malformed_input` with a reason when it cannot be read now.
 */
export function createNamesFile(path: string, clock: Clock, log: Log): NamesFile {
  let seen: string | undefined = markOf(path);
  let names = readNamesFile(path);
  let lookedAt = clock();
  let fault: string | undefined;

  const readAgain = (): void => {
    try {
      names = readNamesFile(path);
      fault = undefined;
      log.info("names were read again", { path, names: names.records.size });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (isOfSystem(error)) seen = undefined;
      const before = fault;
      fault = `NAMES_FILE could not be read again, its former names are in force: ${error.context["reason"]}.`;
      if (fault !== before) log.error("names could not be read again", { path, error });
    }
  };

  const look = (): void => {
    const now = clock();
    if (now >= lookedAt && now < lookedAt + lookEveryMs) return;
    lookedAt = now;
    const mark = markOf(path);
    if (mark === seen) return;
    seen = mark;
    readAgain();
  };

  return {
    find: (name) => {
      look();
      const record = names.records.get(name.text);
      if (record !== undefined) return { kind: "resolved", record };
      return names.bases.has(name.base) ? { kind: "absent" } : undefined;
    },
    reasons: () => {
      look();
      return fault === undefined ? [] : [fault];
    },
  };
}

/** Whether the system did not give the file, which it may give later without a change of the file. */
function isOfSystem({ cause }: Failure): boolean {
  return cause instanceof Error && "syscall" in cause;
}

/** Reads the file once. @throws Failure `malformed_input` with the reason. */
export function readNamesFile(path: string): GivenNames {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > namesFileBytesMax) throw new Error(`it has ${size} bytes, at most ${namesFileBytesMax} are read`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Failure("malformed_input", { reason }, error);
  }
  return readNamesText(text);
}

/** Fingerprint of the file; changes also when the file is replaced. */
function markOf(path: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch (error) {
    // The read that follows reports why the file is missing.
    if (error instanceof Error && "syscall" in error) return "";
    throw error;
  }
}
