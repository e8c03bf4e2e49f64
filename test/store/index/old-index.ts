/**
 * An index that was made before ids were in parts: 160 items in four parts, and 19 transactions.
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const file = new URL("./index-with-ids-in-postings.sqlite.gz", import.meta.url).pathname;

/** Copies it into a folder. @returns Its path. */
export function copyOldIndex(folder: string): string {
  const path = `${folder}/index.sqlite`;
  writeFileSync(path, gunzipSync(readFileSync(file)));
  return path;
}
