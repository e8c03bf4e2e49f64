/**
 * Thread entry: intake of data items. Verifies each in one pass over its bytes and writes it to disk.
 *
 * Small items arrive complete and in batches, which share one write and one fdatasync. The pieces of a large item go to
 * the same thread, which holds the item's state between them.
 * Source: docs/reference/upload.md#from-a-post-to-a-receipt.
 * @module
 */
import {
  checkItem,
  createContentHash,
  createMessageHash,
  type ItemHeader,
  type PayloadHash,
  readItemHeader,
  verifyItem,
} from "../src/arweave/data-item.ts";
import { type Signing, signingOfItem } from "../src/arweave/signing.ts";
import { assert } from "../src/lib/assert.ts";
import { concatBytes } from "../src/lib/bytes.ts";
import { ignoreRejection } from "../src/lib/stop.ts";
import type { PendingRow } from "../src/store/index/index-types.ts";
import {
  type ItemFile,
  itemFolder,
  makeItemFolders,
  openItemFile,
  openSegments,
  removeItemFile,
  type Segments,
} from "../src/store/uploads/item-files.ts";
import { pendingRowOf } from "../src/store/uploads/item-walk.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** Where an item was written. */
export type WrittenItem = Readonly<{
  /** Below the folder of uploads. */
  file: string;
  /** The byte of the file at which the item begins. */
  offset: number;
  /** Of the whole item. Bytes. */
  size: number;
  /** The item's row for the index, as for items in no block; its signature was verified. */
  row: PendingRow;
  signing: Signing;
}>;

/** Why an item was not accepted, with a readable reason. */
export type NotTaken =
  /** The bytes are not a valid data item. One lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The item could not be written: code and message of the system's error. */
  | Readonly<{ kind: "unwritten"; code: string; reason: string }>
  /** The thread with its first bytes has ended. */
  | Readonly<{ kind: "lost"; reason: string }>;

/** The outcome of an item. */
export type IntakeResult = Readonly<{ kind: "written"; item: WrittenItem }> | NotTaken;

/** Complete small items. */
export type TakeItemsJob = Readonly<{ folder: string; items: readonly Uint8Array[] }>;

/** Begins an item that comes in pieces. */
export type BeginItemJob = Readonly<{
  folder: string;
  /** A unique name of the item and its file. */
  session: string;
  /** Size of the complete item, if known. Bytes. */
  size: number | undefined;
}>;

/** The next bytes of an item; they must not change before the result. */
export type FeedItemJob = Readonly<{ session: string; pieces: readonly Uint8Array[] }>;

/** The next bytes of a payload whose SHA-256 is computed beside the rest. */
export type DigestItemJob = FeedItemJob &
  Readonly<{
    /** Offset of the bytes in the payload; 0 begins the digest. */
    start: number;
  }>;

/** Ends or drops a digest. */
export type EndDigestJob = Readonly<{ session: string }>;

/** The SHA-256 of all bytes. */
export type EndDigestResult = Readonly<{ kind: "digest"; digest: Uint8Array }>;

/** The item can continue, or why it was not accepted. */
export type FeedItemResult = Readonly<{ kind: "fed" }> | NotTaken;

/** Ends an item that arrived in pieces. */
export type FinishItemJob = Readonly<{
  session: string;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
}>;

/** Drops an item in any state. */
export type DropItemJob = Readonly<{ folder: string; session: string }>;

/** An item that arrives in pieces. */
type Session = {
  readonly folder: string;
  readonly name: string;
  readonly file: ItemFile;
  readonly size: number | undefined;
  /** The received bytes of the header; empty once it is parsed. */
  begun: Uint8Array;
  header: ItemHeader | undefined;
  message: PayloadHash | undefined;
};

/** Folders of uploads in which this thread has created the subfolders. */
const made = new Set<string>();
const segments = new Map<string, Segments>();
const sessions = new Map<string, Session>();
/** Digests of payloads, with the received bytes of each; any thread may process the item itself. */
const digests = new Map<string, { readonly hash: PayloadHash; come: number }>();

/** Verifies whole items and writes those that are valid. */
export function takeItems({ folder, items }: TakeItemsJob): IntakeResult[] {
  const checked = items.map((bytes) => ({ bytes, item: checkItem(bytes, "strict") }));
  const valid = checked.filter(({ item }) => item.kind === "item").map(({ bytes }) => bytes);
  const written = valid.length === 0 ? { file: "", offsets: [] } : appended(folder, valid);
  let at = 0;
  return checked.map(({ bytes, item }): IntakeResult => {
    if (item.kind === "invalid") return item;
    if ("kind" in written) return written;
    const offset = written.offsets[at] ?? 0;
    at += 1;
    const row = pendingRowOf(item.header, bytes.length, item.digest);
    const signing = signingOfItem(item.header, item.message);
    return { kind: "written", item: { file: written.file, offset, size: bytes.length, row, signing } };
  });
}

/** Begins an item that comes in pieces. */
export async function beginItem({ folder, session: name, size }: BeginItemJob): Promise<FeedItemResult> {
  try {
    makeFoldersOnce(folder);
    const file = await openItemFile(folder, name);
    const nothing = { begun: new Uint8Array(0), header: undefined, message: undefined };
    sessions.set(name, { folder, name, file, size, ...nothing });
    return { kind: "fed" };
  } catch (error) {
    return unwritten(error);
  }
}

/** Processes the next bytes of an item. The item is dropped as soon as it is invalid. */
export function feedItem({ session, pieces }: FeedItemJob): Promise<FeedItemResult> {
  return within(session, async (open) => {
    const written = open.file.append(pieces);
    ignoreRejection(written); // awaited below, unless hashing throws
    // Hashed while the system writes.
    let reason: string | undefined;
    for (const piece of pieces) {
      reason ??= walk(open, piece);
      // Lets the next write begin.
      await new Promise(setImmediate);
    }
    await written;
    return reason === undefined ? { kind: "fed" } : invalid(reason);
  });
}

/** Adds the next bytes to the SHA-256 of a payload. */
export function digestItem({ session, pieces, start }: DigestItemJob): FeedItemResult {
  const digest = digests.get(session) ?? { hash: createContentHash(), come: 0 };
  // A replaced thread lacks the earlier bytes.
  if (digest.come !== start) return lost;
  digests.set(session, digest);
  for (const piece of pieces) {
    digest.hash.update(piece);
    digest.come += piece.length;
  }
  return { kind: "fed" };
}

/** Ends a digest. */
export function endDigest({ session }: EndDigestJob): EndDigestResult | NotTaken {
  const digest = digests.get(session);
  digests.delete(session);
  return digest === undefined ? lost : { kind: "digest", digest: digest.hash.finish() };
}

/** Ends an item: verifies it, and returns its place on disk. */
export function finishItem({ session, digest }: FinishItemJob): Promise<IntakeResult> {
  return within(session, async ({ header, message, file, size: announced }) => {
    const size = file.size();
    if (header === undefined || message === undefined) return invalid("the item is cut short");
    if (announced !== undefined && size !== announced)
      return invalid(`it has ${size} bytes, ${announced} were announced`);
    const signed = message.finish();
    const verdict = verifyItem(header, signed);
    if (!verdict.valid) return invalid(verdict.reason);
    await file.sync();
    await file.close();
    sessions.delete(session);
    const row = pendingRowOf(header, size, digest);
    const signing = signingOfItem(header, signed);
    return { kind: "written", item: { file: file.name, offset: 0, size, row, signing } };
  });
}

/** Drops an item that will not be finished, also one of another thread, and removes its file. */
export async function dropItem({ folder, session: name }: DropItemJob): Promise<void> {
  const session = sessions.get(name);
  sessions.delete(name);
  await session?.file.close();
  await removeItemFile(folder, `${itemFolder}/${name}`);
}

/** Appends a batch. @returns The places, or the system's error. */
function appended(folder: string, items: readonly Uint8Array[]): ReturnType<Segments["append"]> | NotTaken {
  try {
    return segmentsIn(folder).append(items);
  } catch (error) {
    return unwritten(error);
  }
}

/** Runs a step of an item that arrives in pieces; drops the item on any failure. */
async function within<Result extends Readonly<{ kind: string }>>(
  name: string,
  step: (session: Session) => Promise<Result | NotTaken>,
): Promise<Result | NotTaken> {
  const session = sessions.get(name);
  if (session === undefined) return lost;
  let isStored = false;
  try {
    const response = await step(session);
    isStored = response.kind !== "invalid";
    return response;
  } catch (error) {
    return unwritten(error);
  } finally {
    if (!isStored) await dropItem({ folder: session.folder, session: name });
  }
}

const lost: NotTaken = { kind: "lost", reason: "its thread ended" };

/** System errors are results, because errors lose their code between threads. */
function unwritten(error: unknown): NotTaken {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) throw error;
  return { kind: "unwritten", code: String(error.code), reason: error.message };
}

/** Parses and hashes the next piece. @returns Why the item is invalid, as soon as that is known. */
function walk(session: Session, piece: Uint8Array): string | undefined {
  if (session.message !== undefined) {
    session.message.update(piece);
    return undefined;
  }
  session.begun = concatBytes([session.begun, piece]);
  const read = readItemHeader(session.begun, "strict", session.size);
  if (read.kind === "invalid") return read.reason;
  if (read.kind === "need") return undefined;
  const { headerSize } = read.header;
  // A copy: views would hold the complete first piece in memory until the item ends.
  const copied = readItemHeader(session.begun.slice(0, headerSize), "strict", session.size);
  assert(copied.kind === "header", "a header that was read can be read again");
  session.header = copied.header;
  const dataSize = session.size === undefined ? undefined : session.size - headerSize;
  session.message = createMessageHash(copied.header, dataSize);
  session.message.update(session.begun.subarray(headerSize));
  session.begun = new Uint8Array(0);
  return undefined;
}

function invalid(reason: string): NotTaken {
  return { kind: "invalid", reason };
}

/**
 * Each thread creates the folders itself: those of another thread may not be durable yet, and failures are retried.
 */
function makeFoldersOnce(folder: string): void {
  if (made.has(folder)) return;
  makeItemFolders(folder);
  made.add(folder);
}

function segmentsIn(folder: string): Segments {
  const known = segments.get(folder);
  if (known !== undefined) return known;
  makeFoldersOnce(folder);
  const opened = openSegments(folder, () => crypto.randomUUID());
  segments.set(folder, opened);
  return opened;
}
