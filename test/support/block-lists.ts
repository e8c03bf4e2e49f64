/**
 * Block lists of tests: in memory, and changed while they are in force.
 * @module
 */
import { encodeBase64url } from "../../src/lib/base64url.ts";
import type { UploadBlockList } from "../../src/upload/blocked-uploads.ts";

/** A list, and what is on it: ids, and SHA-256 as base64url. */
export type TestBlockList = UploadBlockList & Readonly<{ ids: Set<string>; hashes: Set<string> }>;

/** An empty list. */
export function createBlockList(): TestBlockList {
  const ids = new Set<string>();
  const hashes = new Set<string>();
  return {
    ids,
    hashes,
    has: (kind) => (kind === "id" ? ids.size > 0 : kind === "hash" && hashes.size > 0),
    isBlockedId: (id) => ids.has(id),
    isBlockedDigest: (digest) => hashes.has(encodeBase64url(digest)),
  };
}
