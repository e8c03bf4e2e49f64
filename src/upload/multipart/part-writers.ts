/**
 * Writing parts of uploads to their files: several at once, at any place, until somebody needs a file alone.
 *
 * A file is open while somebody works with it. What its parts take of the disk is counted by what the system says of
 * it, so that bytes which came twice count once, and those of a part that broke off count too.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { ignoreRejection, linkedController, untilStopped } from "../../lib/stop.ts";
import type { PartFile, PartFiles } from "../../store/uploads/part-files.ts";
import { diskFailure, type QuotaHeld, type UploadQuota } from "../intake/upload-quota.ts";

/** A part as it arrives. */
export type ArrivingPart = Readonly<{
  /** The byte of the item at which it begins. */
  start: number;
  /** Its size, as announced. Bytes. */
  size: number;
  /** Its bytes, in any pieces. */
  pieces: AsyncIterator<Uint8Array>;
}>;

/** The writers. */
export type PartWriters = Readonly<{
  /**
   * Writes a part. When it resolves, its bytes are on the disk.
   *
   * @throws Failure `no_space` {reason}, `disk_failed` {reason}, `busy`; `upload_rejected` {reason} when the file is
   *   needed alone, or when the part has another size than was announced; what the pieces throw; the signal's reason.
   */
  write: (upload: string, part: ArrivingPart, signal: AbortSignal) => Promise<void>;
  /** Stops those who write to a file, and works with it while nobody else does. */
  alone: <Result>(upload: string, work: (file: PartFile) => Promise<Result>) => Promise<Result>;
  /** What the file of an upload is called below the folder of uploads. */
  nameOf: (upload: string) => string;
  /** Removes a file. */
  remove: (upload: string) => Promise<void>;
  /** Counts a file that was there before. */
  count: (upload: string) => Promise<void>;
  /** Counts a file no longer: it has become an item's. */
  forget: (upload: string) => void;
  /** Whether somebody works with a file. */
  isOpen: (upload: string) => boolean;
  /** What all files that are counted take of the disk. Bytes. */
  diskBytes: () => number;
}>;

/** Parts that are written at once; each has a megabyte or two in memory. */
const writersMax = 256;

/** Pieces go to the system together: so many bytes, or so many pieces (POSIX lets a call have 1,024). */
const writeBytes = 2 ** 20;
const piecesMax = 512;

/** A large part is sent to the disk every so often, so that its end need not wait for all of it. */
const flushBytes = 32 * 2 ** 20;

/** A file that somebody works with. */
type Open = {
  readonly file: Promise<PartFile>;
  /** Aborted when somebody needs the file alone. */
  readonly stop: AbortController;
  users: number;
  readonly left: PromiseWithResolvers<void>;
};

/** Creates the writers. */
export function createPartWriters(files: PartFiles, quota: UploadQuota): PartWriters {
  const open = new Map<string, Open>();
  const { set, total } = createTally();
  let writing = 0;

  function enter(upload: string): Open {
    const known = open.get(upload);
    if (known?.stop.signal.aborted === true) throw beingFinalized();
    const entry = known ?? {
      file: files.open(upload),
      stop: new AbortController(),
      users: 0,
      left: Promise.withResolvers<void>(),
    };
    ignoreRejection(entry.file); // heard of by every user
    open.set(upload, entry);
    entry.users += 1;
    return entry;
  }

  /** @returns By how much more the file takes of the disk than when somebody left it last. */
  async function leave(upload: string, entry: Open): Promise<number> {
    const file = await opened(entry.file);
    try {
      return file === undefined ? 0 : set(upload, await file.diskBytes());
    } finally {
      entry.users -= 1;
      if (entry.users === 0) {
        entry.left.resolve();
        if (!entry.stop.signal.aborted) {
          open.delete(upload);
          await file?.close();
        }
      }
    }
  }

  async function write(upload: string, part: ArrivingPart, signal: AbortSignal): Promise<void> {
    if (writing >= writersMax) throw new Failure("busy", { writing });
    const held = quota.take(part.size);
    writing += 1;
    let grown = 0;
    try {
      const entry = enter(upload);
      const { controller, unlink } = linkedController(signal, entry.stop.signal);
      try {
        await onDisk(() => writePart(entry.file, part, held, controller.signal));
      } finally {
        unlink();
        grown = await leave(upload, entry);
      }
    } finally {
      writing -= 1;
      held.release(grown);
    }
  }

  async function alone<Result>(upload: string, work: (file: PartFile) => Promise<Result>): Promise<Result> {
    const entry = enter(upload);
    entry.stop.abort(beingFinalized());
    entry.users -= 1;
    if (entry.users > 0) await entry.left.promise;
    try {
      return await onDisk(async () => await work(await entry.file));
    } finally {
      open.delete(upload);
      const file = await opened(entry.file);
      if (file !== undefined) {
        set(upload, await file.diskBytes());
        await file.close();
      }
    }
  }

  return {
    write,
    alone,
    nameOf: files.nameOf,
    remove: async (upload) => {
      await alone(upload, () => files.remove(upload));
      set(upload, 0);
    },
    count: async (upload) => void set(upload, await files.diskBytes(upload)),
    forget: (upload) => void set(upload, 0),
    isOpen: (upload) => open.has(upload),
    diskBytes: total,
  };
}

/** Bytes by upload, and their sum. */
function createTally() {
  const counted = new Map<string, number>();
  let total = 0;
  return {
    total: () => total,
    /** @returns The difference. */
    set: (upload: string, bytes: number): number => {
      const grown = bytes - (counted.get(upload) ?? 0);
      total += grown;
      if (bytes === 0) counted.delete(upload);
      else counted.set(upload, bytes);
      return grown;
    },
  };
}

/** The file, once it is open; `undefined` where it would not open, which its users are told. */
function opened(opening: Promise<PartFile>): Promise<PartFile | undefined> {
  return opening.then(
    (file) => file,
    () => undefined,
  );
}

async function writePart(
  opening: Promise<PartFile>,
  part: ArrivingPart,
  held: QuotaHeld,
  signal: AbortSignal,
): Promise<void> {
  const file = await opening;
  const faults = file.faults();
  await writePieces(file, part, held, signal);
  await file.sync();
  if (file.faults() !== faults)
    throw new Failure("disk_failed", { reason: "a part that was written beside this one was lost" });
}

async function writePieces(file: PartFile, part: ArrivingPart, held: QuotaHeld, signal: AbortSignal): Promise<void> {
  const { start, size, pieces } = part;
  let waiting: Uint8Array[] = [];
  let written = 0;
  let come = 0;
  let flushed = 0;
  const flush = async () => {
    // Never left before it has ended: whoever needs the file alone relies on that.
    await file.write(waiting, start + written);
    held.wrote(come - written);
    written = come;
    waiting = [];
    if (written - flushed < flushBytes) return;
    flushed = written;
    ignoreRejection(file.sync()); // what fails is counted, and seen at the end
  };
  for (;;) {
    const next = await untilStopped(pieces.next(), signal);
    if (next.done === true) break;
    come += next.value.length;
    if (come > size) throw wrongSize(come, size);
    waiting.push(next.value);
    if (come - written >= writeBytes || waiting.length === piecesMax) await flush();
  }
  if (come !== size) throw wrongSize(come, size);
  if (waiting.length > 0) await flush();
  assert(written === size, "a part is written whole");
}

/** Turns errors of the system into failures; other errors stay as they are. */
async function onDisk<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error && "code" in error)) throw error;
    throw diskFailure(String(error.code), error.message, error);
  }
}

function wrongSize(size: number, announced: number): Failure {
  return new Failure("upload_rejected", {
    reason: `Invalid chunk. It has ${size} bytes, ${announced} were announced.`,
  });
}

function beingFinalized(): Failure {
  return new Failure("upload_rejected", { reason: "Invalid chunk. The upload is being finalized." });
}
