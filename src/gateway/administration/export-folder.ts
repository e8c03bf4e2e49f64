/**
 * Folders that an export may write to: under one root, by their real path, so that neither `..` nor a link leads out.
 * Source: docs/reference/threats.md (F1).
 * @module
 */
import { lstat, mkdir, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";

/** Longest path; some systems reject longer ones. Bytes. */
const pathBytesMax = 1_024;

/** Longest name of one folder on the usual file systems. Bytes. */
const nameBytesMax = 255;

/**
 * Finds the real path of a folder to export to. Creates the root when it is absent, and no other folder.
 *
 * @param root - Absolute.
 * @param outputDir - As the operator wrote it; a relative path is under the root.
 * @returns Undefined when it is not a valid path, leads out of the root, or contains a part that is not a folder.
 */
export async function findExportFolder(root: string, outputDir: string): Promise<string | undefined> {
  if (!isPath(outputDir)) return undefined;
  await mkdir(root, { recursive: true, mode: 0o700 });
  const wanted = resolve(root, outputDir);
  if (!isPath(wanted)) return undefined;
  const real = await realPathOf(wanted);
  return real !== undefined && isWithin(await realpath(root), real) ? real : undefined;
}

/** A tilde is shell syntax for a home directory and is not meant as a folder name. */
function isPath(text: string): boolean {
  const isNamed = text !== "" && !text.includes("\0") && !text.startsWith("~");
  const isShort = Buffer.byteLength(text) <= pathBytesMax;
  return isNamed && isShort && text.split(sep).every((name) => Buffer.byteLength(name) <= nameBytesMax);
}

/** The real path of the existing part, followed by the rest; undefined when the existing part is not a folder. */
async function realPathOf(path: string): Promise<string | undefined> {
  let there = path;
  while (!(await isThere(there))) {
    const above = dirname(there);
    if (above === there) return undefined;
    there = above;
  }
  try {
    const real = await realpath(there);
    return (await stat(real)).isDirectory() ? join(real, relative(there, path)) : undefined;
  } catch (error) {
    if (isMissing(error)) return undefined; // a dangling link: the creator of its target decides where it leads
    throw error;
  }
}

/** Whether the name exists, even as a dangling link. */
async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

const missingCodes: readonly unknown[] = ["ENOENT", "ENOTDIR", "ELOOP"];

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && missingCodes.includes(error.code);
}

function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}
