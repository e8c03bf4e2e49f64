/**
 * The build of one manifest's index: bytes in, in order; a file that is whole on the disk, or no file.
 *
 * It is written under a temporary name, synchronised, renamed, and its folder synchronised: what stands at its path is
 * an index or was damaged later. It reads each byte once, and takes about as much memory as the manifest is large.
 * @module
 */
import { closeSync, fdatasyncSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { type Id, idFromBytes } from "../../arweave/id.ts";
import { createManifestScan, type ScannedManifest } from "../../arweave/manifest-scan.ts";
import { createFileSessions } from "../file-sessions.ts";
import { type IndexHead, indexSizeOf, pageSize, writeHead, writePages } from "./index-file.ts";
import { type BuiltPaths, createPathTable, createTableMemory, type TableMemory } from "./path-table.ts";

/** The next bytes of a manifest. */
export type BuildIndexJob = Readonly<{
  /** Names the build among those under way in this thread. */
  session: string;
  /** With the first bytes only. */
  begin?: BeginIndex;
  /** Holds the bytes at its beginning; the main thread writes the next ones into it after the answer. */
  shared: SharedArrayBuffer;
  size: number;
  isLast: boolean;
}>;

/** What is built. */
export type BeginIndex = Readonly<{
  id: Id;
  /** Of the manifest. Bytes. */
  size: number;
  /** Of the index, as absolute paths: where it is written, and where it stands when it is whole. */
  temporaryPath: string;
  path: string;
  salt: Uint8Array;
  /** Unix milliseconds. */
  builtAt: number;
}>;

/** How far the build is. */
export type BuildIndexResult =
  | Readonly<{ kind: "more" }>
  /** The index stands at its path; it may say that the manifest cannot be read. @property bytes - Of the file. */
  | Readonly<{ kind: "built"; bytes: number }>
  /** The disk did not take it: what the system said. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began is gone. */
  | Readonly<{ kind: "lost" }>;

/** Lets a build go that will not be ended. */
export type LeaveIndexJob = Readonly<{ session: string }>;

/** The jobs of a thread that builds. */
export type IndexBuilder = Readonly<{
  buildIndex: (job: BuildIndexJob) => BuildIndexResult;
  leaveIndex: (job: LeaveIndexJob) => void;
}>;

type IndexBuild = Readonly<{
  /** Goes on with the next bytes. @returns False when the rest need not be had. */
  take: (bytes: Uint8Array) => boolean;
  /** Writes the index. @returns Its size. Bytes. */
  finish: () => number;
}>;

/** Bytes of a manifest that come with one job. */
export const buildPieceBytes = 2 ** 20;

/** Written at once. */
const bufferBytes = 2 ** 20;

/** Creates the jobs of a thread. */
export function createIndexBuilder(): IndexBuilder {
  const builds = createFileSessions<IndexBuild>(() => undefined);
  const memory = createTableMemory(); // of one build: a thread has one manifest at a time
  let piece: Uint8Array | undefined; // a copy: decoders do not take shared memory
  return {
    buildIndex: ({ session, begin, shared, size, isLast }) => {
      piece ??= new Uint8Array(buildPieceBytes);
      piece.set(new Uint8Array(shared, 0, size));
      const bytes = piece.subarray(0, size);
      const first = begin === undefined ? undefined : () => beginIndexBuild(begin, memory);
      return builds.step(session, first, (build): BuildIndexResult => {
        const isWanted = build.take(bytes);
        return isWanted && !isLast ? { kind: "more" } : { kind: "built", bytes: build.finish() };
      });
    },
    leaveIndex: ({ session }) => builds.leave(session),
  };
}

function beginIndexBuild(begin: BeginIndex, memory: TableMemory): IndexBuild {
  const table = createPathTable(begin.size, memory);
  const scan = createManifestScan(begin.size, begin.salt, table);
  return {
    take: scan.take,
    finish: () => {
      const scanned = scan.finish();
      const head = headOf(begin, scanned, table);
      try {
        writeIndex(begin, head, table);
      } catch (error) {
        rmSync(begin.temporaryPath, { force: true });
        throw error;
      }
      return indexSizeOf(head.count);
    },
  };
}

function headOf({ id, builtAt, salt }: BeginIndex, scanned: ScannedManifest, table: BuiltPaths): IndexHead {
  const common = { id, builtAt, salt };
  if (scanned.kind === "unreadable")
    return { ...common, count: 0, index: undefined, fallback: undefined, unreadable: scanned.reason };
  const { index, fallback } = scanned;
  const target = index === undefined ? undefined : "id" in index ? index.id : table.get(index.digest);
  return {
    ...common,
    count: table.count(),
    index: target && idFromBytes(target),
    fallback: fallback && idFromBytes(fallback),
    unreadable: undefined,
  };
}

function writeIndex({ temporaryPath, path }: BeginIndex, head: IndexHead, table: BuiltPaths): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(temporaryPath, "wx", 0o600);
  try {
    const buffer = new Uint8Array(bufferBytes);
    writeHead(head, buffer.subarray(0, pageSize));
    let held = pageSize;
    const flush = () => {
      for (let at = 0; at < held; ) at += writeSync(file, buffer, at, held - at);
      held = 0;
    };
    if (head.count > 0)
      writePages(table.sorted(), head.salt, (page) => {
        if (held === bufferBytes) flush();
        buffer.set(page, held);
        held += pageSize;
      });
    flush();
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporaryPath, path);
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
