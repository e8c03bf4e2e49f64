/**
 * Path manifests: which id a path of a published folder means.
 *
 * The order of keys in the file has no influence. Paths are keys of a map, compared exactly, and are never
 * decoded or normalised here: the caller decodes percent signs once.
 * Source: Arweave path manifest schema 0.1.0 and 0.2.0; docs/reference/formats.md#manifests.
 * @module
 */
import { Failure } from "../failures.ts";
import { type Id, readId } from "./id.ts";
import { malformed, opensMoreThan } from "./wire.ts";

/** A manifest as read; nothing that it points at is known to exist. */
export type Manifest = Readonly<{
  version: ManifestVersion;
  /** What the empty path means: an id, or a key of `paths`. */
  index: Readonly<{ id: Id }> | Readonly<{ path: string }> | undefined;
  /** What a path that is no key means; only in 0.2.0. */
  fallback: Id | undefined;
  paths: ReadonlyMap<string, Id>;
}>;

/** Where a path leads, and whether only because nothing else fits. */
export type ResolvedPath = Readonly<{ id: Id; fallback: boolean }>;

export type ManifestVersion = "0.1.0" | "0.2.0";

/** The versions that are understood. */
export const manifestVersions: readonly ManifestVersion[] = ["0.1.0", "0.2.0"];

/** What the field "manifest" of every manifest says. */
export const manifestKind = "arweave/paths";

/** Why a manifest cannot be read. */
export const manifestFaults = {
  brackets: "the manifest is made of brackets",
  json: "the manifest is no JSON",
  object: "the manifest is no JSON object",
  kind: `"manifest" is not "${manifestKind}"`,
  version: `"version" is not ${manifestVersions.join(" or ")}`,
  paths: '"paths" is no object',
} as const;

/** The content type of a manifest's transaction or data item. */
export const manifestContentType = "application/x.arweave-manifest+json";

/**
 * Bytes of a manifest, up to 1.2 million paths. It bounds what a build takes at once: a second of a thread, as much
 * memory as the manifest is large, and as much of the disk for its index.
 */
export const manifestSizeMax = 64 * 1_048_576;

/**
 * Bytes that each list or object of a manifest must come to: a path's own takes 56, and names may hold brackets. A
 * text of brackets alone would cost 80 times its size in memory (measured).
 */
const bytesPerOpeningMin = 16;

/** Lists and objects that any manifest may open, however short it is. */
const openingsAlways = 1_024;

/** Lists, and objects, that a manifest of so many bytes may open. */
export function openingsMaxOf(size: number): number {
  return openingsAlways + size / bytesPerOpeningMin;
}

/** The keys that mean something; what they hold is not known yet. */
type Fields = Readonly<{
  manifest?: unknown;
  version?: unknown;
  index?: unknown;
  fallback?: unknown;
  paths?: unknown;
  id?: unknown;
  path?: unknown;
}>;

/**
 * Reads a manifest.
 *
 * Paths whose id is none are left out, so that one bad entry does not take the others with it.
 *
 * @param bytes - JSON, at most `manifestSizeMax` bytes.
 * @throws Failure `malformed_input` with `context.reason`; `too_large`.
 */
export function readManifest(bytes: Uint8Array): Manifest {
  if (bytes.length > manifestSizeMax) throw new Failure("too_large", { size: bytes.length, manifestSizeMax });
  const content = readFields(parse(bytes));
  if (content === undefined) throw malformed(manifestFaults.object);
  if (content.manifest !== manifestKind) throw malformed(manifestFaults.kind);
  const version = manifestVersions.find((known) => known === content.version);
  if (version === undefined) throw malformed(manifestFaults.version);
  const paths = readFields(content.paths);
  if (paths === undefined) throw malformed(manifestFaults.paths);

  return {
    version,
    index: readIndex(readFields(content.index) ?? {}, version),
    fallback: version === "0.2.0" ? idOf(content.fallback) : undefined,
    paths: new Map(Object.entries(paths).flatMap(([path, entry]) => pathEntry(path, idOf(entry)))),
  };
}

/**
 * Finds what a path means: the exact key, the key without or with a final slash, the key of that folder's
 * `index.html`; the empty path means the index. Where none of these exists, the fallback.
 *
 * @param path - Without a leading slash, percent signs decoded.
 * @returns `undefined` when the manifest knows nothing of it.
 */
export function resolvePath(manifest: Manifest, path: string): ResolvedPath | undefined {
  const keys = keysOfPath(path);
  const id = keys.length === 0 ? resolveIndex(manifest) : resolveKeys(manifest, keys);
  if (id !== undefined) return { id, fallback: false };
  return manifest.fallback === undefined ? undefined : { id: manifest.fallback, fallback: true };
}

/** The keys that a path may stand for, in the order in which they count; none for the path that means the index. */
export function keysOfPath(path: string): readonly string[] {
  const folder = withoutFinalSlashes(path);
  return folder === "" ? [] : [...new Set([path, folder, `${folder}/`, `${folder}/index.html`])];
}

/** A loop, because a pattern for this takes quadratic time on a path of slashes. */
function withoutFinalSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path[end - 1] === "/") end -= 1;
  return path.slice(0, end);
}

function resolveKeys({ paths }: Manifest, keys: readonly string[]): Id | undefined {
  const known = keys.find((key) => paths.has(key));
  return known === undefined ? undefined : paths.get(known);
}

function resolveIndex({ index, paths }: Manifest): Id | undefined {
  if (index === undefined) return undefined;
  return "id" in index ? index.id : paths.get(index.path);
}

function readIndex(index: Fields, version: ManifestVersion): Manifest["index"] {
  const id = version === "0.2.0" ? idOf(index) : undefined;
  if (id !== undefined) return { id };
  const path = index.path;
  return typeof path === "string" ? { path } : undefined;
}

function pathEntry(path: string, id: Id | undefined): readonly (readonly [string, Id])[] {
  return id === undefined ? [] : [[path, id]];
}

function idOf(entry: unknown): Id | undefined {
  const id = readFields(entry)?.id;
  return typeof id === "string" ? readId(id) : undefined;
}

function readFields(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}

function parse(bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes);
  if (opensMoreThan(text, openingsMaxOf(bytes.length))) throw malformed(manifestFaults.brackets);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Failure("malformed_input", { reason: manifestFaults.json }, cause);
  }
}
