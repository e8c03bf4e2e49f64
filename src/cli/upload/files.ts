/**
 * The files that an upload is of: one file, or all of a folder by their paths in it.
 * @module
 */
import { type Dirent, existsSync, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { misuse } from "../complaints.ts";

/** A file that is uploaded. */
export type LocalFile = Readonly<{
  /** Where it lies. */
  file: string;
  /** Its path in the folder, with forward slashes; of a lone file its name. */
  path: string;
  /** Bytes. */
  size: number;
  /** When it was changed last: a file that changes meanwhile is not uploaded as something else. */
  changedAtMs: number;
}>;

/** What was found. */
export type LocalFiles = Readonly<{
  kind: "file" | "folder";
  /** In the order of their paths; at least one. */
  files: readonly LocalFile[];
  /** Paths that were left out: hidden ones, keys, what is no file, links that lead back to a folder around them. */
  leftOut: readonly string[];
}>;

/** A manifest takes about this many paths. */
const filesMax = 500_000;

/** Below this deep nobody keeps files. */
const depthMax = 64;

/** Hidden, and yet part of a site. */
const publicNames: readonly string[] = [".well-known"];

/** What of a folder is not uploaded. */
export type LeaveOut = Readonly<{
  /** Names that begin with a dot: what is uploaded stays for ever, and keys lie in such. */
  hidden: boolean;
  /** Files and folders, absolute: the data folder, the wallet itself; by whatever link they are reached. */
  paths: readonly string[];
}>;

/**
 * Lists what is to be uploaded.
 *
 * @throws Misuse when there is nothing, or too much.
 */
export function listLocalFiles(path: string, leaveOut: LeaveOut): LocalFiles {
  // An empty variable in a script must not upload the folder that it stands in.
  if (path === "") throw misuse("the path is empty: name a file or a folder; the one you are in is .");
  const root = resolve(path);
  const stat = statSync(root, { throwIfNoEntry: false });
  if (stat === undefined) throw misuse(`${path} is neither a file nor a folder`);
  const real = realpathSync(root);
  const isSecret = secretsOf(leaveOut.paths);
  if (isSecret(real)) throw misuse(`${path} holds keys, and what is uploaded is public and stays for ever`);
  if (stat.isFile()) {
    const file = { file: root, path: basename(root), size: stat.size, changedAtMs: stat.mtimeMs };
    return { kind: "file", files: [file], leftOut: [] };
  }
  if (!stat.isDirectory()) throw misuse(`${path} is neither a file nor a folder`);
  const found: Found = { files: [], leftOut: [] };
  walk({ folder: root, prefix: "", around: [real] }, { hidden: leaveOut.hidden, isSecret }, found);
  if (found.files.length === 0) throw misuse(`${path} holds no files${leftOutText(found.leftOut)}`);
  return { kind: "folder", files: found.files.sort(byPath), leftOut: found.leftOut.sort() };
}

type Found = Readonly<{ files: LocalFile[]; leftOut: string[] }>;

/** A folder on the way, and the real paths of those around it, itself last. */
type Step = Readonly<{ folder: string; prefix: string; around: readonly string[] }>;

type Rules = Readonly<{ hidden: boolean; isSecret: (real: string) => boolean }>;

function walk({ folder, prefix, around }: Step, rules: Rules, found: Found): void {
  if (around.length > depthMax) throw misuse(`${folder} is more than ${depthMax} folders deep`);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${prefix}${entry.name}`;
    const file = join(folder, entry.name);
    const taken = isHidden(entry.name, rules) ? undefined : look(entry, file, around);
    if (taken === undefined || rules.isSecret(taken.real)) found.leftOut.push(path);
    else if (taken.stat.isDirectory())
      walk({ folder: file, prefix: `${path}/`, around: [...around, taken.real] }, rules, found);
    else found.files.push({ file, path, size: taken.stat.size, changedAtMs: taken.stat.mtimeMs });
    if (found.files.length > filesMax) throw misuse(`there are more than ${filesMax} files`);
  }
}

function isHidden(name: string, { hidden }: Rules): boolean {
  return hidden && name.startsWith(".") && !publicNames.includes(name);
}

/** A file or a folder, through links; `undefined` for what is neither, and for a link to a folder around it. */
function look(
  entry: Dirent,
  file: string,
  around: readonly string[],
): Readonly<{ stat: Stats; real: string }> | undefined {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined || !(stat.isFile() || stat.isDirectory())) return undefined;
  const real = entry.isSymbolicLink() ? realpathSync(file) : join(around.at(-1) ?? "", entry.name);
  return around.includes(real) ? undefined : { stat, real };
}

/** Keys lie there, or below it. */
function secretsOf(paths: readonly string[]): (real: string) => boolean {
  const secrets = paths.map((path) => (existsSync(path) ? realpathSync(path) : path));
  return (real) => secrets.some((secret) => real === secret || real.startsWith(`${secret}/`));
}

/** By the bytes of the path, so that the order is the same on every machine. */
function byPath(left: LocalFile, right: LocalFile): number {
  return Buffer.compare(Buffer.from(left.path), Buffer.from(right.path));
}

function leftOutText(leftOut: readonly string[]): string {
  return leftOut.length === 0 ? "" : ` but what is left out: ${leftOut.slice(0, 3).join(", ")}`;
}
