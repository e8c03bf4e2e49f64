/**
 * Complete files that another program cached, taken into the content cache without writing their bytes again.
 *
 * The cache must be closed: a program that has it open would not know the new rows. The row of a file is written after
 * its link, so a crash leaves a file without a row, which the cache removes.
 * @module
 */
import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createDataRoot } from "../../arweave/merkle.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { copyFile, linkOrCopyFile, syncFolder } from "../durable-file.ts";
import type { RootSpec } from "../root-spec.ts";
import { openExtentMap } from "./extent-map.ts";
import type { QuotaLimits } from "./extent-quota.ts";
import { rootName } from "./extent-roots.ts";
import { checksumOf, stepBytes, stepCost, stepsPerPage } from "./extent-steps.ts";

/** Hashes of a file after one read. */
export type ReadFile = Readonly<{
  /** SHA-256. */
  digest: Uint8Array;
  /** The data roots of the rules by which data is split, base64url. */
  dataRoots: readonly string[];
  /** Checksums of the steps. */
  sums: BigUint64Array;
}>;

/** The content cache of a program that is not running. */
export type AdoptedFiles = Readonly<{
  /** Whether some of a root's data is cached. */
  has: (root: RootSpec) => boolean;
  /** Whether a file fits into the cache, and leaves enough of the disk free if it must be copied. */
  hasSpaceFor: (path: string, size: number) => boolean;
  /**
   * Takes a file, which has the complete data of a root: links it when this process may write to it, else copies it.
   *
   * @param usedMs - Time of its last use.
   */
  adopt: (path: string, root: RootSpec, read: ReadFile, usedMs: number) => "linked" | "copied";
  close: () => void;
}>;

type AdoptedFilesOptions = QuotaLimits &
  Readonly<{
    /** Of the files. */
    folder: string;
    mapPath: string;
    /** Called with the reason when the map was damaged and was created again. */
    onReset: (reason: string) => void;
  }>;

/** Opens the cache; creates it when absent. */
export function openAdoptedFiles(options: AdoptedFilesOptions): AdoptedFiles {
  const { folder, mapPath, onReset, bytesMax, freeBytesMin } = options;
  mkdirSync(folder, { recursive: true });
  const { dev } = statSync(folder);
  const map = openExtentMap(mapPath, onReset);
  let total = map.totalBytes();
  return {
    has: (root) => map.root(rootName(root)) !== undefined,
    hasSpaceFor: (path, size) => {
      if (total + size > bytesMax) return false;
      if (statSync(path).dev === dev && isWritable(path)) return true;
      const { bavail, bsize } = statfsSync(folder);
      return bavail * bsize - size >= freeBytesMin;
    },
    adopt: (path, root, { digest, sums }, usedMs) => {
      const name = rootName(root);
      const target = join(folder, name.slice(0, 2), name);
      mkdirSync(dirname(target), { recursive: true });
      const how = take(path, target);
      syncFolder(dirname(target));
      const bytes = sums.reduce((sum, _, step) => sum + stepCost(step, root.size), 0);
      map.save([{ name, size: root.size, bytes, used: usedMs, pinned: false, digest, pages: pagesOf(sums) }]);
      total += bytes;
      return how;
    },
    close: map.close,
  };
}

/** The cache opens its files for writing, so a link to the file of another owner would be useless. */
function take(path: string, target: string): "linked" | "copied" {
  if (isWritable(path)) return linkOrCopyFile(path, target);
  copyFile(path, target);
  return "copied";
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    // The file is copied instead.
    return false;
  }
}

function pagesOf(sums: BigUint64Array): { page: number; sums: Uint8Array }[] {
  return Array.from({ length: Math.ceil(sums.length / stepsPerPage) }, (_, page) => {
    const all = new BigUint64Array(stepsPerPage);
    all.set(sums.subarray(page * stepsPerPage, (page + 1) * stepsPerPage));
    return { page, sums: new Uint8Array(all.buffer) };
  });
}

/** Bytes read at a time: complete steps. */
const pieceBytes = 16 * stepBytes;

/**
 * Reads a complete file once.
 *
 * @param size - Its expected size, 1 or more bytes.
 * @returns Undefined when the file has another size.
 */
export async function readAdopted(path: string, size: number, signal: AbortSignal): Promise<ReadFile | undefined> {
  const hash = new Bun.CryptoHasher("sha256");
  const roots = [createDataRoot(size, "halved"), createDataRoot(size, "plain")];
  const sums = new BigUint64Array(Math.ceil(size / stepBytes));
  const piece = new Uint8Array(pieceBytes);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size !== size) return undefined;
    for (let at = 0; at < size; ) {
      signal.throwIfAborted();
      const length = Math.min(pieceBytes, size - at);
      const read = await readFully(file, piece.subarray(0, length), at);
      if (!read) return undefined;
      const bytes = piece.subarray(0, length);
      hash.update(bytes);
      for (const root of roots) root.update(bytes);
      for (let step = 0; step * stepBytes < length; step++)
        sums[at / stepBytes + step] = checksumOf(bytes.subarray(step * stepBytes, (step + 1) * stepBytes));
      at += length;
    }
  } finally {
    await file.close();
  }
  const dataRoots = roots.map((root) => encodeBase64url(root.finish().root));
  return { digest: new Uint8Array(hash.digest()), dataRoots: [...new Set(dataRoots)], sums };
}

/** @returns Whether the file was long enough. */
async function readFully(
  file: Readonly<{
    read: (into: Uint8Array, offset: number, length: number, at: number) => Promise<{ bytesRead: number }>;
  }>,
  into: Uint8Array,
  at: number,
): Promise<boolean> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await file.read(into, done, into.length - done, at + done);
    if (bytesRead === 0) return false;
    done += bytesRead;
  }
  return true;
}
