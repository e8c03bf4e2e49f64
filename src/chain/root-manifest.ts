/**
 * Manifests of partitioned CDB64 indexes, and the sources that an operator may name.
 *
 * A manifest is outside data: its size, its partitions and every location are bounded and checked before any of
 * them is used.
 * Source: docs/reference/formats.md#cdb64.
 * @module
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Id, readId } from "../arweave/id.ts";
import { cdb64HeaderSize } from "../lib/cdb64.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";

/** Content of an id, or a part of it. Bytes; the rest of the content when `size` is absent. */
export type ContentPart = Readonly<{ id: Id; start: number; size: number | undefined }>;

/** Where an index or a partition is stored. */
export type RootLocation =
  | Readonly<{ kind: "file"; path: string }>
  | Readonly<{ kind: "url"; url: string }>
  | Readonly<{ kind: "content"; part: ContentPart }>;

/** A source: one index, or a manifest of partitions. Content may be either, which its bytes tell. */
export type RootSource = RootLocation | Readonly<{ kind: "manifest"; location: RootLocation }>;

/** One partition: the keys that begin with one byte. `size` is the whole file's, in bytes. */
export type RootPartition = Readonly<{ location: RootLocation; size: number }>;

/** Partitions by the first byte of their keys; keys of an absent partition are absent. */
export type RootManifest = ReadonlyMap<number, RootPartition>;

/** Bytes of a manifest; 256 partitions with hashes have less than 100 KiB. */
export const rootManifestBytesMax = 2 ** 20;

const manifestName = "manifest.json";
const partitionsMax = 256;

/** Files of one directory without a manifest: each of them is searched for every id. */
const looseFilesMax = 256;

const rangePattern = /^([\w-]{43})(?::(\d{1,16}):(\d{1,16}))?$/;

/**
 * The sources that a text of the setting names; a directory without a manifest names each of its files.
 *
 * @throws Error with a sentence for the operator when an id's range or a local directory cannot be used.
 */
export function readRootSources(text: string): readonly RootSource[] {
  if (/^https?:\/\//i.test(text)) return [urlSource(text)];
  const [, idText = "", startText = "0", sizeText] = rangePattern.exec(text) ?? [];
  const id = readId(idText);
  if (id === undefined) return pathSources(text);
  const [start, size] = [Number(startText), sizeText === undefined ? undefined : Number(sizeText)];
  if (size === 0 || !Number.isSafeInteger(start + (size ?? 0))) throw new Error(`${text}: invalid range`);
  return [{ kind: "content", part: { id, start, size } }];
}

function urlSource(text: string): RootSource {
  const url = URL.parse(text);
  if (url === null) return { kind: "url", url: text }; // the look-up reports it
  if (/^[^?#]*\/(?:[?#]|$)/.test(text)) url.pathname += manifestName;
  const location = { kind: "url", url: url.href } as const;
  return url.pathname.endsWith(".json") ? { kind: "manifest", location } : location;
}

function pathSources(path: string): readonly RootSource[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) {
    const location = { kind: "file", path } as const;
    return [path.endsWith(".json") ? { kind: "manifest", location } : location];
  }
  const names = readdirSync(path);
  if (names.includes(manifestName))
    return [{ kind: "manifest", location: { kind: "file", path: join(path, manifestName) } }];
  const files = names.filter((name) => name.endsWith(".cdb")).toSorted();
  if (files.length === 0) throw new Error(`${path} contains neither ${manifestName} nor .cdb files`);
  if (files.length > looseFilesMax)
    throw new Error(`${path} contains ${files.length} .cdb files; at most ${looseFilesMax} are read`);
  return files.map((name) => ({ kind: "file", path: join(path, name) }));
}

/**
 * Checks what is on this machine of a source: directories, manifests, and the partitions beside them. Remote
 * sources and single files are not looked at.
 *
 * @returns A sentence for the operator; `undefined` when nothing is wrong.
 */
export function rootSourceFault(text: string): string | undefined {
  try {
    for (const source of readRootSources(text))
      if (source.kind === "manifest" && source.location.kind === "file") checkLocal(source.location.path);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function checkLocal(path: string): void {
  const { size } = statSync(path);
  if (size > rootManifestBytesMax) throw new Error(`${path}: ${size} bytes, at most ${rootManifestBytesMax} are read`);
  const manifest = readRootManifest(readFileSync(path), { kind: "file", path });
  for (const { location, size: expected } of manifest.values()) {
    if (location.kind !== "file") continue;
    const found = statSync(location.path, { throwIfNoEntry: false });
    if (found?.isFile() !== true) throw new Error(`${path}: ${location.path} is not a file`);
    if (found.size !== expected) throw new Error(`${path}: ${location.path} has ${found.size} bytes, not ${expected}`);
  }
}

/**
 * Reads a manifest.
 *
 * @param where - Where it is stored: relative locations are resolved against it.
 * @throws Error that names the manifest and what is wrong.
 */
export function readRootManifest(bytes: Uint8Array, where: RootLocation): RootManifest {
  const fault = (reason: string) => new Error(`${nameOf(where)}: invalid manifest: ${reason}`);
  const json = readJson(Buffer.from(bytes).toString());
  if (!isJsonObject(json)) throw fault("not a JSON object");
  if (json["version"] !== 1) throw fault("version: expected 1");
  const { partitions } = json;
  if (!isJsonArray(partitions)) throw fault("partitions: expected a list");
  if (partitions.length > partitionsMax) throw fault(`more than ${partitionsMax} partitions`);
  const manifest = new Map<number, RootPartition>();
  for (const [index, entry] of partitions.entries()) {
    const [prefix, partition] = readPartition(entry, where, (reason) => fault(`partitions[${index}]: ${reason}`));
    if (manifest.has(prefix)) throw fault(`partitions[${index}]: prefix is there twice`);
    manifest.set(prefix, partition);
  }
  return manifest;
}

type MakeFault = (reason: string) => Error;

function readPartition(entry: JsonValue, where: RootLocation, fault: MakeFault) {
  if (!isJsonObject(entry)) throw fault("expected an object");
  const { prefix, location } = entry;
  if (typeof prefix !== "string" || !/^[0-9a-f]{2}$/.test(prefix))
    throw fault("prefix: expected two lower-case hexadecimal digits");
  const size = sizeIn(entry, "size");
  if (size === undefined || size < cdb64HeaderSize)
    throw fault(`size: expected an integer of at least ${cdb64HeaderSize}`);
  if (!isJsonObject(location)) throw fault("location: expected an object");
  const read = readLocation(location, size, where);
  if (read === undefined) throw fault(`location: invalid ${String(location["type"]).slice(0, 40)}`);
  return [Number.parseInt(prefix, 16), { location: read, size }] as const;
}

/** `undefined` when the location is invalid, or leads out of where its manifest may lead. */
function readLocation(location: JsonObject, size: number, where: RootLocation): RootLocation | undefined {
  switch (location["type"]) {
    case "file":
      return fileLocation(location["filename"], where);
    case "http":
      return urlLocation(location["url"], where);
    case "arweave-tx":
    case "arweave-id":
      return contentLocation(location["id"] ?? location["txId"], 0, undefined);
    case "arweave-bundle-item":
      if (sizeIn(location, "size") !== size) return undefined;
      return contentLocation(location["txId"], sizeIn(location, "offset"), size);
    case "arweave-byte-range":
      return contentLocation(location["rootTxId"], sizeIn(location, "dataOffsetInRootTx"), size);
    default:
      return undefined;
  }
}

/** A file beside its manifest. */
function fileLocation(name: JsonValue | undefined, where: RootLocation): RootLocation | undefined {
  const isName = typeof name === "string" && name.length <= 255 && name !== "" && !/[/\\\0]|^\.\.?$/.test(name);
  if (!isName) return undefined;
  if (where.kind === "file") return { kind: "file", path: join(dirname(where.path), basename(name)) };
  return where.kind === "url" ? urlLocation(encodeURIComponent(name), where) : undefined;
}

function urlLocation(text: JsonValue | undefined, where: RootLocation): RootLocation | undefined {
  if (typeof text !== "string") return undefined;
  const url = URL.parse(text, where.kind === "url" ? where.url : undefined);
  return url !== null && /^https?:$/.test(url.protocol) ? { kind: "url", url: url.href } : undefined;
}

function contentLocation(
  idText: JsonValue | undefined,
  start: number | undefined,
  size: number | undefined,
): RootLocation | undefined {
  const id = typeof idText === "string" ? readId(idText) : undefined;
  if (id === undefined || start === undefined || !Number.isSafeInteger(start + (size ?? 0))) return undefined;
  return { kind: "content", part: { id, start, size } };
}

function sizeIn(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A location as logs and messages name it. */
export function nameOf(location: RootLocation): string {
  if (location.kind === "file") return location.path;
  if (location.kind === "url") return location.url;
  const { id, start, size } = location.part;
  return size === undefined ? id : `${id}:${start}:${size}`;
}
