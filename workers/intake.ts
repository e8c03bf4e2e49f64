/**
 * Thread entry: takes data items in. Verifies each in one walk over its bytes and writes them to the disk.
 *
 * Small items come whole and in batches, which share one write and one synchronisation. Large ones come in pieces to
 * one and the same thread, which keeps what it needs between them.
 * Source: design.md §9; reference/upload.md §3.
 * @module
 */
import { checkItem, type ItemHeader, readItemHeader, verifyItem } from "../src/arweave/data-item.ts";
import { createItemHash, type ItemHash } from "../src/arweave/item-hash.ts";
import { Failure } from "../src/failures.ts";
import { concatBytes } from "../src/lib/bytes.ts";
import type {
  EndItemJob,
  FeedItemAnswer,
  FeedItemJob,
  IntakeAnswer,
  NotTaken,
  TakeItemsJob,
} from "../src/store/intake-jobs.ts";
import {
  type GrowingFile,
  itemFolder,
  makeItemFolders,
  openGrowingFile,
  openSegments,
  type Segments,
} from "../src/store/item-files.ts";
import type { PendingRow } from "../src/store/rows.ts";

/** An item that comes in pieces. */
type Session = {
  readonly file: GrowingFile;
  readonly size: number | undefined;
  /** What came of the header so far; empty once it is read. */
  begun: Uint8Array;
  header: ItemHeader | undefined;
  hash: ItemHash | undefined;
};

const segments = new Map<string, Segments>();
const sessions = new Map<string, Session>();

/** Verifies whole items and writes those that are valid. */
export function takeItems({ folder, items }: TakeItemsJob): IntakeAnswer[] {
  const checked = items.map((bytes) => ({ bytes, item: checkItem(bytes, "strict") }));
  const valid = checked.filter(({ item }) => item.kind === "item").map(({ bytes }) => bytes);
  const written = onDisk(() => (valid.length === 0 ? undefined : segmentsIn(folder).append(valid)));
  if (written !== undefined && "kind" in written)
    return checked.map(({ item }) => (item.kind === "invalid" ? item : written));
  let at = 0;
  return checked.map(({ bytes, item }): IntakeAnswer => {
    if (item.kind === "invalid") return item;
    const offset = written?.offsets[at] ?? 0;
    at += 1;
    const row = rowOf(item.header, bytes.length, item.digest);
    return { kind: "written", item: { file: written?.file ?? "", offset, size: bytes.length, row } };
  });
}

/** Takes the next bytes of an item; the first ones open it. What they make of it that is no item is let go at once. */
export function feedItem({ folder, session: name, piece, size }: FeedItemJob): FeedItemAnswer {
  return keptOrDropped(name, () => {
    const session = sessions.get(name) ?? openSession(folder, name, size);
    session.file.append(piece);
    const reason = walk(session, piece);
    return reason === undefined ? { kind: "fed" } : { kind: "invalid", reason };
  });
}

/** Ends an item: answers whether it is one, and where it lies on the disk. */
export function finishItem({ session: name }: EndItemJob): IntakeAnswer {
  const session = sessions.get(name);
  if (session === undefined) throw new Failure("worker_failed", { reason: "the item is not under way here" });
  return keptOrDropped(name, () => {
    const { header, hash, file } = session;
    if (header === undefined || hash === undefined) return invalid("the item is cut short");
    if (session.size !== undefined && file.size() !== session.size)
      return invalid(`it has ${file.size()} bytes, ${session.size} were announced`);
    const { message, digest } = hash.finish();
    const verdict = verifyItem(header, message);
    if (!verdict.valid) return invalid(verdict.reason);
    file.sync();
    file.close();
    sessions.delete(name);
    const size = file.size();
    return { kind: "written", item: { file: file.name, offset: 0, size, row: rowOf(header, size, digest) } };
  });
}

/** Lets an item go that will not be finished; nothing of it stays. */
export function dropItem({ session: name }: EndItemJob): void {
  const session = sessions.get(name);
  sessions.delete(name);
  session?.file.remove();
}

/** Answers, and so shows that the thread starts and works. */
export function ping(): "ok" {
  return "ok";
}

function openSession(folder: string, name: string, size: number | undefined): Session {
  makeItemFolders(folder);
  const file = openGrowingFile(folder, itemFolder, name);
  const session = { file, size, begun: new Uint8Array(0), header: undefined, hash: undefined };
  sessions.set(name, session);
  return session;
}

/** @returns Why this is no item, as soon as it is seen. */
function walk(session: Session, piece: Uint8Array): string | undefined {
  if (session.hash !== undefined) {
    session.hash.update(piece);
    return undefined;
  }
  session.begun = concatBytes([session.begun, piece]);
  const read = readItemHeader(session.begun, "strict", session.size);
  if (read.kind === "invalid") return read.reason;
  if (read.kind === "need") return undefined;
  const { header } = read;
  session.header = header;
  session.hash = createItemHash(
    header,
    session.size === undefined ? undefined : session.size - header.headerSize,
  );
  session.hash.update(session.begun.subarray(header.headerSize));
  // The header's fields are views of these bytes, and nothing else of them is needed.
  session.begun = new Uint8Array(0);
  return undefined;
}

function invalid(reason: string): NotTaken {
  return { kind: "invalid", reason };
}

/** A step of an item that comes in pieces: whatever ends it badly lets the item go. */
function keptOrDropped<Answer extends Readonly<{ kind: string }>>(
  session: string,
  step: () => Answer | NotTaken,
): Answer | NotTaken {
  try {
    const answer = onDisk(step);
    if (answer.kind === "invalid" || answer.kind === "unwritten") dropItem({ session });
    return answer;
  } catch (error) {
    dropItem({ session });
    throw error;
  }
}

/** What the system refuses is an answer, because an error crosses threads without its code. */
function onDisk<Answer>(step: () => Answer): Answer | NotTaken {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return { kind: "unwritten", reason: error.message };
  }
}

/** Views of a batch would cross with all of it. */
function rowOf(header: ItemHeader, itemSize: number, digest: Uint8Array): PendingRow {
  const { id, signatureType, owner, ownerAddress, target, anchor, tags, headerSize } = header;
  const size = itemSize - headerSize;
  return {
    ...{
      kind: "item",
      id,
      signatureType,
      owner: owner.slice(),
      ownerAddress,
      target,
      anchor,
      tags,
      headerSize,
    },
    ...{ size, digest: digest.slice(), verified: true },
  };
}

function segmentsIn(folder: string): Segments {
  const known = segments.get(folder);
  if (known !== undefined) return known;
  makeItemFolders(folder);
  const opened = openSegments(folder, () => crypto.randomUUID());
  segments.set(folder, opened);
  return opened;
}
