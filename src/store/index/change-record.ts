/**
 * The records of the journal: what the index lists from now on, and what it no longer lists.
 *
 * A record has what the filters of subscribers need, because a rollback deletes the rows. Records are written one after
 * the other into the bodies of `changes`; integers are little-endian.
 * Source: docs/reference/index-layout.md#journal.
 * @module
 */
import {
  type Address,
  addressFromBytes,
  addressOfKey,
  type BlockHash,
  blockHashFromBytes,
  type Id,
  idFromBytes,
} from "../../arweave/id.ts";
import type { Tag } from "../../arweave/tags.ts";
import { pendingHeight, transactionsPerBlockMax } from "./place.ts";
import { decodeTagBlob } from "./tag-blob.ts";

/**
 * pending: listed as pending from now on; also when a verified row replaces an announced one.
 * mined: listed in a block from now on; also when the id moves to another block.
 * forked: no longer in the block at `height`, which was forked away.
 * dropped: no longer pending, and in no block.
 */
export type RowChangeKind = "pending" | "mined" | "forked" | "dropped";

/** A transaction or a data item whose canonical place changed. */
export type RowChange = Readonly<{
  kind: RowChangeKind;
  id: Id;
  isItem: boolean;
  ownerAddress: Address;
  /** "" for none. */
  target: string;
  tags: readonly Tag[];
  /** Bytes of payload. */
  size: number;
  /** Of a mined row its block, of a forked row the block that it was in. */
  height: number | undefined;
  /** Whether the row is pending from now on: a forked row may be. */
  isPending: boolean;
}>;

/** A block that is on the chain from now on, or no longer. */
export type BlockChange = Readonly<{
  kind: "block" | "block_forked";
  height: number;
  hash: BlockHash;
  /** Unix seconds. */
  timestamp: number;
}>;

/** Changes that are not in the journal one by one. */
export type Reset = Readonly<{ kind: "reset" }>;

export type Change = RowChange | BlockChange | Reset;

/** A row as the writer holds it. */
export type JournalRow = Readonly<{
  /** Upper half of its place. */
  high: number;
  low: number;
  id: Uint8Array;
  /** The owner's address, 32 bytes. */
  address: Uint8Array;
  target: Uint8Array | null;
  /** Signature type; negative for a transaction. */
  sig: number;
  size: number;
  /** The stored form of the tags. */
  tags: Uint8Array;
}>;

/** A block as the writer holds it. */
export type JournalBlock = Readonly<{ height: number; hash: Uint8Array; timestamp: number }>;

const kinds = ["pending", "mined", "forked", "dropped", "block", "block_forked"] as const;
type RecordKind = (typeof kinds)[number];

const itemFlag = 1;
const targetFlag = 2;
const pendingFlag = 4;
const nameBytes = 32;
/** Kind, flags, height, size, and the length of the tags. */
const rowHeadBytes = 1 + 1 + 4 + 6 + 4;
/** Kind, height, timestamp, and the length of the hash. */
const blockHeadBytes = 1 + 4 + 6 + 1;

export function heightOfHigh(high: number): number {
  return Math.floor(high / transactionsPerBlockMax);
}

/** Writes a change of a row. @param height - As in RowChange. */
export function rowRecord(
  kind: RowChangeKind,
  row: JournalRow,
  { height, isPending }: Pick<RowChange, "height" | "isPending">,
): Buffer {
  const { target, tags } = row;
  const targetBytes = target === null ? 0 : 2 + target.length;
  const record = Buffer.allocUnsafe(rowHeadBytes + 2 * nameBytes + targetBytes + tags.length);
  const flags = (row.sig > 0 ? itemFlag : 0) | (target === null ? 0 : targetFlag) | (isPending ? pendingFlag : 0);
  let at = record.writeUInt8(kinds.indexOf(kind), 0);
  at = record.writeUInt8(flags, at);
  at = record.writeUInt32LE(height ?? pendingHeight, at);
  at = record.writeUIntLE(row.size, at, 6);
  at = record.writeUInt32LE(tags.length, at);
  record.set(row.id, at);
  record.set(row.address, at + nameBytes);
  at += 2 * nameBytes;
  if (target !== null) {
    at = record.writeUInt16LE(target.length, at);
    record.set(target, at);
    at += target.length;
  }
  record.set(tags, at);
  return record;
}

/** Writes a change of the chain. */
export function blockRecord(kind: BlockChange["kind"], { height, hash, timestamp }: JournalBlock): Buffer {
  const record = Buffer.allocUnsafe(blockHeadBytes + hash.length);
  let at = record.writeUInt8(kinds.indexOf(kind), 0);
  at = record.writeUInt32LE(height, at);
  at = record.writeUIntLE(timestamp, at, 6);
  at = record.writeUInt8(hash.length, at);
  record.set(hash, at);
  return record;
}

/** Reads the records of a body; an empty body is a reset. @throws RangeError for a damaged body. */
export function readRecords(body: Uint8Array): readonly Change[] {
  if (body.length === 0) return [{ kind: "reset" }];
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const changes: Change[] = [];
  for (let at = 0; at < bytes.length; ) {
    const kind = kinds[bytes.readUInt8(at)];
    if (kind === undefined) throw new RangeError("a record of the journal has no known kind");
    const { change, end } = isBlockKind(kind) ? readBlock(kind, bytes, at + 1) : readRow(kind, bytes, at + 1);
    changes.push(change);
    at = end;
  }
  return changes;
}

function isBlockKind(kind: RecordKind): kind is BlockChange["kind"] {
  return kind === "block" || kind === "block_forked";
}

type ReadRecord = Readonly<{ change: Change; end: number }>;

function readBlock(kind: BlockChange["kind"], bytes: Buffer, at: number): ReadRecord {
  const start = at + blockHeadBytes - 1;
  const end = start + bytes.readUInt8(start - 1);
  const hash = blockHashFromBytes(bytes.subarray(start, end));
  return { change: { kind, height: bytes.readUInt32LE(at), hash, timestamp: bytes.readUIntLE(at + 4, 6) }, end };
}

function readRow(kind: RowChangeKind, bytes: Buffer, at: number): ReadRecord {
  const flags = bytes.readUInt8(at);
  const height = bytes.readUInt32LE(at + 1);
  const ids = at + rowHeadBytes - 1;
  const owner = ids + nameBytes;
  const hasTarget = (flags & targetFlag) !== 0;
  const target = owner + nameBytes + (hasTarget ? 2 : 0);
  const tags = target + (hasTarget ? bytes.readUInt16LE(target - 2) : 0);
  const end = tags + bytes.readUInt32LE(at + 11);
  if (end > bytes.length) throw new RangeError("a record of the journal is cut off");
  const change = {
    kind,
    id: idFromBytes(bytes.subarray(ids, owner)),
    isItem: (flags & itemFlag) !== 0,
    ownerAddress: addressFromBytes(bytes.subarray(owner, owner + nameBytes)),
    target: hasTarget ? addressOfKey(bytes.subarray(target, tags)) : "",
    tags: decodeTagBlob(bytes.subarray(tags, end)),
    size: bytes.readUIntLE(at + 5, 6),
    height: height === pendingHeight ? undefined : height,
    isPending: (flags & pendingFlag) !== 0,
  };
  return { change, end };
}
