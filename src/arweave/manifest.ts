/**
 * Path manifests: map the paths of a published folder to ids.
 *
 * The order of keys in the file has no influence. Paths are compared exactly, and are not decoded or normalised here:
 * the caller decodes percent signs once.
 * Source: Arweave path manifest schema 0.1.0 and 0.2.0; docs/reference/formats.md#manifests.
 * @module
 */
import { Failure } from "../failures.ts";
import { type Id, readId } from "./id.ts";
import { malformed, opensMoreThan } from "./wire.ts";

/** A parsed manifest. Its ids may not exist. */
export type Manifest = Readonly<{
  version: ManifestVersion;
  /** The target of the empty path: an id, or a key of `paths`. */
  index: Readonly<{ id: Id }> | Readonly<{ path: string }> | undefined;
  /** The target of paths without a key; only in 0.2.0. */
  fallback: Id | undefined;
  paths: ReadonlyMap<string, Id>;
}>;

/** The target of a path; `fallback` when no key matched. */
export type ResolvedPath = Readonly<{ id: Id; fallback: boolean }>;

export type ManifestVersion = "0.1.0" | "0.2.0";

/** The supported versions. */
export const manifestVersions: readonly ManifestVersion[] = ["0.1.0", "0.2.0"];

/** The value of the field "manifest" in every manifest. */
export const manifestKind = "arweave/paths";

/** Reasons why a manifest is invalid. */
export const manifestFaults = {
  brackets: "the manifest opens too many lists or objects",
  json: "the manifest is not valid JSON",
  object: "the manifest is not a JSON object",
  kind: `"manifest" is not "${manifestKind}"`,
  version: `"version" is not ${manifestVersions.join(" or ")}`,
  paths: '"paths" is not an object',
} as const;

/** The content type of a manifest's transaction or data item. */
export const manifestContentType = "application/x.arweave-manifest+json";

/**
 * Most bytes of a manifest, up to 1.2 million paths. It bounds the cost of building an index: one second of a thread,
 * and the size of the manifest in memory and on disk.
 */
export const manifestSizeMax = 64 * 1_048_576;

/**
 * Bytes of text that a manifest needs for each list or object: the object of a path takes 56, and names may contain
 * brackets. A text of brackets alone would take 80 times its size in memory (measured).
 */
const bytesPerOpeningMin = 16;

/** Lists and objects that a manifest of any size may open. */
const openingsAlways = 1_024;

/** Most lists, and most objects, that a manifest of this size may open. */
export function openingsMaxOf(size: number): number {
  return openingsAlways + size / bytesPerOpeningMin;
}

/** The known keys, not yet validated. */
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
 * Paths with an invalid id are omitted, so that one invalid entry does not affect the others.
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

/** Memory of a parsed manifest: 1.6 to 4.5 times its text, most where its map has just grown (measured). Bytes. */
export function memoryOfManifest(textBytes: number): number {
  return 5 * textBytes + 512;
}

/**
 * Finds the target of a path: the exact key, the key without or with a final slash, the key of that folder's
 * `index.html`; the index for the empty path. If none of these exists, the fallback.
 *
 * @param path - Without a leading slash, percent signs decoded.
 * @returns `undefined` when the manifest has no target for the path.
 */
export function resolvePath(manifest: Manifest, path: string): ResolvedPath | undefined {
  const keys = keysOfPath(path);
  const id = keys.length === 0 ? resolveIndex(manifest) : resolveKeys(manifest, keys);
  if (id !== undefined) return { id, fallback: false };
  return manifest.fallback === undefined ? undefined : { id: manifest.fallback, fallback: true };
}

/** The keys that a path may match, in order of precedence; none for the path of the index. */
export function keysOfPath(path: string): readonly string[] {
  const folder = withoutFinalSlashes(path);
  return folder === "" ? [] : [...new Set([path, folder, `${folder}/`, `${folder}/index.html`])];
}

/** A loop, because a regular expression takes quadratic time on a path of slashes. */
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
