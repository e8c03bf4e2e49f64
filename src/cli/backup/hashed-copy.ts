/**
 * Copies files, with the hash of what was read; pieces of zeros become holes, as in files of multipart uploads.
 * @module
 */
import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BackupFile } from "./backup-record.ts";

/** Bytes of one read. */
const pieceBytes = 2 ** 20;

const zeros = Buffer.alloc(pieceBytes);

/** Counts the bytes of one read. */
export type OnBytes = (bytes: number) => void;

/**
 * Copies a file as it is now into another folder, and syncs the copy. Bytes that are appended meanwhile are left out.
 *
 * @param path - Path within both folders.
 * @throws System errors; ENOENT when the file is absent.
 */
export async function copyHashed(from: string, to: string, path: string, onBytes: OnBytes): Promise<BackupFile> {
  const source = await open(join(from, path), "r");
  try {
    const { size } = await source.stat();
    const target = join(to, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    const copy = await open(target, "w", 0o600);
    try {
      const hash = createHash("sha256");
      const read = await eachPiece(source, size, async (piece, position) => {
        hash.update(piece);
        if (!zeros.subarray(0, piece.length).equals(piece)) await writeAll(copy, piece, position);
        onBytes(piece.length);
      });
      await copy.truncate(read);
      await copy.sync();
      return { path, size: read, sha256: hash.digest("hex") };
    } finally {
      await copy.close();
    }
  } finally {
    await source.close();
  }
}

/** The hash of a file. @throws System errors. */
export async function hashFile(folder: string, path: string, onBytes: OnBytes): Promise<BackupFile> {
  const file = await open(join(folder, path), "r");
  try {
    const hash = createHash("sha256");
    const size = await eachPiece(file, Number.POSITIVE_INFINITY, (piece) => {
      hash.update(piece);
      onBytes(piece.length);
    });
    return { path, size, sha256: hash.digest("hex") };
  } finally {
    await file.close();
  }
}

type File = Awaited<ReturnType<typeof open>>;

async function writeAll(file: File, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Reads up to `size` bytes in pieces that are valid until the next one. @returns The number of bytes read. */
async function eachPiece(
  file: File,
  size: number,
  take: (piece: Uint8Array, position: number) => void | Promise<void>,
): Promise<number> {
  const buffer = Buffer.alloc(Math.min(pieceBytes, Math.max(1, size)));
  let position = 0;
  while (position < size) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, size - position), position);
    if (bytesRead === 0) break;
    await take(buffer.subarray(0, bytesRead), position);
    position += bytesRead;
  }
  return position;
}
