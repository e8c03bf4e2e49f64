/**
 * CDB64: a constant key-value file of any size, in which a few short reads find a key.
 *
 * The file starts with the offsets and slot counts of 256 tables (8 bytes each, little-endian). Records (key size,
 * value size, key, value) start at byte 4,096. A slot of a table has a hash and the offset of a record, or 0. The hash
 * of a key selects the table and the first slot. The file is not trusted: every number is checked against the file's
 * size before use, and the number of reads of a search is limited.
 * Source: docs/reference/formats.md#cdb64.
 * @module
 */
import { equalBytes } from "./bytes.ts";

export type Cdb64File = Readonly<{
  /** Size, bytes. */
  size: number;
  /** The first {@link cdb64HeaderSize} bytes. */
  header: Uint8Array;
  /** Returns exactly the bytes `[start, end)`, which the file has. */
  read: (start: number, end: number) => Promise<Uint8Array>;
}>;

export type Cdb64Response =
  | Readonly<{ kind: "value"; value: Uint8Array }>
  | Readonly<{ kind: "absent" }>
  | Readonly<{ kind: "malformed"; reason: string }>;

/** Size of the table of tables at the start of a file. Bytes. */
export const cdb64HeaderSize = 4_096;

const tableCount = 256n;
const slotSize = 16;
const recordHeadSize = 16;

/** Slots of one read. Half of a table's slots are empty, so a search rarely needs more than a few. */
const slotsAtOnce = 32;

/** Maximum number of reads of a search; a regular file needs two or three. */
const readsMax = 16;

/** Maximum size of a value; known values have less than 500 bytes. */
const valueSizeMax = 4_096;

const mask64 = (1n << 64n) - 1n;

/** The hash of a key, 64 bits: starts with 5381; for each byte, multiplies by 33, then XORs the byte. */
export function cdb64Hash(key: Uint8Array): bigint {
  let hash = 5_381n;
  for (const byte of key) hash = (((hash << 5n) + hash) & mask64) ^ BigInt(byte);
  return hash;
}

/** Looks up a key. Throws only errors of `file.read`. */
export async function lookUpCdb64(file: Cdb64File, key: Uint8Array): Promise<Cdb64Response> {
  const hash = cdb64Hash(key);
  const table = tableOf(file, hash);
  if (table.kind !== "table") return table;
  const { start, slots } = table;
  const first = Number((hash / tableCount) % BigInt(slots));
  let readsLeft = readsMax;
  for (let looked = 0; looked < slots; ) {
    const slot = (first + looked) % slots;
    const count = Math.min(slotsAtOnce, slots - slot, slots - looked);
    const page = readPage(await file.read(start + slot * slotSize, start + (slot + count) * slotSize), hash);
    readsLeft -= 1 + page.records.length;
    if (readsLeft < 0) return malformed(`a search needs more than ${readsMax} reads`);
    for (const record of page.records) {
      const response = await readRecord(file, record, key);
      if (response !== undefined) return response;
    }
    if (page.isLast) return { kind: "absent" };
    looked += count;
  }
  return { kind: "absent" };
}

/** Whether a table of the header has slots; otherwise the file contains no keys. */
export function hasCdb64Slots(header: Uint8Array): boolean {
  for (let at = 8; at < cdb64HeaderSize; at += 16) if (readNumber(header, at) !== 0n) return true;
  return false;
}

/** The offsets of records with this hash, and whether the search ends at this page. */
function readPage(page: Uint8Array, hash: bigint) {
  const records: bigint[] = [];
  for (let at = 0; at < page.length; at += slotSize) {
    const record = readNumber(page, at + 8);
    if (record === 0n) return { records, isLast: true };
    if (readNumber(page, at) === hash) records.push(record);
  }
  return { records, isLast: false };
}

function tableOf(file: Cdb64File, hash: bigint) {
  const at = Number(hash % tableCount) * 16;
  const [place, slots] = [readNumber(file.header, at), readNumber(file.header, at + 8)];
  if (slots === 0n) return { kind: "absent" } as const;
  const isWithin = place >= cdb64HeaderSize && place + slots * BigInt(slotSize) <= BigInt(file.size);
  if (!isWithin) return malformed("a table is beyond the end of the file");
  return { kind: "table", start: Number(place), slots: Number(slots) } as const;
}

/** Reads a record; `undefined` for a record of another key. */
async function readRecord(file: Cdb64File, place: bigint, key: Uint8Array): Promise<Cdb64Response | undefined> {
  const quota = BigInt(file.size) - place;
  if (place < cdb64HeaderSize || quota < recordHeadSize) return malformed("a record is beyond the end of the file");
  const start = Number(place);
  // One read is enough for nearly every record; a longer record needs a second read.
  const guess = Math.min(Number(quota), recordHeadSize + key.length + 512);
  const bytes = await file.read(start, start + guess);
  const [keySize, valueSize] = [readNumber(bytes, 0), readNumber(bytes, 8)];
  if (BigInt(recordHeadSize) + keySize + valueSize > quota)
    return malformed("a record extends beyond the end of the file");
  if (keySize !== BigInt(key.length)) return undefined;
  if (!equalBytes(bytes.subarray(recordHeadSize, recordHeadSize + key.length), key)) return undefined;
  if (valueSize > valueSizeMax) return malformed(`a value has more than ${valueSizeMax} bytes`);
  const [from, to] = [recordHeadSize + key.length, recordHeadSize + key.length + Number(valueSize)];
  if (to <= bytes.length) return { kind: "value", value: bytes.subarray(from, to) };
  return { kind: "value", value: await file.read(start + from, start + to) };
}

function readNumber(bytes: Uint8Array, at: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(at, true);
}

function malformed(reason: string): Cdb64Response & { kind: "malformed" } {
  return { kind: "malformed", reason };
}
