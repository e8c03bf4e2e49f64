/**
 * The files that an upload is of: one file, or all of a folder by their paths in it.
 * @module
 */
import { readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { misuse } from "./complaints.ts";

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
  /** Paths that were left out, because their names are hidden, keys lie there, or they are no files. */
  leftOut: readonly string[];
}>;

/** A manifest takes about this many paths. */
const filesMax = 500_000;

/** Below this deep nobody keeps files; a link that leads to its own folder would go on for ever. */
const depthMax = 64;

/** Hidden, and yet part of a site. */
const publicNames: readonly string[] = [".well-known"];

/** What of a folder is not uploaded. */
export type LeaveOut = Readonly<{
  /** Names that begin with a dot: what is uploaded stays for ever, and keys lie in such. */
  hidden: boolean;
  /** Files and folders, absolute: the data folder with its keys, the wallet itself. */
  paths: readonly string[];
}>;

/**
 * Lists what is to be uploaded.
 *
 * @throws Misuse when there is nothing, or too much.
 */
export function listLocalFiles(path: string, leaveOut: LeaveOut): LocalFiles {
  const root = resolve(path);
  const stat = statSync(root, { throwIfNoEntry: false });
  if (leaveOut.paths.some((secret) => root === secret || root.startsWith(`${secret}/`)))
    throw misuse(`${path} holds keys, and what is uploaded is public and stays for ever`);
  if (stat === undefined) throw misuse(`${path} is neither a file nor a folder`);
  if (stat.isFile()) {
    const file = { file: root, path: basename(root), size: stat.size, changedAtMs: stat.mtimeMs };
    return { kind: "file", files: [file], leftOut: [] };
  }
  if (!stat.isDirectory()) throw misuse(`${path} is neither a file nor a folder`);
  const found: Found = { files: [], leftOut: [] };
  walk(root, "", leaveOut, 0, found);
  if (found.files.length === 0) throw misuse(`${path} holds no files${leftOutText(found.leftOut)}`);
  return { kind: "folder", files: found.files.sort(byPath), leftOut: found.leftOut.sort() };
}

type Found = Readonly<{ files: LocalFile[]; leftOut: string[] }>;

function walk(folder: string, prefix: string, leaveOut: LeaveOut, depth: number, found: Found): void {
  if (depth > depthMax) throw misuse(`${folder} is more than ${depthMax} folders deep`);
  for (const name of readdirSync(folder)) {
    const path = `${prefix}${name}`;
    const file = join(folder, name);
    const isHidden = leaveOut.hidden && name.startsWith(".") && !publicNames.includes(name);
    const stat =
      isHidden || leaveOut.paths.includes(file) ? undefined : statSync(file, { throwIfNoEntry: false });
    if (stat?.isDirectory()) walk(file, `${path}/`, leaveOut, depth + 1, found);
    else if (stat?.isFile()) found.files.push({ file, path, size: stat.size, changedAtMs: stat.mtimeMs });
    else found.leftOut.push(path);
    if (found.files.length > filesMax) throw misuse(`there are more than ${filesMax} files`);
  }
}

/** By the bytes of the path, so that the order is the same on every machine. */
function byPath(left: LocalFile, right: LocalFile): number {
  return Buffer.compare(Buffer.from(left.path), Buffer.from(right.path));
}

function leftOutText(leftOut: readonly string[]): string {
  return leftOut.length === 0 ? "" : ` but what is left out: ${leftOut.slice(0, 3).join(", ")}`;
}
