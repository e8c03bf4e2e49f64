/**
 * A file made into a signed data item: small ones whole in memory, large ones read once to be signed and again to be
 * sent, so that memory does not grow with them, and nothing is sent before its id has told whether it is there.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";
import { createDataItem, createItemSigning, type SignedHeader } from "../../arweave/data-item.ts";
import { type Id, idOfSignature } from "../../arweave/id.ts";
import type { Signer } from "../../arweave/signers/scheme.ts";
import type { Tag } from "../../arweave/tags.ts";
import type { LocalFile } from "./files.ts";
import { changedFile, isUnchanged, openFlags, unreadableFile } from "./opened-file.ts";
import type { KeyTest } from "./private-keys.ts";

/** A signed item, whole. */
export type WholeItem = Readonly<{ kind: "whole"; id: Id; size: number; bytes: Uint8Array<ArrayBuffer> }>;

/** A signed item whose payload stays in its file. */
export type FileItem = Readonly<{
  kind: "file";
  id: Id;
  size: number;
  /** Reads bytes [start, end) of the item. @throws Failure when the file is not what was signed any more. */
  read: (start: number, end: number) => Promise<Uint8Array<ArrayBuffer>>;
}>;

/** A signed item. */
export type LocalItem = WholeItem | FileItem;

/** A payload up to this size is sent in one request. Bytes. */
export const wholePayloadBytesMax = 10 * 2 ** 20;

/** How much of a large file is read at a time for its signature. Bytes. */
const pieceBytes = 2 ** 20;

const typeSize = 2;

/** Signs bytes that are at hand. @throws Failure `malformed_input` when the tags break the format. */
export function signBytes(data: Uint8Array | string, tags: readonly Tag[], signer: Signer): WholeItem {
  const bytes = Uint8Array.from(createDataItem({ data, tags }, signer));
  const signature = bytes.subarray(typeSize, typeSize + signer.scheme.signatureSize);
  return { kind: "whole", id: idOfSignature(signature), size: bytes.length, bytes };
}

/**
 * Signs a file.
 *
 * @param isKey - What the file must not have become since it was examined.
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
    const data = await readExactly(handle, file, 0, file.size);
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
    for (let at = 0; at < file.size; at += pieceBytes) {
      signal.throwIfAborted();
      signing.update(await readExactly(handle, file, at, Math.min(file.size, at + pieceBytes)));
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
    read: async (start, end) => {
      const bytes = new Uint8Array(end - start);
      const head = header.subarray(start, end);
      bytes.set(head);
      if (head.length === bytes.length) return bytes;
      const handle = await openFile(file);
      try {
        await checkUnchanged(handle, file);
        const from = start + head.length - header.length;
        bytes.set(await readExactly(handle, file, from, end - header.length), head.length);
        return bytes;
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

async function readExactly(
  handle: FileHandle,
  file: LocalFile,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(end - start);
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
    if (bytesRead === 0) throw changedFile(file.file);
    at += bytesRead;
  }
  return bytes;
}

/**
 * The signature is over what the file was; the service would refuse what it has become. Another file in its place is
 * never sent: not what a link leads to that was put there meanwhile.
 */
async function checkUnchanged(handle: FileHandle, file: LocalFile): Promise<void> {
  if (!isUnchanged(file, await handle.stat())) throw changedFile(file.file);
}
