/**
 * Indexes of data items in CDB64 files: on this machine, read by ranges from a URL, or content of an id; whole, or
 * in partitions that a manifest names.
 *
 * The beginning of a file is cached; a look-up then takes two short reads. A file that was replaced is recognized by
 * its size, on this machine also by its time.
 * Source: docs/reference/formats.md#cdb64.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { type Id, idBytes } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { type Cdb64File, type Cdb64Response, cdb64HeaderSize, hasCdb64Slots, lookUpCdb64 } from "../lib/cdb64.ts";
import type { Clock } from "../lib/clock.ts";
import {
  failureOf,
  faultFrom,
  type Http,
  type HttpTimeouts,
  openHttp,
  fault as problem,
  type Reach,
} from "../lib/http-client.ts";
import type { Log } from "../lib/log.ts";
import type { ByteSpan } from "../lib/range.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { type Hint, type HintSources, readHintRecord } from "./hint.ts";
import type { NodeResponse } from "./node.ts";
import { createReach } from "./reach.ts";
import {
  type ContentPart,
  nameOf,
  type RootLocation,
  type RootManifest,
  type RootSource,
  readRootManifest,
  readRootSources,
  rootManifestBytesMax,
} from "./root-manifest.ts";
import { createSources, type SourceParts } from "./sources.ts";

/** Time-outs for a few hundred bytes. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 4_000, stallMs: 2_000, totalMs: 5_000 };

/** A manifest that is not content of an id is read again after so long. Milliseconds. */
const manifestStoredMs = 3_600_000;

/** A manifest that is invalid is read and logged again after so long. Milliseconds. */
const invalidStoredMs = 60_000;

/** Manifests of others lead to public addresses only, as far as they lead to another server. */
const reachOfOthers = createReach({ ports: [80, 443], allowsPrivate: false });

/** Content of an id in which an index is stored. */
export type IndexContent = Readonly<{
  size: number; // bytes
  /** Streams a span of it. @throws Failure. */
  read: (span: ByteSpan, signal: AbortSignal) => AsyncIterable<Uint8Array>;
}>;

/** Opens content without a look-up in these indexes, which would ask for itself. @throws Failure. */
export type OpenIndexContent = (id: Id, signal: AbortSignal) => Promise<IndexContent>;

export type RootFilesParts = SourceParts & Readonly<{ timeouts?: HttpTimeouts; openContent: OpenIndexContent }>;

/** One file: how its head is had, and how it is read. */
type RootFile = Readonly<{
  /** @throws Failure. */
  lookUp: <Value>(signal: AbortSignal, work: (file: Cdb64File) => Promise<Value>) => Promise<Value>;
  /** Reads a file of at most {@link rootManifestBytesMax}. @throws Failure. */
  whole: (signal: AbortSignal) => Promise<Uint8Array>;
  close: () => void;
}>;

/** One index. */
type RootIndex = Readonly<{
  url: string; // or path, or id; for logs
  /** @throws Failure. */
  lookUp: (key: Uint8Array, signal: AbortSignal) => Promise<Cdb64Response>;
  close: () => void;
}>;

/** The cached part of a file: its beginning, and its identity. */
type Head = Readonly<{ header: Uint8Array; size: number; mark: string }>;

/**
 * Opens indexes.
 *
 * @param sources - Texts of the setting; servers of URLs must heed Range without a redirect.
 * @throws Error with a sentence for the operator when a local directory cannot be used.
 */
export function openRootFiles(sources: readonly string[], parts: RootFilesParts): HintSources {
  const files = sources.flatMap(readRootSources).map((source) => openIndex(source, parts));
  const asked = createSources(files, parts);
  return {
    count: files.length,
    find: (id, check, signal) => asked.ask((file, own) => find(file, id, own), check, signal),
    close: () => {
      for (const file of files) file.close();
    },
  };
}

function openIndex(source: RootSource, parts: RootFilesParts): RootIndex {
  if (source.kind === "manifest") return openPartitioned(source.location, openAt(source.location, parts), parts);
  const file = openAt(source, parts);
  if (source.kind === "content") return openUnknown(source, file, parts);
  return {
    url: nameOf(source),
    lookUp: (key, signal) => file.lookUp(signal, (opened) => lookUpCdb64(opened, key)),
    close: file.close,
  };
}

/** @param reach - For a server that the operator did not name. */
function openAt(location: RootLocation, parts: RootFilesParts, reach?: Reach): RootFile {
  if (location.kind === "file") return openLocal(location.path);
  if (location.kind === "content") return openContentFile(location, parts.openContent);
  return openRemote(location.url, parts.timeouts ?? timeoutsDefault, reach);
}

/** Content of an id: an index, or a manifest. An index has zeros in its head, which JSON never has. */
function openUnknown(location: RootLocation, file: RootFile, parts: RootFilesParts): RootIndex {
  const partitioned = openPartitioned(location, file, parts);
  let isManifest: boolean | undefined;
  return {
    url: partitioned.url,
    async lookUp(key, signal) {
      if (isManifest === true) return await partitioned.lookUp(key, signal);
      return await file.lookUp(signal, async (opened) => {
        isManifest ??= !opened.header.includes(0);
        if (isManifest) return await partitioned.lookUp(key, signal);
        if (opened.size < cdb64HeaderSize) throw fileFailure(partitioned.url, "the file is shorter than its head");
        return await lookUpCdb64(opened, key);
      });
    },
    close: partitioned.close,
  };
}

/** A manifest as it was read, and the time until which it is used. */
type ReadManifest = Readonly<{ until: number; partitions: Partitions | undefined; fault: string }>;

type Partition = Readonly<{ file: RootFile; size: number }>;

/** The partitions of a manifest, by the first byte of their keys. */
type Partitions = Readonly<{
  at: (prefix: number) => Partition | undefined;
  /** Makes a look-up in one of them. */
  use: <Value>(lookUp: () => Promise<Value>) => Promise<Value>;
  /** Closes them once no look-up uses them: there is a newer manifest. */
  retire: () => void;
  close: () => void;
}>;

function createPartitions(files: ReadonlyMap<number, Partition>): Partitions {
  let lookUps = 0;
  let isRetired = false;
  const close = (): void => {
    for (const { file } of files.values()) file.close();
  };
  const closeWhenUnused = (): void => {
    if (isRetired && lookUps === 0) close();
  };
  return {
    at: (prefix) => files.get(prefix),
    use: async (lookUp) => {
      lookUps += 1;
      try {
        return await lookUp();
      } finally {
        lookUps -= 1;
        closeWhenUnused();
      }
    },
    retire: () => {
      isRetired = true;
      closeWhenUnused();
    },
    close,
  };
}

/** An index in partitions; each is opened with the first key that belongs to it. */
function openPartitioned(location: RootLocation, file: RootFile, parts: RootFilesParts): RootIndex {
  const { clock, log }: Readonly<{ clock: Clock; log: Log }> = parts;
  const url = nameOf(location);
  const flights = createSingleFlight<ReadManifest>();
  let stored: ReadManifest | undefined;

  async function read(signal: AbortSignal): Promise<ReadManifest> {
    const bytes = await file.whole(signal);
    const now = clock();
    const before = stored;
    try {
      const partitions = openPartitions(readRootManifest(bytes, location));
      const until = location.kind === "content" ? Number.POSITIVE_INFINITY : now + manifestStoredMs;
      stored = { until, partitions, fault: "" };
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error);
      log.warn("the manifest of an index of data items is invalid", { source: url, detail: fault });
      stored = { until: now + invalidStoredMs, partitions: undefined, fault };
    }
    before?.partitions?.retire();
    return stored;
  }

  async function lookUpIn({ file: partition, size }: Partition, key: Uint8Array, signal: AbortSignal) {
    return await partition.lookUp(signal, async (opened) => {
      if (opened.size !== size) throw fileFailure(url, `a partition has ${opened.size} bytes, not ${size}`);
      return await lookUpCdb64(opened, key);
    });
  }

  function openPartitions(manifest: RootManifest): Partitions {
    const files = [...manifest].map(([prefix, { location: place, size }]) => {
      const isOthers = location.kind !== "file" && place.kind === "url" && !isSameServer(location, place.url);
      return [prefix, { file: openAt(place, parts, isOthers ? reachOfOthers : undefined), size }] as const;
    });
    return createPartitions(new Map(files));
  }

  return {
    url,
    async lookUp(key, signal) {
      const current =
        stored !== undefined && stored.until > clock() ? stored : await flights.run("manifest", signal, read);
      const { partitions } = current;
      if (partitions === undefined) throw new Failure("source_failed", { source: url, detail: current.fault });
      const partition = partitions.at(key[0] ?? -1);
      if (partition === undefined) return { kind: "absent" };
      try {
        return await partitions.use(() => lookUpIn(partition, key, signal));
      } catch (error) {
        // The partitions may have been replaced together with their manifest: it is read again soon.
        if (stored === current && location.kind !== "content")
          stored = { ...current, until: Math.min(current.until, clock() + invalidStoredMs) };
        throw error;
      }
    },
    close() {
      file.close();
      stored?.partitions?.close();
    },
  };
}

function isSameServer(location: RootLocation, url: string): boolean {
  return location.kind === "url" && new URL(location.url).origin === new URL(url).origin;
}

async function find(index: RootIndex, id: Id, signal: AbortSignal): Promise<NodeResponse<Hint>> {
  try {
    const response = await index.lookUp(idBytes(id), signal);
    if (response.kind === "absent") return response;
    if (response.kind === "malformed") return problem("malformed", response.reason);
    const hint = readHintRecord(response.value);
    return hint === undefined ? problem("malformed", `the value of ${id} cannot be read`) : { kind: "ok", value: hint };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Failure) return faultFrom(error);
    throw error;
  }
}

function openLocal(path: string): RootFile {
  let stored: Head | undefined;

  async function headOf(file: FileHandle): Promise<Head> {
    const { size, mtimeMs, ino } = await file.stat();
    const mark = `${ino} ${size} ${mtimeMs}`;
    if (stored?.mark !== mark) {
      if (size < cdb64HeaderSize) throw fileFailure(path, "the file is shorter than its head");
      stored = { size, mark, header: await readExactly(file, path, 0, cdb64HeaderSize) };
    }
    return stored;
  }

  async function using<Value>(work: (file: FileHandle) => Promise<Value>): Promise<Value> {
    const file = await open(path, "r").catch((error: unknown) => {
      throw fileFailure(path, String(error));
    });
    try {
      return await work(file);
    } finally {
      await file.close();
    }
  }

  return {
    lookUp: (_signal, work) =>
      using(async (file) => {
        const { header, size } = await headOf(file);
        return await work({ header, size, read: (start, end) => readExactly(file, path, start, end) });
      }),
    whole: () =>
      using(async (file) => {
        const { size } = await file.stat();
        if (size > rootManifestBytesMax) throw tooLarge(path, size);
        return await readExactly(file, path, 0, size);
      }),
    close: () => undefined,
  };
}

async function readExactly(file: FileHandle, path: string, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
    if (bytesRead === 0) throw fileFailure(path, "the file became shorter");
    at += bytesRead;
  }
  return bytes;
}

function fileFailure(path: string, detail: string): Failure {
  return new Failure("source_failed", { source: path, detail: `${path}: ${detail}` });
}

function tooLarge(source: string, size: number): Failure {
  return fileFailure(source, `the manifest has ${size} bytes, at most ${rootManifestBytesMax} are read`);
}

/** Content of an id, or a part of it. Its bytes are never sent to clients. */
function openContentFile(
  location: Readonly<{ kind: "content"; part: ContentPart }>,
  openContent: OpenIndexContent,
): RootFile {
  const { id, start, size: partSize } = location.part;
  const name = nameOf(location);
  let stored: Head | undefined;

  async function partOf(signal: AbortSignal) {
    const content = await openContent(id, signal);
    const size = partSize ?? content.size - start;
    if (size < 0 || start + size > content.size) throw fileFailure(name, `the content has only ${content.size} bytes`);
    const read = async (from: number, to: number): Promise<Uint8Array> => {
      const bytes = new Uint8Array(to - from);
      let at = 0;
      for await (const piece of content.read({ start: start + from, end: start + to }, signal)) {
        bytes.set(piece, at);
        at += piece.length;
      }
      return bytes;
    };
    return { size, read };
  }

  return {
    async lookUp(signal, work) {
      const { size, read } = await partOf(signal);
      const header = stored?.header ?? (await read(0, Math.min(size, cdb64HeaderSize)));
      stored = { header, size, mark: "" };
      return await work({ header, size, read });
    },
    async whole(signal) {
      const { size, read } = await partOf(signal);
      if (size > rootManifestBytesMax) throw tooLarge(name, size);
      return await read(0, size);
    },
    close: () => undefined,
  };
}

function openRemote(url: string, timeouts: HttpTimeouts, reach: Reach | undefined): RootFile {
  const http = openHttp(timeouts, reach);
  let stored: Head | undefined;

  async function headOf(signal: AbortSignal): Promise<Head> {
    if (stored !== undefined) return stored;
    const { bytes, size, mark } = await readRange(http, url, 0, cdb64HeaderSize, signal);
    const head = { header: bytes, size, mark };
    // A look-up in an index without items reads nothing else, and would not notice that the file was replaced.
    if (hasCdb64Slots(bytes)) stored = head;
    return head;
  }

  return {
    async lookUp(signal, work) {
      const { header, size, mark } = await headOf(signal);
      const read = async (start: number, end: number) => {
        const part = await readRange(http, url, start, end, signal);
        if (part.size === size && part.mark === mark) return part.bytes;
        stored = undefined;
        throw fileFailure(url, "the file was replaced meanwhile");
      };
      return await work({ header, size, read });
    },
    async whole(signal) {
      const response = await http.whole({ method: "GET", url }, rootManifestBytesMax, signal);
      if (response.kind === "fault") throw failureOf(response, { source: url });
      if (response.status !== 200) throw fileFailure(url, `status ${response.status}`);
      return response.body;
    },
    close: http.close,
  };
}

const rangePattern = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/;

async function readRange(http: Http, url: string, start: number, end: number, signal: AbortSignal) {
  const headers = { range: `bytes=${start}-${end - 1}` };
  const response = await http.whole({ method: "GET", url, headers }, end - start, signal);
  if (response.kind === "fault") throw failureOf(response, { source: url });
  const [, first, last, size] = rangePattern.exec(response.headers.get("content-range") ?? "") ?? [];
  const isAsked = Number(first) === start && Number(last) === end - 1 && response.body.length === end - start;
  if (response.status !== 206 || !isAsked || !Number.isSafeInteger(Number(size)))
    throw fileFailure(url, `no response to a range: status ${response.status}, ${response.body.length} bytes`);
  return { bytes: response.body, size: Number(size), mark: response.headers.get("etag") ?? "" };
}
