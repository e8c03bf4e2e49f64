/**
 * Paths of manifests that are too large to be read between two requests: a thread reads them and keeps them.
 *
 * The thread's side is `resolveLargeManifest`, exported by a worker; the caller's side asks first and sends the bytes
 * only when the thread that answers does not have the manifest.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import { type Manifest, type ResolvedPath, readManifest, resolvePath } from "../arweave/manifest.ts";

/** One path to look up; `bytes` when the thread said that it needs them. */
export type LargeManifestJob = Readonly<{ id: Id; path: string; bytes?: Uint8Array }>;

/** What the thread found. */
export type LargeManifestAnswer =
  | Readonly<{ kind: "found"; resolved: ResolvedPath | undefined }>
  | Readonly<{ kind: "needs bytes" }>;

/** Bytes of manifests that a thread keeps; read, one takes about three times its size. */
const keptBytesMax = 64 * 2 ** 20;

const kept = new LRUCache<Id, Manifest>({ maxSize: keptBytesMax });

/** Looks a path up, in a thread. Throws Failure `malformed_input` when the bytes are no manifest. */
export function resolveLargeManifest({ id, path, bytes }: LargeManifestJob): LargeManifestAnswer {
  const known = kept.get(id);
  if (known === undefined && bytes === undefined) return { kind: "needs bytes" };
  const manifest = known ?? readAndKeep(id, bytes ?? new Uint8Array(0));
  return { kind: "found", resolved: resolvePath(manifest, path) };
}

function readAndKeep(id: Id, bytes: Uint8Array): Manifest {
  const manifest = readManifest(bytes);
  kept.set(id, manifest, { size: Math.max(1, bytes.byteLength) });
  return manifest;
}
