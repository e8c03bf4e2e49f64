/**
 * What an id, or a path below it, means: content, a folder that wants its slash, or nothing.
 *
 * A manifest is followed once: what a path leads to is content, also when it is a manifest itself.
 * Source: contract.md §2 "Manifests".
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import {
  type Manifest,
  manifestContentType,
  manifestSizeMax,
  type ResolvedPath,
  readManifest,
  resolvePath,
} from "../arweave/manifest.ts";
import type { Content } from "../content/content.ts";
import type { OpenContent } from "../content/open-content.ts";
import { Failure } from "../failures.ts";
import type { LargeManifestAnswer, LargeManifestJob } from "./large-manifests.ts";

/** What an address means. */
export type Resolution =
  | Readonly<{ kind: "folder" }> // a manifest asked for without its slash: relative links would miss it
  | Readonly<{
      kind: "content";
      content: OpenContent;
      /** Only because the path is not in the manifest. */
      fallback: boolean;
      /** The manifest that the path was looked up in. */
      manifestId: Id | undefined;
      /** Whether the bytes of the manifest were checked; where there was none, nothing can mislead. */
      isPathVerified: boolean;
    }>;

/** Finds content by id and path. */
export type Resolver = Readonly<{
  /**
   * @param path - Below the id, decoded, without its leading slash; "" after a slash, `undefined` without
   * one.
   * @param open - Opens an id; how far it looks is the caller's choice.
   * @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`.
   */
  resolve: (
    id: Id,
    path: string | undefined,
    open: Content["open"],
    signal: AbortSignal,
  ) => Promise<Resolution>;
}>;

/** What a resolver is made of. */
export type ResolverOptions = Readonly<{
  /** Runs `resolveLargeManifest` (workers/verify.ts) in a thread. */
  resolveLarge: (job: LargeManifestJob, signal: AbortSignal) => Promise<LargeManifestAnswer>;
}>;

/** Manifests up to this size are read here; reading takes 3 ms a MiB (measured). Bytes. */
const readHereBytesMax = 2 ** 20;

/** Bytes of manifests that are kept read. */
const keptBytesMax = 16 * 2 ** 20;

/** Bytes that nobody has checked may be replaced by others. Milliseconds. */
const unverifiedKeptMs = 60_000;

/** Creates a resolver. */
export function createResolver({ resolveLarge }: ResolverOptions): Resolver {
  const kept = new LRUCache<string, Manifest>({ maxSize: keptBytesMax });

  const lookUp = async (manifest: OpenContent, path: string, signal: AbortSignal) => {
    if (manifest.size > readHereBytesMax) return await lookUpLarge(manifest, path, signal);
    const { name, keptMs } = keeping(manifest);
    const known = kept.get(name);
    if (known !== undefined) return resolvePath(known, path);
    const read = readManifest(await wholeOf(manifest, signal));
    kept.set(name, read, { size: Math.max(1, manifest.size), ttl: keptMs });
    return resolvePath(read, path);
  };

  const lookUpLarge = async (manifest: OpenContent, path: string, signal: AbortSignal) => {
    const job = { ...keeping(manifest), path };
    let answer = await resolveLarge(job, signal);
    if (answer.kind === "needs bytes")
      answer = await resolveLarge({ ...job, bytes: await wholeOf(manifest, signal) }, signal);
    return answer.kind === "found" ? answer.resolved : undefined;
  };

  return {
    resolve: async (id, path, open, signal) => {
      const found = await open(id, signal);
      if (!isManifest(found)) {
        if (path !== undefined && path !== "") throw new Failure("not_found", { id, path });
        return {
          kind: "content",
          content: found,
          fallback: false,
          manifestId: undefined,
          isPathVerified: true,
        };
      }
      if (path === undefined) return { kind: "folder" };
      const target = await readable(lookUp(found, path, signal), id);
      if (target === undefined) throw new Failure("not_found", { id, path });
      return {
        kind: "content",
        content: await open(target.id, signal),
        fallback: target.fallback,
        manifestId: id,
        isPathVerified: found.verified,
      };
    },
  };
}

/** Whether content says of itself that it is a manifest. */
function isManifest({ contentType }: OpenContent): boolean {
  return (contentType?.split(";")[0] ?? "").trim().toLowerCase() === manifestContentType;
}

/** How a manifest is kept: what is checked never stands behind what was not. */
function keeping({ id, verified }: OpenContent): Readonly<{ name: string; keptMs: number }> {
  return verified ? { name: id, keptMs: 0 } : { name: `${id}.u`, keptMs: unverifiedKeptMs };
}

/** A manifest that cannot be read leads nowhere; its bytes are at `/raw`. */
async function readable(
  looking: Promise<ResolvedPath | undefined>,
  id: Id,
): Promise<ResolvedPath | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (error instanceof Failure && (error.code === "malformed_input" || error.code === "too_large"))
      throw new Failure("not_found", { id, ...error.facts }, error);
    throw error;
  }
}

async function wholeOf(content: OpenContent, signal: AbortSignal): Promise<Uint8Array> {
  const { size } = content;
  if (size > manifestSizeMax) throw new Failure("too_large", { size, manifestSizeMax });
  const bytes = new Uint8Array(size);
  let at = 0;
  for await (const piece of content.read({ start: 0, end: size }, signal)) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}
