/**
 * Indexes of data items in CDB64 files: on this machine, or read by ranges from a URL.
 *
 * A file's beginning is kept; a look-up then takes two short reads. A file that was replaced is seen by its
 * size, on this
 * machine also by its time.
 * Source: reference/gateway.md §2.4.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { type Id, idBytes } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import { type Cdb64File, cdb64HeaderSize, lookUpCdb64 } from "../lib/cdb64.ts";
import { type Clue, readClueRecord } from "./clue.ts";
import type { ClueSources } from "./clue-sources.ts";
import { failureOf, type Http, type HttpTimeouts, openHttp, trouble, troubleFrom } from "./http.ts";
import type { NodeAnswer } from "./node.ts";
import { createSources, type SourceParts } from "./sources.ts";

/** Time-outs for a few hundred bytes. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 4_000, stallMs: 2_000, totalMs: 5_000 };

/** One file: how its head is had, and how it is read. */
type RootFile = Readonly<{
  url: string; // or path; for logs
  /** @throws Failure. */
  lookUp: <Value>(signal: AbortSignal, work: (file: Cdb64File) => Promise<Value>) => Promise<Value>;
  close: () => void;
}>;

/** What is kept of a file: its beginning, and by what to know it again. */
type Head = Readonly<{ header: Uint8Array; size: number; mark: string }>;

/** Opens indexes. @param sources - Paths, and http or https URLs of servers that heed Range without a redirect. */
export function openRootFiles(
  sources: readonly string[],
  parts: SourceParts & Readonly<{ timeouts?: HttpTimeouts }>,
): ClueSources {
  const files = sources.map((source) =>
    /^https?:\/\//i.test(source) ? openRemote(source, parts.timeouts ?? timeoutsDefault) : openLocal(source),
  );
  const asked = createSources(files, parts);
  return {
    count: files.length,
    find: (id, check, signal) => asked.ask((file, own) => find(file, id, own), check, signal),
    close: () => {
      for (const file of files) file.close();
    },
  };
}

async function find(file: RootFile, id: Id, signal: AbortSignal): Promise<NodeAnswer<Clue>> {
  try {
    const answer = await file.lookUp(signal, (opened) => lookUpCdb64(opened, idBytes(id)));
    if (answer.kind === "absent") return answer;
    if (answer.kind === "malformed") return trouble("malformed", answer.reason);
    const clue = readClueRecord(answer.value);
    return clue === undefined
      ? trouble("malformed", `the value of ${id} cannot be read`)
      : { kind: "ok", value: clue };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Failure) return troubleFrom(error);
    throw error;
  }
}

function openLocal(path: string): RootFile {
  let kept: Head | undefined;

  async function headOf(file: FileHandle): Promise<Head> {
    const { size, mtimeMs, ino } = await file.stat();
    const mark = `${ino} ${size} ${mtimeMs}`;
    if (kept?.mark !== mark) {
      if (size < cdb64HeaderSize) throw fileFailure(path, "the file is shorter than its head");
      kept = { size, mark, header: await readExactly(file, path, 0, cdb64HeaderSize) };
    }
    return kept;
  }

  return {
    url: path,
    async lookUp(_signal, work) {
      const file = await open(path, "r").catch((error: unknown) => {
        throw fileFailure(path, String(error));
      });
      try {
        const { header, size } = await headOf(file);
        return await work({ header, size, read: (start, end) => readExactly(file, path, start, end) });
      } finally {
        await file.close();
      }
    },
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

function openRemote(url: string, timeouts: HttpTimeouts): RootFile {
  const http = openHttp(timeouts);
  let kept: Head | undefined;

  async function headOf(signal: AbortSignal): Promise<Head> {
    if (kept !== undefined) return kept;
    const { bytes, size, mark } = await readRange(http, url, 0, cdb64HeaderSize, signal);
    kept = { header: bytes, size, mark };
    return kept;
  }

  return {
    url,
    async lookUp(signal, work) {
      const { header, size, mark } = await headOf(signal);
      const read = async (start: number, end: number) => {
        const part = await readRange(http, url, start, end, signal);
        if (part.size === size && part.mark === mark) return part.bytes;
        kept = undefined;
        throw fileFailure(url, "the file was replaced meanwhile");
      };
      return await work({ header, size, read });
    },
    close: http.close,
  };
}

const rangePattern = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/;

async function readRange(http: Http, url: string, start: number, end: number, signal: AbortSignal) {
  const headers = { range: `bytes=${start}-${end - 1}` };
  const answer = await http.whole({ method: "GET", url, headers }, end - start, signal);
  if (answer.kind === "trouble") throw failureOf(answer, { source: url });
  const [, first, last, size] = rangePattern.exec(answer.headers.get("content-range") ?? "") ?? [];
  const isAsked = Number(first) === start && Number(last) === end - 1 && answer.body.length === end - start;
  if (answer.status !== 206 || !isAsked || !Number.isSafeInteger(Number(size)))
    throw fileFailure(url, `no answer to a range: status ${answer.status}, ${answer.body.length} bytes`);
  return { bytes: answer.body, size: Number(size), mark: answer.headers.get("etag") ?? "" };
}
