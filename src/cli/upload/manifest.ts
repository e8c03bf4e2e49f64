/**
 * The manifest of an uploaded folder: which id each of its paths means, what `/` opens, and what every other path does.
 * @module
 */

import { misuse } from "../../app/complaints.ts";
import type { Id } from "../../arweave/id.ts";
import { manifestSizeMax } from "../../arweave/manifest.ts";

/** The pages of a folder that are more than files of it. */
export type FolderPages = Readonly<{
  /** Path that the folder's own address opens. */
  index: string;
  /** Path that is opened by every path which is none of the folder's; `undefined`: those are not found. */
  fallback: string | undefined;
}>;

const usualIndex = "index.html";
const usualFallback = "404.html";

/**
 * Chooses the pages: those that are named, else the usual ones; a folder without an index opens its first file.
 *
 * @param paths - In order; at least one.
 * @throws Misuse when a named one is not in the folder.
 */
export function chooseFolderPages(
  paths: readonly string[],
  named: Readonly<{ index: string | undefined; fallback: string | undefined }>,
): FolderPages {
  const has = new Set(paths);
  for (const [option, path] of Object.entries(named))
    if (path !== undefined && !has.has(path)) throw misuse(`--${option} ${path} is no file of the folder`);
  const [first = usualIndex] = paths;
  const index = named.index ?? (has.has(usualIndex) ? usualIndex : first);
  const fallback = named.fallback ?? (has.has(usualFallback) ? usualFallback : undefined);
  return { index, fallback };
}

/**
 * Writes the manifest, the same for the same files whatever the order in which they were uploaded.
 *
 * @param ids - Of every path, in order.
 * @throws Misuse when it is larger than a manifest may be.
 */
export function writeManifest(ids: ReadonlyMap<string, Id>, { index, fallback }: FolderPages): string {
  const fallbackId = fallback === undefined ? undefined : ids.get(fallback);
  const text = JSON.stringify({
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: index },
    ...(fallbackId === undefined ? {} : { fallback: { id: fallbackId } }),
    paths: Object.fromEntries([...ids].map(([path, id]) => [path, { id }])),
  });
  if (Buffer.byteLength(text) > manifestSizeMax) throw misuse("the folder has more paths than a manifest can hold");
  return text;
}
