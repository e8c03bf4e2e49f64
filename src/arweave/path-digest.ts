/**
 * Digests of a manifest's paths: SHA-256 of a salt and the path's bytes, of which the first 16 stand for it.
 *
 * The salt is new for each index, so that nobody can choose paths whose digests lie close together.
 * @module
 */
import { type TextSink, textBytes } from "../lib/json-text.ts";

/** Of the salt. Bytes. */
export const saltSize = 16;

/** So much of a digest is kept: two paths of a manifest are the same by chance once in 2^87 manifests of a million. */
export const pathDigestSize = 16;

const hashSize = 32;

/** Paths that are digested in one go; longer ones as they come. */
const heldMax = 512;

/** Digests one text after another. */
export type PathDigest = Readonly<{
  begin: () => TextSink;
  /** Of the text that was added; valid until the next one begins. */
  value: () => Uint8Array;
}>;

/** Creates a digest for texts that come in pieces. */
export function createPathDigest(salt: Uint8Array): PathDigest {
  const held = new Uint8Array(saltSize + heldMax);
  held.set(salt);
  const hash = new Uint8Array(hashSize);
  const digest = hash.subarray(0, pathDigestSize);
  let size = saltSize;
  let long: Bun.SHA256 | undefined;
  let isDone = false;

  const sink: TextSink = {
    add(bytes, start, end) {
      if (long === undefined && size + end - start > held.length) {
        long = new Bun.SHA256();
        long.update(held.subarray(0, size));
      }
      if (long !== undefined) {
        long.update(bytes.subarray(start, end));
        return;
      }
      for (let at = start; at < end; at += 1, size += 1) held[size] = bytes[at] ?? 0;
    },
  };

  return {
    begin() {
      size = saltSize;
      long = undefined;
      isDone = false;
      return sink;
    },
    value() {
      if (!isDone) {
        if (long === undefined) Bun.SHA256.hash(held.subarray(0, size), hash);
        else long.digest(hash);
        isDone = true;
      }
      return digest;
    },
  };
}

/** The digest of one path. */
export function pathDigestOf(salt: Uint8Array, path: string): Uint8Array {
  const digest = createPathDigest(salt);
  const bytes = textBytes(path);
  digest.begin().add(bytes, 0, bytes.length);
  return digest.value();
}
