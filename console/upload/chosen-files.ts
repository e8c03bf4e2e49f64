/**
 * The files that a user chooses or drops: one file, or several with paths, which become a folder with a manifest.
 * @module
 */
import type { Tag } from "./data-item.ts";

export type ChosenFile = Readonly<{
  /** Path within the folder; the name of a single file. */
  path: string;
  file: File;
}>;

/** Most files of one upload by the page; the command line has no limit. */
export const filesMax = 2_000;

/** The files of an input; those of a folder input have paths that begin with its name. */
export function filesOfInput(list: FileList | null): readonly ChosenFile[] {
  return [...(list ?? [])].map((file) => ({ path: withoutRoot(file.webkitRelativePath) || file.name, file }));
}

function withoutRoot(path: string): string {
  return path.slice(path.indexOf("/") + 1);
}

/** The files of a drop, with those of folders. A folder that is dropped alone is the root of the paths. */
export async function filesOfDrop({ items, files }: DataTransfer): Promise<readonly ChosenFile[]> {
  // Entries must be taken before the first wait: a drop ends with its event.
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  if (entries.length === 0) return [...files].map((file) => ({ path: file.name, file }));
  const found: ChosenFile[] = [];
  for (const entry of entries) await addEntry(entry, found);
  const isOneFolder = entries.length === 1 && entries[0]?.isDirectory === true;
  return isOneFolder ? found.map(({ path, file }) => ({ path: withoutRoot(path), file })) : found;
}

async function addEntry(entry: FileSystemEntry, found: ChosenFile[]): Promise<void> {
  if (found.length > filesMax) return;
  const path = entry.fullPath.replace(/^\//, "");
  if (isFile(entry)) {
    found.push({ path, file: await new Promise<File>((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  if (!isFolder(entry)) return;
  const reader = entry.createReader();
  for (;;) {
    // A reader returns some entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const each of some) await addEntry(each, found);
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

/** The tags of a file. */
export function tagsOf({ type }: Blob): readonly Tag[] {
  return [
    { name: "Content-Type", value: type || "application/octet-stream" },
    { name: "App-Name", value: "Cairn" },
  ];
}

const manifestType = "application/x.arweave-manifest+json";

/** The manifest of several files. `/` opens `index.html`, or else the first file. */
export function manifestOf(paths: readonly string[], idOf: (path: string) => string): Blob {
  const index = paths.includes("index.html") ? "index.html" : (paths[0] ?? "");
  const manifest = {
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: index },
    ...(paths.includes("404.html") ? { fallback: { id: idOf("404.html") } } : {}),
    paths: Object.fromEntries(paths.map((path) => [path, { id: idOf(path) }])),
  };
  return new Blob([JSON.stringify(manifest)], { type: manifestType });
}
