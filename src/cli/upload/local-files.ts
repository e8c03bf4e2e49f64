/**
 * The files of an upload: one file, or all files of a folder by their paths.
 *
 * Uploads are public and permanent, so keys, hidden names and links out of the folder are left out. A path can be
 * replaced between two calls: each file is opened without following a link at its end, the handle shows its real path,
 * and later handles must be of the same inode, size and modification time.
 * @module
 */
import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import { misuse } from "../../app/complaints.ts";
import { Failure } from "../../failures.ts";
import { type KeyTest, keyBytesMax } from "./private-keys.ts";

export type LocalFile = OpenedFile &
  Readonly<{
    /** Path in the folder, with forward slashes; for a single file its name. */
    path: string;
  }>;

export type LeftOutReason =
  /** Its name, or the name of its link target, starts with a dot. */
  | "hidden"
  /** A private key, the wallet, the data folder. */
  | "key"
  /** A link out of the folder. */
  | "outside"
  /** A link to a parent folder or to itself. */
  | "loop"
  /** A link to nothing. */
  | "broken"
  /** Neither a file nor a folder. */
  | "special";

export type LeftOut = Readonly<{ path: string; reason: LeftOutReason }>;

export type LocalFiles = Readonly<{
  kind: "file" | "folder";
  /** Sorted by path; at least one. */
  files: readonly LocalFile[];
  /** Sorted by path. */
  leftOut: readonly LeftOut[];
  /** Whether the single file is a private key: a named file is not left out. */
  isKey: boolean;
}>;

/** About the maximum number of paths of a manifest. */
const filesMax = 500_000;

/** Bounds for links to the same folders: examined entries, and links to folders. */
const entriesMax = 2_000_000;
const linkedFoldersMax = 10_000;

/** Maximum depth of folders. */
const depthMax = 64;

/** Hidden names that are part of a site. */
const publicNames: readonly string[] = [".well-known"];

export type LeaveOut = Readonly<{
  /** Leaves out names that start with a dot, which often hold keys. */
  hidden: boolean;
  /** Leaves out links out of the folder. */
  outside: boolean;
  /** Absolute paths that are left out, also behind links: the data folder, the wallet. */
  paths: readonly string[];
  isKey: KeyTest;
}>;

/**
 * Lists the files to upload.
 *
 * @throws Misuse when there are no files, too many files, or unreadable ones.
 */
export function listLocalFiles(path: string, leaveOut: LeaveOut): LocalFiles {
  // An empty variable in a script must not upload the folder that the script runs in.
  if (path === "") throw misuse("missing argument <path>: expected a file or a folder (. is the current folder)");
  const real = realPathOf(path);
  const isSecret = secretsOf(leaveOut.paths);
  if (isSecret(real)) throw misuse(`${path} contains keys; uploads are public and permanent`);
  const stat = statSync(real);
  if (stat.isFile()) {
    const name = basename(resolve(path));
    const { isKey, ...file } = examineFile(real, name, leaveOut.isKey);
    return { kind: "file", files: [{ ...file, path: name }], leftOut: [], isKey };
  }
  if (!stat.isDirectory()) throw misuse(`${path} is neither a file nor a folder`);
  const { files, leftOut } = walk(real, { ...leaveOut, isSecret, root: real });
  if (files.length === 0) throw misuse(`${path} contains no files${leftOutText(leftOut)}`);
  return { kind: "folder", files: files.sort(byPath), leftOut: leftOut.sort(byPath), isKey: false };
}

/** The real path of the argument. */
function realPathOf(path: string): string {
  try {
    return realpathSync(resolve(path));
  } catch (error) {
    const code = codeOf(error);
    if (code === "ELOOP") throw misuse(`${path} is a circular link`);
    if (code === "ENOENT" || code === "ENOTDIR") throw misuse(`${path} is neither a file nor a folder`);
    throw misuse(`${path} cannot be read: ${whyUnreadable(error)}`);
  }
}

/** A folder of the walk: its real path, the prefix of its paths, and the real paths of its parents and itself. */
type Step = Readonly<{ folder: string; prefix: string; around: readonly string[] }>;

type Rules = LeaveOut & Readonly<{ root: string; isSecret: (real: string) => boolean }>;

type Found = Readonly<{ files: LocalFile[]; leftOut: LeftOut[] }>;

/** The classification of an entry. */
type Entry =
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
      checkBounds(found.files.length, seen);
    }
  }
  return found;
}

function checkBounds(files: number, seen: Readonly<{ entries: number; linkedFolders: number }>): void {
  if (files > filesMax) throw misuse(`there are more than ${filesMax} files`);
  if (seen.entries > entriesMax) throw misuse(`there are more than ${entriesMax} files and folders`);
  if (seen.linkedFolders > linkedFoldersMax) throw misuse(`there are more than ${linkedFoldersMax} links to folders`);
}

/** Adds an entry to the result. @returns The next step, for a folder. */
function takeEntry(entry: Dirent, step: Step, rules: Rules, found: Found): Step | undefined {
  const path = `${step.prefix}${entry.name}`;
  const classified = classify(entry, step, rules);
  if (classified.kind === "folder")
    return { folder: classified.real, prefix: `${path}/`, around: [...step.around, classified.real] };
  if (classified.kind === "left out") found.leftOut.push({ path, reason: classified.reason });
  else takeFile(classified.real, path, rules, found);
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

function classify(entry: Dirent, { folder, around }: Step, rules: Rules): Entry {
  const leftOut = (reason: LeftOutReason): Entry => ({ kind: "left out", reason });
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

/** Why a link target is left out, if it is: a link does not make a hidden target public. */
function targetFault(real: string, rules: Rules): LeftOutReason | undefined {
  const isInside = isWithin(rules.root, real);
  if (!isInside && rules.outside) return "outside";
  const names = isInside ? relative(rules.root, real).split(sep) : [basename(real)];
  return names.some((name) => isHidden(name, rules)) ? "hidden" : undefined;
}

/** The final target of a link. */
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

/** Whether a path is one of the secret paths or below one. */
function secretsOf(paths: readonly string[]): (real: string) => boolean {
  const secrets = paths.map((path) => (existsSync(path) ? realpathSync(path) : path));
  return (real) => secrets.some((secret) => isWithin(secret, real));
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** Orders by the bytes of the path: the same order on every machine. */
function byPath(left: Readonly<{ path: string }>, right: Readonly<{ path: string }>): number {
  return Buffer.compare(Buffer.from(left.path), Buffer.from(right.path));
}

function leftOutText(leftOut: readonly LeftOut[]): string {
  if (leftOut.length === 0) return "";
  const named = leftOut.slice(0, 3).map(({ path, reason }) => `${path} (${reason})`);
  return ` except those that are left out: ${named.join(", ")}`;
}

/** A file as examined. */
export type OpenedFile = Readonly<{
  /** Real path, without links. */
  file: string;
  /** Bytes. */
  size: number;
  /** Last modification. Unix milliseconds. */
  changedAtMs: number;
  device: number;
  inode: number;
}>;

/** Read only, no link at the end of the path, no waiting for the writer of a pipe. */
export const openFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Examines a file through one handle.
 *
 * @param real - Path with all links resolved.
 * @param name - The name under which it would be uploaded.
 * @throws Failure `source_failed` {reason} when the file cannot be read or is no longer at that path.
 */
export function examineFile(real: string, name: string, isKey: KeyTest): OpenedFile & { isKey: boolean } {
  const handle = openNow(real);
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile() || !isAt(handle, real, stat)) throw changedFile(real);
    const { size, mtimeMs: changedAtMs, dev: device, ino: inode } = stat;
    const content = size > keyBytesMax ? undefined : readWhole(handle, size);
    const foundKey = content !== undefined && isKey(name, content);
    return { file: real, size, changedAtMs, device, inode, isKey: foundKey };
  } finally {
    closeSync(handle);
  }
}

type HandleStat = Readonly<{ size: number; mtimeMs: number; dev: number; ino: number }>;

/** Whether a handle is of the examined file, unchanged. */
export function isUnchanged(file: OpenedFile, { size, mtimeMs, dev, ino }: HandleStat): boolean {
  return size === file.size && mtimeMs === file.changedAtMs && dev === file.device && ino === file.inode;
}

/** The failure for a file that changed during the upload. */
export function changedFile(file: string): Failure {
  return new Failure("source_failed", {
    reason: `${file} changed while it was being uploaded; upload it again`,
  });
}

/** The failure for a file that cannot be opened; ELOOP means that a link replaced it after the examination. */
export function unreadableFile(file: string, error: unknown): Failure {
  if (error instanceof Error && "code" in error && error.code === "ELOOP") return changedFile(file);
  return new Failure("source_failed", { reason: `${file} cannot be read: ${whyUnreadable(error)}` }, error);
}

export function whyUnreadable(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function openNow(real: string): number {
  try {
    return openSync(real, openFlags);
  } catch (error) {
    throw unreadableFile(real, error);
  }
}

/** Whether the handle's file is at the path, without a link on the way. */
function isAt(handle: number, real: string, { dev, ino }: Pick<HandleStat, "dev" | "ino">): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${handle}`) === real;
  } catch {
    // Without /proc: the path must still be of the same file.
    const now = statSync(real, { throwIfNoEntry: false });
    return now !== undefined && now.dev === dev && now.ino === ino && realpathSync(real) === real;
  }
}

function readWhole(handle: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let read = 0;
  for (let count = -1; read < size && count !== 0; read += count)
    count = readSync(handle, bytes, read, size - read, read);
  return bytes.subarray(0, read);
}
