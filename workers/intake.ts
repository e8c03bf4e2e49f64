/**
 * Thread entry: takes data items in. Verifies each in one walk over its bytes and writes them to the disk.
 *
 * Small items come whole and in batches, which share one write and one synchronisation. Large ones come in pieces to
 * one and the same thread, which keeps what it needs between them.
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
  /** The item as the index has items that are in no block; its signature was checked. */
  row: PendingRow;
  signing: Signing;
}>;

/** Why an item was not taken; the reason is for people. */
export type NotTaken =
  /** It is no data item. One lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The disk did not take it: the name of the system's error, and what it said. */
  | Readonly<{ kind: "unwritten"; code: string; reason: string }>
  /** The thread that had its first bytes is gone. */
  | Readonly<{ kind: "lost"; reason: string }>;

/** What became of an item. */
export type IntakeResult = Readonly<{ kind: "written"; item: WrittenItem }> | NotTaken;

/** Whole items, small ones. */
export type TakeItemsJob = Readonly<{ folder: string; items: readonly Uint8Array[] }>;

/** Begins an item that comes in pieces. */
export type BeginItemJob = Readonly<{
  folder: string;
  /** Names the item among all that ever came, and its file. */
  session: string;
  /** Of the whole item, where it is known. Bytes. */
  size: number | undefined;
}>;

/** The next bytes of an item that was begun; they do not change until it is answered. */
export type FeedItemJob = Readonly<{ session: string; pieces: readonly Uint8Array[] }>;

/** The next bytes of a payload whose SHA-256 is computed beside the rest. */
export type DigestItemJob = FeedItemJob &
  Readonly<{
    /** Where they begin in the payload; 0 begins the digest. */
    start: number;
  }>;

/** Ends a digest, or leaves it. */
export type EndDigestJob = Readonly<{ session: string }>;

/** The SHA-256 of all that came. */
export type EndDigestResult = Readonly<{ kind: "digest"; digest: Uint8Array }>;

/** Goes on, or says why it need not. */
export type FeedItemResult = Readonly<{ kind: "fed" }> | NotTaken;

/** Ends an item that came in pieces. */
export type FinishItemJob = Readonly<{
  session: string;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
}>;

/** Lets an item go, wherever it stands. */
export type DropItemJob = Readonly<{ folder: string; session: string }>;

/** An item that comes in pieces. */
type Session = {
  readonly folder: string;
  readonly name: string;
  readonly file: ItemFile;
  readonly size: number | undefined;
  /** What came of the header so far; empty once it is read. */
  begun: Uint8Array;
  header: ItemHeader | undefined;
  message: PayloadHash | undefined;
};

/** Folders of uploads in which this thread has brought the folders of files to the disk. */
const made = new Set<string>();
const segments = new Map<string, Segments>();
const sessions = new Map<string, Session>();
/** Of payloads whose items other threads, or this one, take; and how much of each has come. */
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
    const row = rowOf(item.header, bytes.length, item.digest);
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

/** Takes the next bytes of an item. It is let go with the first of them that make it none. */
export function feedItem({ session, pieces }: FeedItemJob): Promise<FeedItemResult> {
  return within(session, async (open) => {
    const written = open.file.append(pieces);
    ignoreRejection(written); // awaited below, unless the walk throws
    // Hashed while the system writes.
    let reason: string | undefined;
    for (const piece of pieces) {
      reason ??= walk(open, piece);
      // The next write begins meanwhile.
      await new Promise(setImmediate);
    }
    await written;
    return reason === undefined ? { kind: "fed" } : invalid(reason);
  });
}

/** Takes the next bytes of a payload whose SHA-256 is asked for. */
export function digestItem({ session, pieces, start }: DigestItemJob): FeedItemResult {
  const digest = digests.get(session) ?? { hash: createContentHash(), come: 0 };
  // A thread that was replaced has not seen what came before.
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

/** Ends an item: answers whether it is one, and where it lies on the disk. */
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
    const row = rowOf(header, size, digest);
    const signing = signingOfItem(header, signed);
    return { kind: "written", item: { file: file.name, offset: 0, size, row, signing } };
  });
}

/** Lets an item go that will not be finished, also one that another thread began: nothing of it stays. */
export async function dropItem({ folder, session: name }: DropItemJob): Promise<void> {
  const session = sessions.get(name);
  sessions.delete(name);
  await session?.file.close();
  await removeItemFile(folder, `${itemFolder}/${name}`);
}

/** What is written of a batch; what the system says where it is not. */
function appended(folder: string, items: readonly Uint8Array[]): ReturnType<Segments["append"]> | NotTaken {
  try {
    return segmentsIn(folder).append(items);
  } catch (error) {
    return unwritten(error);
  }
}

/** A step of an item that comes in pieces: whatever ends it badly lets the item go. */
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

/** What the system refuses is an answer, because an error crosses threads without its code. */
function unwritten(error: unknown): NotTaken {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) throw error;
  return { kind: "unwritten", code: String(error.code), reason: error.message };
}

/** @returns Why this is no item, as soon as it is seen. */
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
  // A copy: views of the first piece would keep all of it for as long as the item takes.
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

/** Views of a batch would cross with all of it. */
function rowOf(header: ItemHeader, itemSize: number, digest: Uint8Array): PendingRow {
  const { id, signatureType, signature, owner, ownerAddress, target, anchor, tags, headerSize } = header;
  return {
    kind: "item",
    id,
    signatureType,
    owner: owner.slice(),
    ownerAddress,
    target,
    anchor,
    tags,
    headerSize,
    size: itemSize - headerSize,
    digest: digest.slice(),
    verified: true,
    signature: signature.slice(),
  };
}

/**
 * Each thread sees to it by itself: what another one has made may not be on the disk yet, and what failed once has to
 * be tried again.
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
