/**
 * Paths of manifests that are too large to be read between two requests: a thread reads them and keeps them.
 *
 * This is the thread's side (workers/verify.ts, `resolveLargeManifest`); the caller's side (resolve.ts) asks
 * first and sends the bytes only when the thread that answers does not have the manifest.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type Manifest, type ResolvedPath, readManifest, resolvePath } from "../arweave/manifest.ts";
import { Failure } from "../failures.ts";

/** One path to look up. */
export type LargeManifestJob = Readonly<{
  /** What the manifest is kept under: one name never stands for two manifests (resolve.ts). */
  name: string;
  path: string;
  /** Milliseconds that it may be kept; 0 is as long as there is room. */
  keptMs: number;
  /** Where the thread said that it needs them. */
  bytes?: Uint8Array;
}>;

/**
 * What the thread found. A manifest that cannot be read is an answer: errors lose their kind between threads.
 */
export type LargeManifestAnswer =
  | Readonly<{ kind: "found"; resolved: ResolvedPath | undefined }>
  | Readonly<{ kind: "needs bytes" }>
  | Readonly<{ kind: "unreadable"; reason: unknown }>;

/** Bytes of manifests that a thread keeps; read, one takes about three times its size. */
const keptBytesMax = 64 * 2 ** 20;

const kept = new LRUCache<string, Manifest>({ maxSize: keptBytesMax });

/** Looks a path up, in a thread. */
export function lookUpLargeManifest({ name, path, keptMs, bytes }: LargeManifestJob): LargeManifestAnswer {
  const known = kept.get(name);
  if (known !== undefined) return { kind: "found", resolved: resolvePath(known, path) };
  if (bytes === undefined) return { kind: "needs bytes" };
  try {
    const manifest = readManifest(bytes);
    kept.set(name, manifest, { size: Math.max(1, bytes.byteLength), ttl: keptMs });
    return { kind: "found", resolved: resolvePath(manifest, path) };
  } catch (error) {
    if (error instanceof Failure) return { kind: "unreadable", reason: error.facts["reason"] };
    throw error;
  }
}
