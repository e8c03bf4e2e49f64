/**
 * Resolves an id or a path below it: content, a folder that needs its slash, or absent.
 *
 * Manifests are followed once: the target of a path is content, even if it is a manifest.
 * Source: docs/reference/gateway.md#manifest-paths.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../arweave/id.ts";
import {
  type Manifest,
  manifestContentType,
  memoryOfManifest,
  type ResolvedPath,
  readManifest,
  resolvePath,
} from "../arweave/manifest.ts";
import type { Content } from "../content/content.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { LargeManifests } from "./large-manifests.ts";

export type Resolution =
  | Readonly<{ kind: "folder" }> // a manifest requested without its slash: relative links would miss it
  | Readonly<{
      kind: "content";
      content: OpenContent;
      /** Absent because the path is not in the manifest. */
      fallback: boolean;
      /** The manifest that the path was looked up in. */
      manifestId: Id | undefined;
      /** Whether the bytes of the manifest were verified; true without a manifest. */
      isPathVerified: boolean;
    }>;

export type Resolver = Readonly<{
  /**
   * @param path - Below the id, decoded, without its leading slash; "" after a slash, `undefined` without
   * one.
   * @param open - Opens an id; the caller chooses the sources.
   * @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`.
   */
  resolve: (id: Id, path: string | undefined, open: Content["open"], signal: AbortSignal) => Promise<Resolution>;
}>;

/** Manifests up to this size are read here; reading takes 3 ms a MiB (measured). Bytes. */
export const readHereBytesMax = 2 ** 20;

/** Memory of cached parsed manifests: those of 13 MiB of text. Bytes. */
const storedBytesMax = 64 * 2 ** 20;

/** Time to live of unverified manifests. Milliseconds. */
const unverifiedTtlMs = 60_000;

/** A parsed small manifest; failures are cached as well. */
type Read = Readonly<{ kind: "manifest"; manifest: Manifest }> | Readonly<{ kind: "unreadable"; reason: unknown }>;

/** The resolution of an id without a manifest. */
export function contentById(content: OpenContent): Resolution {
  return { kind: "content", content, fallback: false, manifestId: undefined, isPathVerified: true };
}

/** Creates a resolver. @param large - Looks up in manifests above {@link readHereBytesMax}. */
export function createResolver(large: Pick<LargeManifests, "resolve">): Resolver {
  const stored = new LRUCache<string, Read>({ maxSize: storedBytesMax });
  const reading = createSingleFlight<Read>();

  const lookUp = async (manifest: OpenContent, path: string, signal: AbortSignal) => {
    // A cached manifest is not used once the manifest is blocked.
    const mayLeave = () => manifest.check({ start: 0, end: manifest.size }, signal);
    await mayLeave();
    const target = await lookUpIn(manifest, path, signal);
    // It may have been blocked while it was read.
    await mayLeave();
    return target;
  };

  const lookUpIn = async (manifest: OpenContent, path: string, signal: AbortSignal) => {
    if (manifest.size > readHereBytesMax) return await large.resolve(manifest, path, signal);
    const { name } = keeping(manifest);
    const read = stored.get(name) ?? (await reading.run(name, signal, async (own) => await readSmall(manifest, own)));
    if (read.kind === "manifest") return resolvePath(read.manifest, path);
    throw new Failure("malformed_input", { reason: read.reason });
  };

  const readSmall = async (content: OpenContent, signal: AbortSignal): Promise<Read> => {
    const { name, retentionMs } = keeping(content);
    const read = readOrSay(await content.bytes({ start: 0, end: content.size }, signal));
    stored.set(name, read, { size: memoryOfManifest(content.size), ttl: retentionMs });
    return read;
  };

  return {
    resolve: async (id, path, open, signal) => {
      const found = await open(id, signal);
      if (!isManifest(found)) {
        if (path !== undefined && path !== "") throw new Failure("not_found", { id, path });
        return contentById(found);
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

/** Whether the content type is that of manifests. */
function isManifest({ contentType }: OpenContent): boolean {
  return (contentType?.split(";")[0] ?? "").trim().toLowerCase() === manifestContentType;
}

/** Cache key of a manifest: verified and unverified ones are separate. */
function keeping({ id, verified }: OpenContent): Readonly<{ name: string; retentionMs: number }> {
  return verified ? { name: id, retentionMs: 0 } : { name: `${id}.u`, retentionMs: unverifiedTtlMs };
}

/** Parses a manifest; an invalid one is a result, not an error. */
function readOrSay(bytes: Uint8Array): Read {
  try {
    return { kind: "manifest", manifest: readManifest(bytes) };
  } catch (error) {
    if (error instanceof Failure) return { kind: "unreadable", reason: error.context["reason"] };
    throw error;
  }
}

/** An invalid manifest resolves no path; its bytes are at `/raw`. */
async function readable(looking: Promise<ResolvedPath | undefined>, id: Id): Promise<ResolvedPath | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (error instanceof Failure && error.code === "malformed_input")
      throw new Failure("not_found", { id, ...error.context }, error);
    throw error;
  }
}
