/**
 * Scans a manifest that arrives in pieces, in constant memory, and reports each path.
 *
 * The result equals that of {@link readManifest} for every text. The last of repeated keys counts, as in `JSON.parse`,
 * also for "paths" itself and for an entry without an id.
 *
 * Paths are stored as digests: the first 16 bytes of the SHA-256 of a salt and the path. Each index has a new salt, so
 * that clients cannot choose paths with close digests.
 * Source: Arweave path manifest schema 0.1.0 and 0.2.0.
 * @module
 */
import { createJsonScan, type JsonEvents, type JsonFault, type TextSink, textBytes } from "../lib/json-scan.ts";
import { idSize } from "./id.ts";
import { type ManifestVersion, manifestFaults, manifestKind, manifestVersions, openingsMaxOf } from "./manifest.ts";

/** Receives the paths in the order of the manifest. The bytes are reused after each call. */
export type PathTable = Readonly<{
  /** Sets the target of a path; `undefined` removes it. */
  put: (digest: Uint8Array, id: Uint8Array | undefined) => void;
  /** Removes all paths: another "paths" replaces them. */
  clear: () => void;
}>;

/** The result of a scan, besides the paths. */
export type ScannedManifest =
  | Readonly<{
      kind: "manifest";
      /** The target of the empty path: an id, or the digest of a path. */
      index: Readonly<{ id: Uint8Array }> | Readonly<{ digest: Uint8Array }> | undefined;
      fallback: Uint8Array | undefined;
    }>
  /** The manifest is invalid. */
  | Readonly<{ kind: "unreadable"; reason: string }>;

/** A running scan. */
export type ManifestScan = Readonly<{
  /** Scans the next bytes. @returns False when the rest is not needed. */
  take: (bytes: Uint8Array) => boolean;
  finish: () => ScannedManifest;
}>;

/** The role of an object or list in a manifest. */
type Place = "outside" | "root" | "index" | "fallback" | "paths" | "entry" | "other";

const fields = ["manifest", "version", "index", "fallback", "paths"] as const;
type Field = (typeof fields)[number];

/** Longer texts equal none of the known texts. */
const shortTextMax = 64;

/**
 * Begins a scan.
 *
 * @param size - Of the manifest. Bytes.
 * @param salt - Of the digests of paths.
 */
export function createManifestScan(size: number, salt: Uint8Array, table: PathTable): ManifestScan {
  const said = createStatement();
  const events = createEvents(said, createPathDigest(salt), createPathDigest(salt), table);
  const scan = createJsonScan(events, openingsMaxOf(size));
  let fault: JsonFault | undefined;
  return {
    take(bytes) {
      fault = scan.take(bytes);
      return fault === undefined;
    },
    finish() {
      fault ??= scan.finish();
      if (fault !== undefined) return unreadable(fault === "not json" ? manifestFaults.json : manifestFaults.brackets);
      return said.result();
    },
  };
}

function unreadable(reason: string): ScannedManifest {
  return { kind: "unreadable", reason };
}

/** The values of the known fields; the last of each name counts. */
function createStatement() {
  const state: {
    isObject: boolean;
    isKind: boolean;
    version: ManifestVersion | undefined;
    hasPaths: boolean;
    indexId: Uint8Array | undefined;
    indexDigest: Uint8Array | undefined;
    fallback: Uint8Array | undefined;
  } = {
    isObject: false,
    isKind: false,
    version: undefined,
    hasPaths: false,
    indexId: undefined,
    indexDigest: undefined,
    fallback: undefined,
  };

  const result = (): ScannedManifest => {
    if (!state.isObject) return unreadable(manifestFaults.object);
    if (!state.isKind) return unreadable(manifestFaults.kind);
    if (state.version === undefined) return unreadable(manifestFaults.version);
    if (!state.hasPaths) return unreadable(manifestFaults.paths);
    const { indexId, indexDigest, fallback } = state;
    const byPath = indexDigest === undefined ? undefined : { digest: indexDigest };
    if (state.version === "0.1.0") return { kind: "manifest", index: byPath, fallback: undefined };
    return { kind: "manifest", index: indexId === undefined ? byPath : { id: indexId }, fallback };
  };

  return {
    state,
    result,
    /** A value of a field begins: discards the earlier value. */
    begin(field: Field, isObject: boolean): void {
      if (field === "manifest") state.isKind = false;
      if (field === "version") state.version = undefined;
      if (field === "fallback") state.fallback = undefined;
      if (field === "paths") state.hasPaths = isObject;
      if (field !== "index") return;
      state.indexId = undefined;
      state.indexDigest = undefined;
    },
  };
}

function createEvents(
  { state, begin }: ReturnType<typeof createStatement>,
  pathDigest: PathDigest,
  indexDigest: PathDigest,
  table: PathTable,
): JsonEvents {
  const short = createShortText();
  const position = createPosition(short);
  const entryId = new Uint8Array(idSize);
  let hasId = false;

  const noEntryId = () => {
    hasId = false;
  };
  /** A value begins: discards the earlier value of the same name. */
  const onBegin: Readonly<Partial<Record<Spot, (isObject: boolean) => void>>> = {
    ...Object.fromEntries(fields.map((field) => [field, (isObject: boolean) => begin(field, isObject)])),
    paths: (isObject) => {
      begin("paths", isObject);
      table.clear();
    },
    path: noEntryId,
    "entry id": noEntryId,
    "fallback id": () => begin("fallback", false),
    "index id": () => {
      state.indexId = undefined;
    },
    "index path": () => {
      state.indexDigest = undefined;
    },
  };
  const onString: Readonly<Partial<Record<Spot, () => void>>> = {
    manifest: () => {
      state.isKind = short.is(manifestKind);
    },
    version: () => {
      state.version = manifestVersions.find(short.is);
    },
    "entry id": () => {
      hasId = short.id(entryId);
    },
    "fallback id": () => {
      state.fallback = short.newId();
    },
    "index id": () => {
      state.indexId = short.newId();
    },
    "index path": () => {
      state.indexDigest = indexDigest.value().slice();
    },
  };

  const beginValue = (isObject: boolean) => onBegin[position.spot()]?.(isObject);
  const endValue = () => {
    if (position.spot() === "path") table.put(pathDigest.value(), hasId ? entryId : undefined);
  };
  const sinkAt = (spot: Spot): TextSink | undefined => {
    if (spot === "index path") return indexDigest.begin();
    return onString[spot] === undefined ? undefined : short.begin();
  };

  return {
    enter(kind) {
      beginValue(kind === "object");
      if (position.enter(kind === "object") === "root") state.isObject = true;
    },
    leave() {
      position.leave();
      endValue();
    },
    key: () => (position.spot() === "path" ? pathDigest.begin() : short.begin()),
    string() {
      beginValue(false);
      return sinkAt(position.spot());
    },
    textEnd(isKey) {
      if (isKey) return position.key();
      onString[position.spot()]?.();
      endValue();
    },
    plain() {
      beginValue(false);
      endValue();
    },
  };
}

/** The role of a value: of a field, of a path, an id or path in an object, or unknown. */
type Spot = Field | "path" | "entry id" | "fallback id" | "index id" | "index path" | "nothing";

const idSpots = { entry: "entry id", fallback: "fallback id", index: "index id" } as const;

/** The position of a scan. @param text - The last key. */
function createPosition(text: ReturnType<typeof createShortText>) {
  const places: Place[] = []; // of the outermost levels only
  let depth = 0;
  let field: Field | undefined;
  let member: "id" | "path" | undefined;

  const place = (): Place => (depth === 0 ? "outside" : (places[depth - 1] ?? "other"));

  function entered(isObject: boolean): Place {
    const here = place();
    if (!isObject) return "other";
    if (here === "outside") return "root";
    if (here === "paths") return "entry";
    if (here !== "root" || field === undefined) return "other";
    return field === "manifest" || field === "version" ? "other" : field;
  }

  function spotOf(here: Place): Spot {
    if (here === "root") return field ?? "nothing";
    if (here === "paths") return "path";
    if (here === "index" && member === "path") return "index path";
    const holdsId = here === "index" || here === "entry" || here === "fallback";
    return holdsId && member === "id" ? idSpots[here] : "nothing";
  }

  return {
    spot: () => spotOf(place()),
    /** An object or list begins. @returns Its role. */
    enter(isObject: boolean): Place {
      const next = entered(isObject);
      if (depth < placesMax) places[depth] = next;
      depth += 1;
      return next;
    },
    leave(): void {
      depth -= 1;
    },
    /** A key has ended. */
    key(): void {
      const here = place();
      if (here === "root") field = fields.find(text.is);
      if (here === "entry" || here === "index" || here === "fallback")
        member = text.is("id") ? "id" : text.is("path") ? "path" : undefined;
    },
  };
}

/** The root, "paths", an entry; deeper levels are ignored. */
const placesMax = 3;

/** A short text, to compare with known ones. */
function createShortText() {
  const bytes = new Uint8Array(shortTextMax);
  let size = 0;
  const sink: TextSink = {
    add(more, start, end) {
      for (let at = start; at < end && size < shortTextMax; at += 1, size += 1) bytes[size] = more[at] ?? 0;
    },
  };
  const is = (text: string): boolean => {
    if (size !== text.length) return false;
    for (let at = 0; at < size; at += 1) if (bytes[at] !== text.charCodeAt(at)) return false;
    return true;
  };
  const id = (into: Uint8Array): boolean => size === idTextSize && decodeId(bytes, into);
  return {
    begin(): TextSink {
      size = 0;
      return sink;
    },
    is,
    /** Decodes the text as an id. @returns Whether it is valid. */
    id,
    newId(): Uint8Array | undefined {
      const into = new Uint8Array(idSize);
      return id(into) ? into : undefined;
    },
  };
}

const idTextSize = 43;
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const sextets = Uint8Array.from({ length: 256 }, (_, byte) => {
  const at = alphabet.indexOf(String.fromCharCode(byte));
  return at < 0 ? 255 : at;
});

/** Decodes canonical base64url of 32 bytes without creating strings, unlike `readId`. */
function decodeId(text: Uint8Array, into: Uint8Array): boolean {
  let bits = 0;
  let held = 0;
  let size = 0;
  for (let at = 0; at < idTextSize; at += 1) {
    const sextet = sextets[text[at] ?? 0] ?? 255;
    if (sextet === 255) return false;
    held = (held << 6) | sextet;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    into[size] = held >> bits;
    held &= (1 << bits) - 1;
    size += 1;
  }
  return held === 0;
}

/** Bytes of the salt. */
export const saltSize = 16;

/** Stored bytes of a digest. Digests of two paths are equal by chance in one of 2^87 manifests of a million paths. */
export const pathDigestSize = 16;

const hashSize = 32;

/** Longest path that is buffered and hashed at once. */
const heldMax = 512;

/** Digests one text after another. */
export type PathDigest = Readonly<{
  begin: () => TextSink;
  /** The digest of the added text; valid until the next one begins. */
  value: () => Uint8Array;
}>;

/** Creates a digest for texts that arrive in pieces. */
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
