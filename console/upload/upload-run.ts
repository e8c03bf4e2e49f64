/**
 * One upload: every file is signed and sent as an item, then the manifest of several files.
 * @module
 */
import { type ChosenFile, manifestOf, tagsOf } from "./chosen-files.ts";
import type { Tag } from "./data-item.ts";
import { type Receipt, sendItem } from "./upload-client.ts";
import type { UploadWallet } from "./upload-wallets.ts";

/** A payload that becomes an item. */
type PlannedItem = Readonly<{ path: string; size: number; tags: readonly Tag[] }>;

export type UploadPlan = Readonly<{
  files: readonly ChosenFile[];
  /** The files, and a manifest of their size if there are several. */
  items: readonly PlannedItem[];
  /** Of the payloads. */
  bytes: number;
}>;

export type UploadResult = Readonly<{
  /** Of the manifest, or of the only file. */
  id: string;
  isFolder: boolean;
  items: readonly Readonly<{ path: string; id: string }>[];
  receipts: readonly Receipt[];
}>;

const manifestPath = "the manifest";

/** All ids have the same length. */
const anyId = "A".repeat(43);

export function planOf(files: readonly ChosenFile[]): UploadPlan {
  const items = files.map(({ path, file }) => ({ path, size: file.size, tags: tagsOf(file) }));
  if (isFolderOf(files)) {
    const manifest = manifestOf(pathsOf(files), () => anyId);
    items.push({ path: manifestPath, size: manifest.size, tags: tagsOf(manifest) });
  }
  return { files, items, bytes: items.reduce((sum, { size }) => sum + size, 0) };
}

/** Signs and sends one item after another. Rejects with the first fault; what was sent stays stored. */
export async function runUpload(
  { files }: UploadPlan,
  wallet: UploadWallet,
  onProgress: (sent: number) => void,
  signal: AbortSignal,
): Promise<UploadResult> {
  const ids = new Map<string, string>();
  const receipts: Receipt[] = [];
  let done = 0;
  const send = async (data: Blob): Promise<string> => {
    const { id, bytes } = await wallet.sign(data, tagsOf(data));
    signal.throwIfAborted();
    receipts.push(await sendItem(bytes, (sent) => onProgress(done + Math.min(sent, data.size)), signal));
    done += data.size;
    onProgress(done);
    return id;
  };
  for (const { path, file } of files) ids.set(path, await send(file));
  const items = [...ids].map(([path, id]) => ({ path, id }));
  const isFolder = isFolderOf(files);
  const id = isFolder ? await send(manifestOf(pathsOf(files), (path) => ids.get(path) ?? "")) : (items[0]?.id ?? "");
  return { id, isFolder, items, receipts };
}

function isFolderOf(files: readonly ChosenFile[]): boolean {
  return files.length > 1 || files.some(({ path }) => path.includes("/"));
}

function pathsOf(files: readonly ChosenFile[]): readonly string[] {
  return files.map(({ path }) => path);
}
