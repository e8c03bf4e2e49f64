/**
 * MessagePack values, read within bounds: maps with text keys, lists, byte strings, texts and whole numbers.
 * The rest of the format is rejected: no value that is read here uses it.
 * Source: github.com/msgpack/msgpack/blob/master/spec.md.
 * @module
 */

/** What was read. */
export type PackedValue = number | string | Uint8Array | readonly PackedValue[] | PackedMap;

/** A map; keys are as they were written, whatever they are. */
export type PackedMap = ReadonlyMap<string, PackedValue>;

/** Values within values; what we read has two levels. */
const depthMax = 4;

/** Members of one map or list. */
const membersMax = 64;

/** The position of the reader. It throws {@link unreadable} and nothing else. */
type Cursor = { readonly bytes: Uint8Array; readonly view: DataView; at: number };

const unreadable = Symbol("unreadable");

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads one value.
 *
 * @param bytes - The value and nothing after it; views of it are given back.
 * @returns `undefined` when it cannot be read, is too deep or too wide, or is followed by anything.
 */
export function readMessagePack(bytes: Uint8Array): PackedValue | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const cursor: Cursor = { bytes, view, at: 0 };
  try {
    const value = readValue(cursor, depthMax);
    return cursor.at === bytes.length ? value : undefined;
  } catch (error) {
    if (error === unreadable || error instanceof TypeError) return undefined; // a text that is not UTF-8 is a TypeError
    throw error;
  }
}

function readValue(cursor: Cursor, depth: number): PackedValue {
  const kind = readNumber(cursor, 1);
  if (kind <= 0x7f) return kind;
  if (kind <= 0x8f) return readMap(cursor, kind & 0x0f, depth);
  if (kind <= 0x9f) return readList(cursor, kind & 0x0f, depth);
  if (kind <= 0xbf) return readText(cursor, kind & 0x1f);
  switch (kind) {
    case 0xc4:
    case 0xc5:
      return readBytes(cursor, readNumber(cursor, kind === 0xc4 ? 1 : 2));
    case 0xcb:
      return readFloat(cursor);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return readNumber(cursor, 2 ** (kind - 0xcc));
    case 0xd9:
      return readText(cursor, readNumber(cursor, 1));
    case 0xdc:
      return readList(cursor, readNumber(cursor, 2), depth);
    case 0xde:
      return readMap(cursor, readNumber(cursor, 2), depth);
    default:
      throw unreadable;
  }
}

function readMap(cursor: Cursor, count: number, depth: number): PackedMap {
  if (depth === 0 || count > membersMax) throw unreadable;
  const map = new Map<string, PackedValue>();
  for (let index = 0; index < count; index += 1) {
    const key = readValue(cursor, depth - 1);
    if (typeof key !== "string" || map.has(key)) throw unreadable;
    map.set(key, readValue(cursor, depth - 1));
  }
  return map;
}

function readList(cursor: Cursor, count: number, depth: number): readonly PackedValue[] {
  if (depth === 0 || count > membersMax) throw unreadable;
  return Array.from({ length: count }, () => readValue(cursor, depth - 1));
}

function readText(cursor: Cursor, size: number): string {
  return decoder.decode(readBytes(cursor, size));
}

function readBytes(cursor: Cursor, size: number): Uint8Array {
  const start = advance(cursor, size);
  return cursor.bytes.subarray(start, start + size);
}

/** A big-endian whole number of at most 2^53 - 1. */
function readNumber(cursor: Cursor, size: number): number {
  const start = advance(cursor, size);
  let number = 0;
  for (let at = start; at < start + size; at += 1) number = number * 256 + (cursor.bytes[at] ?? 0);
  if (!Number.isSafeInteger(number)) throw unreadable;
  return number;
}

/** Some writers put whole numbers beyond 2^32 into a float of 64 bits. */
function readFloat(cursor: Cursor): number {
  const number = cursor.view.getFloat64(advance(cursor, 8));
  if (!Number.isSafeInteger(number) || number < 0) throw unreadable;
  return number;
}

/** Goes on by `size` bytes, which must be there; gives where it was. */
function advance(cursor: Cursor, size: number): number {
  const start = cursor.at;
  if (size > cursor.bytes.length - start) throw unreadable;
  cursor.at = start + size;
  return start;
}
