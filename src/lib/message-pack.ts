/**
 * A bounded parser of MessagePack: maps with text keys, lists, byte strings, texts and whole numbers. It rejects the
 * other types of the format, which the parsed messages do not use.
 * Source: github.com/msgpack/msgpack/blob/master/spec.md.
 * @module
 */

export type PackedValue = number | string | Uint8Array | readonly PackedValue[] | PackedMap;

/** A map with any text keys. */
export type PackedMap = ReadonlyMap<string, PackedValue>;

/** Maximum nesting; the parsed messages have two levels. */
const depthMax = 4;

/** Maximum number of members of one map or list. */
const membersMax = 64;

/** The position in the bytes. Its functions throw only {@link unreadable}. */
type Cursor = { readonly bytes: Uint8Array; readonly view: DataView; at: number };

const unreadable = Symbol("unreadable");

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses one value.
 *
 * @param bytes - One value and nothing after it; byte strings of the result are views of it.
 * @returns `undefined` for an invalid, too deep or too wide value, or bytes after it.
 */
export function readMessagePack(bytes: Uint8Array): PackedValue | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const cursor: Cursor = { bytes, view, at: 0 };
  try {
    const value = readValue(cursor, depthMax);
    return cursor.at === bytes.length ? value : undefined;
  } catch (error) {
    if (error === unreadable || error instanceof TypeError) return undefined; // text that is not UTF-8 is a TypeError
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

/** Some writers encode whole numbers above 2^32 as 64-bit floats. */
function readFloat(cursor: Cursor): number {
  const number = cursor.view.getFloat64(advance(cursor, 8));
  if (!Number.isSafeInteger(number) || number < 0) throw unreadable;
  return number;
}

/** Advances the cursor. @returns The old position. @throws {@link unreadable} when the bytes end before. */
function advance(cursor: Cursor, size: number): number {
  const start = cursor.at;
  if (size > cursor.bytes.length - start) throw unreadable;
  cursor.at = start + size;
  return start;
}
