/**
 * The files of an upload: one file, or all of a folder by their paths in it.
 *
 * What is uploaded is public for ever, so a folder is taken without its keys, its hidden names, and whatever its links
 * reach outside of it. A file is examined through the handle that opened it, and the same file is read later, so that
 * a link that is put in its place meanwhile leads nowhere.
 * @module
 */
import { type Dirent, existsSync, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import { misuse } from "../../app/complaints.ts";
import { examineFile, type OpenedFile, whyUnreadable } from "./opened-file.ts";
import type { KeyTest } from "./private-keys.ts";

/** A file that is uploaded. */
export type LocalFile = OpenedFile &
  Readonly<{
    /** Its path in the folder, with forward slashes; of a lone file its name. */
    path: string;
  }>;

/** Why a path is left out. */
export type LeftOutReason =
  /** Its name, or that of what a link leads to, begins with a dot. */
  | "hidden"
  /** A private key, the wallet, the data folder. */
  | "key"
  /** A link that leads out of the folder. */
  | "outside"
  /** A link that leads back to a folder around it, or to itself. */
  | "loop"
  /** A link to nothing. */
  | "broken"
  /** Neither a file nor a folder. */
  | "special";

/** A path that is left out. */
export type LeftOut = Readonly<{ path: string; reason: LeftOutReason }>;

/** What was found. */
export type LocalFiles = Readonly<{
  kind: "file" | "folder";
  /** In the order of their paths; at least one. */
  files: readonly LocalFile[];
  /** In the order of their paths. */
  leftOut: readonly LeftOut[];
  /** Whether the one file is a private key: it was named, so it is not left out. */
  isKey: boolean;
}>;

/** A manifest takes about this many paths. */
const filesMax = 500_000;

/** Links can lead to the same folders again and again: names that are looked at, and links to folders. */
const entriesMax = 2_000_000;
const linkedFoldersMax = 10_000;

/** Below this deep nobody keeps files. */
const depthMax = 64;

/** Hidden, and yet part of a site. */
const publicNames: readonly string[] = [".well-known"];

/** What of a folder is not uploaded. */
export type LeaveOut = Readonly<{
  /** Names that begin with a dot: what is uploaded stays for ever, and keys lie in such. */
  hidden: boolean;
  /** Links that lead out of the folder. */
  outside: boolean;
  /** Files and folders, absolute: the data folder, the wallet itself; by whatever link they are reached. */
  paths: readonly string[];
  isKey: KeyTest;
}>;

/**
 * Lists what is to be uploaded.
 *
 * @throws Misuse when there is nothing, too much, or what cannot be read.
 */
export function listLocalFiles(path: string, leaveOut: LeaveOut): LocalFiles {
  // An empty variable in a script must not upload the folder that it stands in.
  if (path === "") throw misuse("the path is empty: name a file or a folder; the one you are in is .");
  const real = realPathOf(path);
  const isSecret = secretsOf(leaveOut.paths);
  if (isSecret(real)) throw misuse(`${path} holds keys, and what is uploaded is public and stays for ever`);
  const stat = statSync(real);
  if (stat.isFile()) {
    const name = basename(resolve(path));
    const { isKey, ...file } = examineFile(real, name, leaveOut.isKey);
    return { kind: "file", files: [{ ...file, path: name }], leftOut: [], isKey };
  }
  if (!stat.isDirectory()) throw misuse(`${path} is neither a file nor a folder`);
  const { files, leftOut } = walk(real, { ...leaveOut, isSecret, root: real });
  if (files.length === 0) throw misuse(`${path} holds no files${leftOutText(leftOut)}`);
  return { kind: "folder", files: files.sort(byPath), leftOut: leftOut.sort(byPath), isKey: false };
}

/** Where a path leads that was typed. */
function realPathOf(path: string): string {
  try {
    return realpathSync(resolve(path));
  } catch (error) {
    const code = codeOf(error);
    if (code === "ELOOP") throw misuse(`${path} is a link that leads back to itself`);
    if (code === "ENOENT" || code === "ENOTDIR") throw misuse(`${path} is neither a file nor a folder`);
    throw misuse(`${path} cannot be read: ${whyUnreadable(error)}`);
  }
}

/** A folder on the way: its real path, what precedes the paths in it, and the real paths around it, itself last. */
type Step = Readonly<{ folder: string; prefix: string; around: readonly string[] }>;

type Rules = LeaveOut & Readonly<{ root: string; isSecret: (real: string) => boolean }>;

type Found = Readonly<{ files: LocalFile[]; leftOut: LeftOut[] }>;

/** What an entry is: a folder to go into, a file to take, or why it is left out. */
type Looked =
  | Readonly<{ kind: "folder" | "file"; real: string }>
  | Readonly<{ kind: "left out"; reason: LeftOutReason }>;

function walk(root: string, rules: Rules): Found {
  const found: Found = { files: [], leftOut: [] };
  const steps: Step[] = [{ folder: root, prefix: "", around: [root] }];
  const seen = { entries: 0, linkedFolders: 0 };
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (step.around.length > depthMax) throw misuse(`${step.folder} is more than ${depthMax} folders deep`);
    for (const entry of entriesOf(step.folder)) {
      const next = takeEntry(entry, step, rules, found);
      if (next !== undefined) steps.push(next);
      seen.entries += 1;
      if (next !== undefined && entry.isSymbolicLink()) seen.linkedFolders += 1;
      refuseTooMuch(found.files.length, seen);
    }
  }
  return found;
}

function refuseTooMuch(files: number, seen: Readonly<{ entries: number; linkedFolders: number }>): void {
  if (files > filesMax) throw misuse(`there are more than ${filesMax} files`);
  if (seen.entries > entriesMax) throw misuse(`there are more than ${entriesMax} files and folders`);
  if (seen.linkedFolders > linkedFoldersMax)
    throw misuse(`${linkedFoldersMax} links to folders were followed: they lead to the same ones many times`);
}

/** Takes an entry into what is found. @returns The step into it, when it is a folder. */
function takeEntry(entry: Dirent, step: Step, rules: Rules, found: Found): Step | undefined {
  const path = `${step.prefix}${entry.name}`;
  const looked = look(entry, step, rules);
  if (looked.kind === "folder")
    return { folder: looked.real, prefix: `${path}/`, around: [...step.around, looked.real] };
  if (looked.kind === "left out") found.leftOut.push({ path, reason: looked.reason });
  else takeFile(looked.real, path, rules, found);
  return undefined;
}

function takeFile(real: string, path: string, rules: Rules, { files, leftOut }: Found): void {
  const { isKey, ...file } = examineFile(real, basename(path), rules.isKey);
  if (isKey) leftOut.push({ path, reason: "key" });
  else files.push({ ...file, path });
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    throw misuse(`${folder} cannot be read: ${whyUnreadable(error)}`);
  }
}

function look(entry: Dirent, { folder, around }: Step, rules: Rules): Looked {
  const leftOut = (reason: LeftOutReason): Looked => ({ kind: "left out", reason });
  if (isHidden(entry.name, rules)) return leftOut("hidden");
  const place = join(folder, entry.name);
  const led = entry.isSymbolicLink() ? follow(place) : ({ real: place } as const);
  if ("reason" in led) return leftOut(led.reason);
  const { real } = led;
  if (around.includes(real)) return leftOut("loop");
  if (rules.isSecret(real)) return leftOut("key");
  const barred = entry.isSymbolicLink() ? targetFault(real, rules) : undefined;
  if (barred !== undefined) return leftOut(barred);
  const stat = statOf(real);
  if (stat === undefined) return leftOut("broken");
  if (stat.isDirectory()) return { kind: "folder", real };
  return stat.isFile() ? { kind: "file", real } : leftOut("special");
}

/** Why what a link leads to is left out, if it is: a link does not make public what its target's name hides. */
function targetFault(real: string, rules: Rules): LeftOutReason | undefined {
  const isInside = isWithin(rules.root, real);
  if (!isInside && rules.outside) return "outside";
  const names = isInside ? relative(rules.root, real).split(sep) : [basename(real)];
  return names.some((name) => isHidden(name, rules)) ? "hidden" : undefined;
}

/** Where a link leads at last, by however many others. */
function follow(link: string): Readonly<{ real: string } | { reason: LeftOutReason }> {
  try {
    return { real: realpathSync(link) };
  } catch (error) {
    const code = codeOf(error);
    if (code === "ELOOP") return { reason: "loop" };
    if (code === "ENOENT" || code === "ENOTDIR") return { reason: "broken" };
    throw misuse(`${link} cannot be followed: ${whyUnreadable(error)}`);
  }
}

function statOf(real: string): Stats | undefined {
  try {
    return statSync(real, { throwIfNoEntry: false });
  } catch (error) {
    throw misuse(`${real} cannot be read: ${whyUnreadable(error)}`);
  }
}

function isWithin(root: string, real: string): boolean {
  return real === root || real.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

function isHidden(name: string, { hidden }: LeaveOut): boolean {
  return hidden && name.startsWith(".") && !publicNames.includes(name);
}

/** Keys lie there, or below it. */
function secretsOf(paths: readonly string[]): (real: string) => boolean {
  const secrets = paths.map((path) => (existsSync(path) ? realpathSync(path) : path));
  return (real) => secrets.some((secret) => isWithin(secret, real));
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** By the bytes of the path, so that the order is the same on every machine. */
function byPath(left: Readonly<{ path: string }>, right: Readonly<{ path: string }>): number {
  return Buffer.compare(Buffer.from(left.path), Buffer.from(right.path));
}

function leftOutText(leftOut: readonly LeftOut[]): string {
  if (leftOut.length === 0) return "";
  const named = leftOut.slice(0, 3).map(({ path, reason }) => `${path} (${reason})`);
  return ` but what is left out: ${named.join(", ")}`;
}
