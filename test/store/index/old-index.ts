/**
 * Indexes that earlier releases made: 160 items and 19 transactions, the items in parts.
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

/** Where an index has the ids of rows that are in parts: apart from them, or among the other keys of two parts. */
export type OldIndex = "postings" | "among-keys";

const files: Readonly<Record<OldIndex, URL>> = {
  postings: new URL("./index-with-ids-in-postings.sqlite.gz", import.meta.url),
  "among-keys": new URL("./index-with-ids-among-keys.sqlite.gz", import.meta.url),
};

/** Copies an index into a folder. @returns Its path. */
export function copyOldIndex(folder: string, kind: OldIndex = "postings"): string {
  const path = `${folder}/index.sqlite`;
  writeFileSync(path, gunzipSync(readFileSync(files[kind])));
  return path;
}
