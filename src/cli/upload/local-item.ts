/**
 * Signs a file as a data item. Small items are held in memory; large files are read once for the signature and again
 * for sending, so memory stays bounded and the id is known before anything is sent.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";
import { createDataItem, createItemSigning, type SignedHeader } from "../../arweave/data-item.ts";
import { type Id, idOfSignature } from "../../arweave/id.ts";
import type { Signer } from "../../arweave/signers/scheme.ts";
import type { Tag } from "../../arweave/tags.ts";
import type { LocalFile } from "./local-files.ts";
import { changedFile, isUnchanged, openFlags, unreadableFile } from "./local-files.ts";
import type { KeyTest } from "./private-keys.ts";

/** A signed item in memory. */
export type WholeItem = Readonly<{ kind: "whole"; id: Id; size: number; bytes: Uint8Array<ArrayBuffer> }>;

/** A signed item whose payload is read from its file. */
export type FileItem = Readonly<{
  kind: "file";
  id: Id;
  size: number;
  /** Fills `bytes` from byte `start` of the item on. @throws Failure when the file changed since it was signed. */
  read: (start: number, bytes: Uint8Array) => Promise<void>;
}>;

export type LocalItem = WholeItem | FileItem;

/** A payload up to this size is sent in one request. Bytes. */
export const wholePayloadBytesMax = 10 * 2 ** 20;

/** Read size of large files. Bytes. */
const pieceBytes = 2 ** 20;

const typeSize = 2;

/** Signs bytes in memory. @throws Failure `malformed_input` when the tags break the format. */
export function signBytes(data: Uint8Array | string, tags: readonly Tag[], signer: Signer): WholeItem {
  const bytes = Uint8Array.from(createDataItem({ data, tags }, signer));
  const signature = bytes.subarray(typeSize, typeSize + signer.scheme.signatureSize);
  return { kind: "whole", id: idOfSignature(signature), size: bytes.length, bytes };
}

/**
 * Signs a file.
 *
 * @param isKey - The file must not have become a key since it was examined.
 * @throws Failure `malformed_input` when the tags break the format, `source_failed` {reason} when the file changes.
 */
export async function signFile(
  file: LocalFile,
  tags: readonly Tag[],
  signer: Signer,
  isKey: KeyTest,
  signal: AbortSignal,
): Promise<LocalItem> {
  if (file.size > wholePayloadBytesMax) return await signLarge(file, tags, signer, signal);
  const handle = await openFile(file);
  try {
    await checkUnchanged(handle, file);
    const data = new Uint8Array(file.size);
    await fill(data, handle, file, 0);
    await checkUnchanged(handle, file);
    if (isKey(basename(file.path), data)) throw changedFile(file.file);
    return signBytes(data, tags, signer);
  } finally {
    await handle.close();
  }
}

async function signLarge(
  file: LocalFile,
  tags: readonly Tag[],
  signer: Signer,
  signal: AbortSignal,
): Promise<FileItem> {
  const signing = createItemSigning({ tags }, file.size, signer);
  const handle = await openFile(file);
  try {
    await checkUnchanged(handle, file);
    const buffer = new Uint8Array(pieceBytes);
    for (let at = 0; at < file.size; at += pieceBytes) {
      signal.throwIfAborted();
      const piece = buffer.subarray(0, file.size - at);
      await fill(piece, handle, file, at);
      signing.update(piece);
    }
    await checkUnchanged(handle, file);
  } finally {
    await handle.close();
  }
  return fileItem(file, signing.finish());
}

function fileItem(file: LocalFile, { id, header }: SignedHeader): FileItem {
  return {
    kind: "file",
    id,
    size: header.length + file.size,
    read: async (start, bytes) => {
      const head = header.subarray(start, start + bytes.length);
      bytes.set(head);
      if (head.length === bytes.length) return;
      const handle = await openFile(file);
      try {
        await checkUnchanged(handle, file);
        await fill(bytes.subarray(head.length), handle, file, start + head.length - header.length);
      } finally {
        await handle.close();
      }
    },
  };
}

async function openFile({ file }: LocalFile): Promise<FileHandle> {
  try {
    return await open(file, openFlags);
  } catch (error) {
    throw unreadableFile(file, error);
  }
}

/** Fills `bytes` from the file, from byte `start` on. */
async function fill(bytes: Uint8Array, handle: FileHandle, file: LocalFile, start: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
    if (bytesRead === 0) throw changedFile(file.file);
    at += bytesRead;
  }
}

/** A changed file no longer matches its signature. Another file at its path, also behind a link, is never sent. */
async function checkUnchanged(handle: FileHandle, file: LocalFile): Promise<void> {
  if (!isUnchanged(file, await handle.stat())) throw changedFile(file.file);
}
