/**
 * Finds the items of a bundle that are on the operator's block list.
 *
 * A blocked id blocks its act of signing: an item is compared by every id that its signature can have, as at intake.
 * For a type 6 item only the id of its own encoding is known.
 * Source: docs/reference/signatures.md; docs/decisions/083-blocked-uploads.md.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { BundleItem } from "../../../workers/bundles.ts";
import { type Id, readId } from "../../arweave/id.ts";
import { signatureLayout } from "../../arweave/signature.ts";
import { isMalleable, signingOfHeader } from "../../arweave/signing.ts";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { canBlock, isBlocked, type UploadBlockList } from "../blocked-uploads.ts";
import { itemsOfBundle } from "../upload-rows.ts";
import type { Bundle } from "./bundle-rows.ts";
import type { StepParts } from "./pipeline-context.ts";

/** An item begins with its signature type, little-endian, and its signature. Source: ANS-104 §2. */
const typeSize = 2;

/** Longest signature whose encodings follow from the header. Bytes. */
const signatureSizeMax = 65;

export async function blockedItems(
  { ledger, blockList, folder }: Pick<StepParts, "ledger" | "blockList" | "folder">,
  { id }: Bundle,
): Promise<readonly BundleItem[]> {
  if (!canBlock(blockList)) return [];
  const items = await itemsOfBundle(ledger, id);
  const blocked = items.filter((item) => isOnList(blockList, item));
  if (!blockList.has("id")) return blocked;
  const others = await blockedByOtherIds(
    blockList,
    folder,
    items.filter((item) => !blocked.includes(item)),
  );
  return [...blocked, ...others];
}

function isOnList(list: UploadBlockList, { id: text, digest }: BundleItem): boolean {
  const id = readId(text);
  assert(id !== undefined, "the id of an upload is valid");
  return isBlocked(list, { id, digest: decodeBase64url(digest) });
}

/** Items whose signature has a blocked id in another encoding. Reads the start of each item, file by file. */
async function blockedByOtherIds(
  list: UploadBlockList,
  folder: string,
  items: readonly BundleItem[],
): Promise<BundleItem[]> {
  const blocked: BundleItem[] = [];
  for (const [file, some] of Map.groupBy(items, (item) => item.file)) {
    const handle = await opened(join(folder, file));
    if (handle === undefined) continue;
    try {
      for (const item of some)
        if ((await otherIds(handle, item)).some((id) => list.isBlockedId(id))) blocked.push(item);
    } finally {
      await handle.close();
    }
  }
  return blocked;
}

/** A missing file is skipped: the layout of the bundle fails its items. */
async function opened(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function otherIds(handle: FileHandle, { id: text, offset }: BundleItem): Promise<readonly Id[]> {
  const head = new Uint8Array(typeSize + signatureSizeMax);
  const { bytesRead } = await handle.read(head, 0, head.length, offset);
  const signatureType = (head[0] ?? 0) + (head[1] ?? 0) * 256;
  const size = signatureLayout(signatureType)?.signatureSize ?? 0;
  const id = readId(text);
  // The layout of the bundle finds a truncated item.
  if (id === undefined || !isMalleable(signatureType) || bytesRead < typeSize + size) return [];
  if (size > signatureSizeMax) return []; // type 6
  const signature = head.subarray(typeSize, typeSize + size);
  return signingOfHeader({ id, signatureType, signature }).itemIds;
}
