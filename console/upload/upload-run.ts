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

/**
 * What was signed and sent so far, by path: an upload that is begun again continues. An item that is signed again would
 * be another one, and be charged again.
 */
export type UploadDraft = Map<string, DraftItem>;

/** The signed item until it has its receipt. */
type DraftItem = Readonly<{ id: string; bytes: Blob } | { id: string; receipt: Receipt }>;

/**
 * Signs and sends one item after another. Rejects with the first fault; what was sent stays stored, and in the draft.
 *
 * @param draft - Of the same plan and wallet.
 */
export async function runUpload(
  { files }: UploadPlan,
  wallet: UploadWallet,
  draft: UploadDraft,
  onProgress: (sent: number) => void,
  signal: AbortSignal,
): Promise<UploadResult> {
  let done = 0;
  const receipts: Receipt[] = [];
  const sign = async (path: string, data: Blob): Promise<DraftItem> => {
    const known = draft.get(path);
    if (known !== undefined) return known;
    const signed = await wallet.sign(data, tagsOf(data));
    draft.set(path, signed);
    signal.throwIfAborted();
    return signed;
  };
  const send = async (path: string, data: Blob): Promise<string> => {
    const signed = await sign(path, data);
    const { id } = signed;
    const receipt =
      "receipt" in signed
        ? signed.receipt
        : await sendItem(signed.bytes, (sent) => onProgress(done + Math.min(sent, data.size)), signal);
    draft.set(path, { id, receipt });
    receipts.push(receipt);
    done += data.size;
    onProgress(done);
    return id;
  };
  const ids = new Map<string, string>();
  for (const { path, file } of files) ids.set(path, await send(path, file));
  const items = [...ids].map(([path, id]) => ({ path, id }));
  const isFolder = isFolderOf(files);
  const manifest = isFolder && manifestOf(pathsOf(files), (path) => ids.get(path) ?? "");
  // No file has the empty path.
  const id = manifest ? await send("", manifest) : (items[0]?.id ?? "");
  return { id, isFolder, items, receipts };
}

function isFolderOf(files: readonly ChosenFile[]): boolean {
  return files.length > 1 || files.some(({ path }) => path.includes("/"));
}

function pathsOf(files: readonly ChosenFile[]): readonly string[] {
  return files.map(({ path }) => path);
}
