/**
 * The records of the journal: what the index lists from now on, and what it no longer lists.
 *
 * A record has what the filters of subscribers need, because a rollback deletes the rows. Records are written one after
 * the other into the bodies of `changes`; integers are little-endian. Rows of one bundle follow each other, so their
 * place is written once before them.
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
} from "../../../arweave/id.ts";
import type { Tag } from "../../../arweave/tags.ts";
import { transactionsPerBlockMax } from "../place.ts";
import { decodeTagBlob } from "../rows/tag-blob.ts";

/** A block of the chain. */
export type RecordedBlock = Readonly<{
  height: number;
  hash: BlockHash;
  /** Hash of the block before; "" for the first. */
  previous: BlockHash | "";
  /** Unix seconds. */
  timestamp: number;
}>;

/** Where a row is listed, or was. */
export type RowPlace = Readonly<{
  height: number;
  /** Undefined when the index did not have the block. */
  block: RecordedBlock | undefined;
  /** The bundle that contains the item; undefined for a transaction. */
  bundledIn: Id | undefined;
}>;

/**
 * pending: listed as pending from now on; also when a verified row replaces an announced one.
 * mined: listed in a block from now on; also when the id moves to another block or bundle.
 * forked: no longer in the block of `place`, which was forked away.
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
  /** Bytes of payload; 2^48 − 1 when it is more. */
  size: number;
  /** Where a mined row is, and where a forked row was; undefined for the others. */
  place: RowPlace | undefined;
  /** Where a mined row was before, when it moved. */
  from: RowPlace | undefined;
  /** Whether the row is pending from now on: a forked row may be. */
  isPending: boolean;
}>;

/** A block that is on the chain from now on, or no longer. */
export type BlockChange = Readonly<{ kind: "block" | "block_forked" }> & RecordedBlock;

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
  /** Offset of the parent item's header; null: directly in the transaction. */
  parent: number | null;
  /** The stored form of the tags. */
  tags: Uint8Array;
}>;

/** A block as the writer holds it. */
export type JournalBlock = Readonly<{
  height: number;
  hash: Uint8Array;
  previous: Uint8Array | null;
  timestamp: number;
}>;

/** A place as the writer holds it. */
export type JournalPlace = Readonly<{
  height: number;
  block: JournalBlock | undefined;
  bundle: Uint8Array | undefined;
}>;

/** `at` and `from` are the place and the former place of the rows after the record; they are not changes. */
const kinds = ["pending", "mined", "forked", "dropped", "block", "block_forked", "at", "from"] as const;
type RecordKind = (typeof kinds)[number];

const itemFlag = 1;
const targetFlag = 2;
const pendingFlag = 4;
const placeFlag = 8;
const fromFlag = 16;
const nameBytes = 32;
/** A size has six bytes. A pending transaction may state more; this is written then. */
const sizeMax = 2 ** 48 - 1;
/** Kind, flags, size, and the length of the tags. */
const rowHeadBytes = 1 + 1 + 6 + 4;
/** Height, timestamp, and the length of each hash. */
const blockHeadBytes = 4 + 6 + 1 + 1;

const blockFlag = 1;
const bundleFlag = 2;
/** Kind, flags, and height. */
const placeHeadBytes = 1 + 1 + 4;

export function heightOfHigh(high: number): number {
  return Math.floor(high / transactionsPerBlockMax);
}

/** Writes a change of a row. @param has - Which places of the row were written before it. */
export function rowRecord(
  kind: RowChangeKind,
  row: JournalRow,
  has: Readonly<{ isPending: boolean; place: boolean; from: boolean }>,
): Buffer {
  const { target, tags } = row;
  const targetBytes = target === null ? 0 : 2 + target.length;
  const record = Buffer.allocUnsafe(rowHeadBytes + 2 * nameBytes + targetBytes + tags.length);
  const flags =
    (row.sig > 0 ? itemFlag : 0) |
    (target === null ? 0 : targetFlag) |
    (has.isPending ? pendingFlag : 0) |
    (has.place ? placeFlag : 0) |
    (has.from ? fromFlag : 0);
  let at = record.writeUInt8(kinds.indexOf(kind), 0);
  at = record.writeUInt8(flags, at);
  at = record.writeUIntLE(Math.min(row.size, sizeMax), at, 6);
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
export function blockRecord(kind: BlockChange["kind"], block: JournalBlock): Buffer {
  return Buffer.concat([Uint8Array.of(kinds.indexOf(kind)), blockBytes(block)]);
}

/** Writes the place, or the former place, of the rows after it. */
export function placeRecord(kind: "at" | "from", { height, block, bundle }: JournalPlace): Buffer {
  const head = Buffer.allocUnsafe(placeHeadBytes);
  const flags = (block === undefined ? 0 : blockFlag) | (bundle === undefined ? 0 : bundleFlag);
  head.writeUInt32LE(height, head.writeUInt8(flags, head.writeUInt8(kinds.indexOf(kind), 0)));
  return Buffer.concat([head, block === undefined ? noBytes : blockBytes(block), bundle ?? noBytes]);
}

const noBytes = new Uint8Array(0);

function blockBytes({ height, hash, previous, timestamp }: JournalBlock): Buffer {
  const head = Buffer.allocUnsafe(blockHeadBytes);
  let at = head.writeUInt32LE(height, 0);
  at = head.writeUIntLE(timestamp, at, 6);
  at = head.writeUInt8(hash.length, at);
  head.writeUInt8(previous?.length ?? 0, at);
  return Buffer.concat([head, hash, previous ?? noBytes]);
}

/** Reads the records of a body; an empty body is a reset. @throws RangeError for a damaged body. */
export function readRecords(body: Uint8Array): readonly Change[] {
  if (body.length === 0) return [{ kind: "reset" }];
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const changes: Change[] = [];
  const places: Places = { at: undefined, from: undefined };
  for (let at = 0; at < bytes.length; ) {
    const kind = kinds[bytes.readUInt8(at)];
    if (kind === undefined) throw new RangeError("a record of the journal has no known kind");
    at = readRecord(kind, bytes, at + 1, places, changes);
  }
  return changes;
}

type Places = { at: RowPlace | undefined; from: RowPlace | undefined };

/** Adds what one record says. @returns The end of the record. */
function readRecord(kind: RecordKind, bytes: Buffer, at: number, places: Places, changes: Change[]): number {
  switch (kind) {
    case "at":
    case "from": {
      const { value, end } = readPlace(bytes, at);
      places[kind] = value;
      return end;
    }
    case "block":
    case "block_forked": {
      const { value, end } = readBlock(bytes, at);
      changes.push({ kind, ...value });
      return end;
    }
    default: {
      const { value, end } = readRow(kind, bytes, at, places);
      changes.push(value);
      return end;
    }
  }
}

type Read<Value> = Readonly<{ value: Value; end: number }>;

function readPlace(bytes: Buffer, at: number): Read<RowPlace> {
  const flags = bytes.readUInt8(at);
  const height = bytes.readUInt32LE(at + 1);
  const start = at + placeHeadBytes - 1;
  const block = (flags & blockFlag) === 0 ? undefined : readBlock(bytes, start);
  const middle = block?.end ?? start;
  const end = (flags & bundleFlag) === 0 ? middle : middle + nameBytes;
  const bundledIn = end === middle ? undefined : idFromBytes(bytes.subarray(middle, end));
  return { value: { height, block: block?.value, bundledIn }, end };
}

function readBlock(bytes: Buffer, at: number): Read<RecordedBlock> {
  const start = at + blockHeadBytes;
  const middle = start + bytes.readUInt8(start - 2);
  const end = middle + bytes.readUInt8(start - 1);
  const hash = blockHashFromBytes(bytes.subarray(start, middle));
  const previous = end === middle ? "" : blockHashFromBytes(bytes.subarray(middle, end));
  return { value: { height: bytes.readUInt32LE(at), hash, previous, timestamp: bytes.readUIntLE(at + 4, 6) }, end };
}

function readRow(kind: RowChangeKind, bytes: Buffer, at: number, places: Places): Read<RowChange> {
  const flags = bytes.readUInt8(at);
  const ids = at + rowHeadBytes - 1;
  const owner = ids + nameBytes;
  const hasTarget = (flags & targetFlag) !== 0;
  const target = owner + nameBytes + (hasTarget ? 2 : 0);
  const tags = target + (hasTarget ? bytes.readUInt16LE(target - 2) : 0);
  const end = tags + bytes.readUInt32LE(at + 7);
  if (end > bytes.length) throw new RangeError("a record of the journal is cut off");
  const value = {
    kind,
    id: idFromBytes(bytes.subarray(ids, owner)),
    isItem: (flags & itemFlag) !== 0,
    ownerAddress: addressFromBytes(bytes.subarray(owner, owner + nameBytes)),
    target: hasTarget ? addressOfKey(bytes.subarray(target, tags)) : "",
    tags: decodeTagBlob(bytes.subarray(tags, end)),
    size: bytes.readUIntLE(at + 1, 6),
    place: (flags & placeFlag) === 0 ? undefined : places.at,
    from: (flags & fromFlag) === 0 ? undefined : places.from,
    isPending: (flags & pendingFlag) !== 0,
  };
  return { value, end };
}
