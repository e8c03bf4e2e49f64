/**
 * Writes parts of multipart uploads to their files: concurrently, at any offset, until a caller needs exclusive access.
 *
 * A file is open while it has users. Its disk space is the system's count, so that repeated bytes count once, and
 * those of interrupted parts count too.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { ignoreRejection, linkedController, untilStopped } from "../../lib/stop.ts";
import type { PartFile, PartFiles } from "../../store/uploads/part-files.ts";
import { diskFailure, type QuotaHeld, type UploadQuota } from "../intake/upload-quota.ts";
import type { MultipartUpload } from "./multipart-rows.ts";

/** An arriving part. */
export type ArrivingPart = Readonly<{
  /** Offset in the item. Bytes. */
  start: number;
  /** Announced size. Bytes. */
  size: number;
  /** Its bytes, in any pieces. */
  pieces: AsyncIterator<Uint8Array>;
}>;

export type PartWriters = Readonly<{
  /**
   * Writes a part. When the promise resolves, its bytes are durable.
   *
   * @param check - Called when exclusive access would stop this writer, before the first byte is written. An earlier
   *   check may have been before the file became that of an item. Returns the upload.
   * @throws Failure `no_space` {reason}, `disk_failed` {reason}, `busy`; `upload_rejected` {reason} when the file is
   *   used exclusively, or when the part has another size than announced; errors of the pieces and of `check`; the
   *   signal's reason.
   */
  write: (upload: string, part: ArrivingPart, signal: AbortSignal, check: () => Promise<Writable>) => Promise<void>;
  /** Stops the writers of a file, and runs work with exclusive access to it. */
  alone: <Result>(upload: string, work: (file: PartFile) => Promise<Result>) => Promise<Result>;
  /** Path of an upload's file within the folder of uploads. */
  nameOf: (upload: string) => string;
  /** Removes a file. */
  remove: (upload: string) => Promise<void>;
  /** Counts the disk space of an existing file. */
  count: (upload: Pick<MultipartUpload, "id" | "paid">) => Promise<void>;
  /** Ends the count of a file that belongs to an item now. */
  forget: (upload: string) => void;
  /** Whether a file has users. */
  isOpen: (upload: string) => boolean;
  /** Disk space of all counted files. Bytes. */
  diskBytes: () => number;
  /** Disk space of those that are not paid for. Bytes. */
  unpaidDiskBytes: () => number;
}>;

/** Concurrent writers; each has one or two megabytes in memory. */
const writersMax = 256;

/** Limits of one write: bytes, and pieces (POSIX allows 1,024 in a call). */
const writeBytes = 2 ** 20;
const piecesMax = 512;

/** Bytes between two syncs of a large part, so that its last sync is short. */
const flushBytes = 32 * 2 ** 20;

/** An upload that may be written. */
type Writable = Pick<MultipartUpload, "paid">;

/** A file with users. */
type Open = {
  readonly file: Promise<PartFile>;
  /** Aborted when a caller needs exclusive access. */
  readonly stop: AbortController;
  users: number;
  readonly left: PromiseWithResolvers<void>;
};

export function createPartWriters(files: PartFiles, quota: UploadQuota): PartWriters {
  const open = new Map<string, Open>();
  const tally = createTally();
  let writing = 0;

  function enter(upload: string): Open {
    const known = open.get(upload);
    if (known?.stop.signal.aborted === true) throw beingFinalized();
    const entry = known ?? createOpen(files.open(upload));
    open.set(upload, entry);
    entry.users += 1;
    return entry;
  }

  /**
   * @param writable - The upload if the user was allowed to write.
   * @returns The growth of the file's disk space since the last writer left.
   */
  async function leave(upload: string, entry: Open, writable: Writable | undefined): Promise<number> {
    const file = await opened(entry.file);
    try {
      if (file === undefined || writable === undefined) return 0;
      return tally.set(upload, await file.diskBytes(), writable.paid !== undefined);
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

  const write: PartWriters["write"] = async (upload, part, signal, check) => {
    if (writing >= writersMax) throw new Failure("busy", { writing });
    const held = quota.take(part.size);
    writing += 1;
    let grown = 0;
    try {
      const entry = enter(upload);
      const { controller, unlink } = linkedController(signal, entry.stop.signal);
      let writable: Writable | undefined;
      try {
        writable = await check();
        await onDisk(() => writePart(entry.file, part, held, controller.signal));
      } finally {
        unlink();
        grown = await leave(upload, entry, writable);
      }
    } finally {
      writing -= 1;
      held.release(grown);
    }
  };

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
        tally.set(upload, await file.diskBytes());
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
      tally.set(upload, 0);
    },
    count: async ({ id, paid }) => void tally.set(id, await files.diskBytes(id), paid !== undefined),
    forget: (upload) => void tally.set(upload, 0),
    isOpen: (upload) => open.has(upload),
    diskBytes: tally.total,
    unpaidDiskBytes: tally.unpaid,
  };
}

function createOpen(file: Promise<PartFile>): Open {
  ignoreRejection(file); // every user awaits the promise
  return { file, stop: new AbortController(), users: 0, left: Promise.withResolvers<void>() };
}

/** Counts bytes by upload, their sum, and that of unpaid uploads. */
function createTally() {
  const counted = new Map<string, Readonly<{ bytes: number; isPaid: boolean }>>();
  let [total, unpaid] = [0, 0];
  return {
    total: () => total,
    unpaid: () => unpaid,
    /**
     * @param isPaid - As before, if omitted.
     * @returns The difference.
     */
    set: (upload: string, bytes: number, isPaid = counted.get(upload)?.isPaid ?? false): number => {
      const before = counted.get(upload) ?? { bytes: 0, isPaid };
      total += bytes - before.bytes;
      if (!before.isPaid) unpaid -= before.bytes;
      if (!isPaid) unpaid += bytes;
      if (bytes === 0) counted.delete(upload);
      else counted.set(upload, { bytes, isPaid });
      return bytes - before.bytes;
    },
  };
}

/** The open file; `undefined` if it could not be opened, which its users see as a rejection. */
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
    throw new Failure("disk_failed", { reason: "a concurrent part of the same file was lost" });
}

async function writePieces(file: PartFile, part: ArrivingPart, held: QuotaHeld, signal: AbortSignal): Promise<void> {
  const { start, size, pieces } = part;
  let waiting: Uint8Array[] = [];
  let written = 0;
  let received = 0;
  let flushed = 0;
  const flush = async () => {
    // Not abortable: exclusive access relies on the end of every write.
    await file.write(waiting, start + written);
    held.wrote(received - written);
    written = received;
    waiting = [];
    if (written - flushed < flushBytes) return;
    flushed = written;
    ignoreRejection(file.sync()); // the file counts failures, which are checked at the end
  };
  for (;;) {
    const next = await untilStopped(pieces.next(), signal);
    if (next.done === true) break;
    received += next.value.length;
    if (received > size) throw wrongSize(received, size);
    waiting.push(next.value);
    if (received - written >= writeBytes || waiting.length === piecesMax) await flush();
  }
  if (received !== size) throw wrongSize(received, size);
  if (waiting.length > 0) await flush();
  assert(written === size, "a part is written whole");
}

/** Converts errors of the system into failures; other errors stay as they are. */
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
