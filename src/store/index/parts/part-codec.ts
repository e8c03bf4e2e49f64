/**
 * Encodings of the places of a part, and of the lists of its keys.
 *
 * Rows of a part are numbered by place (ordinals). Places and ordinals are sorted, so both are stored as differences
 * in as few bytes as possible. A list that others are compared with is stored by blocks or as bits, so that only
 * the parts that are compared are read.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import { assert } from "../../../lib/assert.ts";

/** Places of rows in order: upper 32 and lower 31 bits of each. */
export type PlaceList = Readonly<{ high: Uint32Array; low: Uint32Array }>;

/** The list of one key in one chunk, or in all of the part (`wholePart`). */
export type PartList = Readonly<{ key: number; chunk: number; count: number; body: Uint8Array }>;

/** Places in a block, the unit of reading. */
export const placesPerBlock = 1_024;

/** Ordinals in a chunk: they differ only in their lower 16 bits. */
export const ordinalsPerChunk = 65_536;

/** In place of a chunk: the list has the ordinals of all chunks. The number is part of the format. */
export const wholePart = -1;

/** Above this share of a chunk's rows, a bitmap is shorter than a list. */
const bitmapShare = 0.1;

/**
 * A list of so many ordinals is stored by blocks of 256: what a rarer key has in common with it is found without
 * reading all of it, and the ends of the blocks take at most an eighth more.
 */
const blockedCountMin = 4_096;

/** Encodings of the ordinals of a chunk. Numbers are part of the format. */
const forms = { steps: 0, bits: 1, blocks: 2 } as const;

/** Four bytes hold 28 bits: more than any difference of ordinals. */
const stepBytesMax = 4;

/** Five bytes hold 35 bits: more than any difference. */
const varintBytesMax = 5;

/** Serializes a block of places. The first place is complete, so that each block can be read alone. */
export function writePlaces({ high, low }: PlaceList): Uint8Array {
  assert(high.length <= placesPerBlock, "a block of places is bounded");
  const bytes = new Uint8Array(high.length * varintBytesMax * 3);
  let at = 0;
  let lastHigh = 0;
  let lastLow = 0;
  for (let index = 0; index < high.length; index += 1) {
    const nextHigh = high[index] ?? 0;
    const nextLow = low[index] ?? 0;
    if (index > 0 && nextHigh === lastHigh) at = writeVarint(bytes, at, nextLow - lastLow);
    else {
      // Places are distinct, so a difference of 0 cannot occur: 0 marks the start of another transaction.
      at = writeVarint(bytes, at, 0);
      at = writeVarint(bytes, at, nextHigh - lastHigh);
      at = writeVarint(bytes, at, nextLow);
    }
    lastHigh = nextHigh;
    lastLow = nextLow;
  }
  return bytes.slice(0, at);
}

/** An empty list with space for a block. */
export function newPlaces(): PlaceList {
  return { high: new Uint32Array(placesPerBlock), low: new Uint32Array(placesPerBlock) };
}

/** Reads the output of `writePlaces`. */
export function readPlaces(bytes: Uint8Array): PlaceList {
  const places = newPlaces();
  const count = readPlacesInto(places, bytes);
  return { high: places.high.subarray(0, count), low: places.low.subarray(0, count) };
}

/** As `readPlaces`, into a list with space for a block. @returns How many there are. */
export function readPlacesInto({ high, low }: PlaceList, bytes: Uint8Array): number {
  const cursor = { at: 0 };
  let count = 0;
  let lastHigh = 0;
  let lastLow = 0;
  while (cursor.at < bytes.length) {
    const step = readVarint(bytes, cursor);
    if (step === 0) {
      lastHigh += readVarint(bytes, cursor);
      lastLow = readVarint(bytes, cursor);
    } else lastLow += step;
    assert(count < placesPerBlock, "a block of places is bounded");
    high[count] = lastHigh;
    low[count] = lastLow;
    count += 1;
  }
  return count;
}

/**
 * Serializes the ordinals of one chunk.
 *
 * @param ordinals - Lower 16 bits, in order, distinct.
 * @param chunkRows - Rows of the part in this chunk.
 */
export function writeOrdinals(ordinals: Uint16Array, chunkRows: number): Uint8Array {
  if (ordinals.length > chunkRows * bitmapShare) return writeBits(ordinals, chunkRows);
  return ordinals.length < blockedCountMin ? writeSteps(ordinals) : writeBlocks(ordinals);
}

/** Reads the output of `writeOrdinals`. */
export function readOrdinals(bytes: Uint8Array, count: number): Uint16Array {
  const ordinals = new Uint16Array(count);
  const read = bytes[0] === forms.bits ? readBits : bytes[0] === forms.blocks ? readBlocks : readSteps;
  const found = read(bytes.subarray(1), ordinals);
  assert(found === count, "a chunk has as many ordinals as its directory states");
  return ordinals;
}

/** Reads a list of a part, also one of all of it. @returns Ordinals in the part, in order. */
export function ordinalsOfList({ chunk, count, body }: Omit<PartList, "key">): Uint32Array {
  const ordinals = new Uint32Array(count);
  if (chunk === wholePart) {
    const cursor = { at: 1 };
    let last = -1;
    let found = 0;
    for (; cursor.at < body.length; found += 1) {
      last += readVarint(body, cursor);
      ordinals[found] = last;
    }
    assert(found === count, "a part has as many ordinals of a key as its directory states");
    return ordinals;
  }
  const lows = readOrdinals(body, count);
  for (let at = 0; at < count; at += 1) ordinals[at] = chunk * ordinalsPerChunk + (lows[at] ?? 0);
  return ordinals;
}

/** Sets the bit of each ordinal of a list; bits are numbered from the lowest of each byte. */
export function markOrdinals(bytes: Uint8Array, count: number, bits: Uint8Array): void {
  if (bytes[0] !== forms.bits) {
    setBits(bits, readOrdinals(bytes, count));
    return;
  }
  for (let at = 1; at < bytes.length; at += 1) bits[at - 1] = (bits[at - 1] ?? 0) | (bytes[at] ?? 0);
}

/** The ordinals of a list as bits, which must not be changed. Bits after the end of the bytes are not set. */
export function bitsOfList(bytes: Uint8Array, count: number): Uint8Array {
  if (bytes[0] === forms.bits) return bytes.subarray(1);
  const bits = new Uint8Array(ordinalsPerChunk / 8);
  markOrdinals(bytes, count, bits);
  return bits;
}

/** Selects the ordinals that a list has too. @param ordinals - In order; they are overwritten. */
export function meetList(bytes: Uint8Array, count: number, ordinals: Uint16Array): Uint16Array {
  if (bytes[0] === forms.bits) return selectByBits(ordinals, bytes.subarray(1));
  if (bytes[0] === forms.blocks) return meetBlocks(bytes.subarray(1), ordinals);
  return meetOrdinals(readOrdinals(bytes, count), ordinals);
}

/** Selects the ordinals that others have too. @param ordinals - In order, as the others; they are overwritten. */
export function meetOrdinals(others: Uint16Array, ordinals: Uint16Array): Uint16Array {
  let met = 0;
  let at = 0;
  for (let index = 0; index < ordinals.length; index += 1) {
    const ordinal = ordinals[index] ?? 0;
    while (at < others.length && (others[at] ?? 0) < ordinal) at += 1;
    if (at < others.length && others[at] === ordinal) ordinals[met++] = ordinal;
  }
  return ordinals.subarray(0, met);
}

/** Selects the ordinals whose bit is set. @param ordinals - In order; they are overwritten. */
export function selectByBits(ordinals: Uint16Array, bits: Uint8Array): Uint16Array {
  let count = 0;
  for (let at = 0; at < ordinals.length; at += 1) {
    const ordinal = ordinals[at] ?? 0;
    const isSet = ((bits[ordinal >>> 3] ?? 0) & (1 << (ordinal & 7))) !== 0;
    if (isSet) ordinals[count++] = ordinal;
  }
  return ordinals.subarray(0, count);
}

/** Ordinals of a block, and blocks of a chunk. */
const blockOrdinals = 256;
const blocksPerChunk = ordinalsPerChunk / blockOrdinals;
/** Bytes of the ends of all blocks, two for each; then follows one byte for each ordinal: its position in its block. */
const blockEndsBytes = blocksPerChunk * 2;

function writeBlocks(ordinals: Uint16Array): Uint8Array {
  const bytes = new Uint8Array(1 + blockEndsBytes + ordinals.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = forms.blocks;
  let at = 0;
  for (let block = 0; block < blocksPerChunk; block += 1) {
    for (const limit = (block + 1) * blockOrdinals; at < ordinals.length && (ordinals[at] ?? 0) < limit; at += 1)
      bytes[1 + blockEndsBytes + at] = (ordinals[at] ?? 0) % blockOrdinals;
    view.setUint16(1 + block * 2, at, true);
  }
  return bytes;
}

/** The number of ordinals up to the end of a block. */
function blockEnd(bytes: Uint8Array, block: number): number {
  return block < 0 ? 0 : (bytes[block * 2] ?? 0) + (bytes[block * 2 + 1] ?? 0) * 256;
}

function readBlocks(bytes: Uint8Array, into: Uint16Array): number {
  let at = 0;
  for (let block = 0; block < blocksPerChunk; block += 1)
    for (const end = blockEnd(bytes, block); at < end; at += 1)
      into[at] = block * blockOrdinals + (bytes[blockEndsBytes + at] ?? 0);
  return at;
}

function meetBlocks(bytes: Uint8Array, ordinals: Uint16Array): Uint16Array {
  let met = 0;
  let block = -1;
  let at = 0;
  let end = 0;
  for (let index = 0; index < ordinals.length; index += 1) {
    const ordinal = ordinals[index] ?? 0;
    if (ordinal >>> 8 !== block) {
      block = ordinal >>> 8;
      at = blockEnd(bytes, block - 1);
      end = blockEnd(bytes, block);
    }
    const low = ordinal % blockOrdinals;
    while (at < end && (bytes[blockEndsBytes + at] ?? 0) < low) at += 1;
    if (at < end && bytes[blockEndsBytes + at] === low) ordinals[met++] = ordinal;
  }
  return ordinals.subarray(0, met);
}

/** Sets the bit of an ordinal. */
export function setBit(bits: Uint8Array, ordinal: number): void {
  const at = ordinal >>> 3;
  bits[at] = (bits[at] ?? 0) | (1 << (ordinal & 7));
}

/** Sets the bits of ordinals. By index: an iterator of a typed array takes ten times as long (measured). */
export function setBits(bits: Uint8Array, ordinals: Uint16Array): void {
  for (let index = 0; index < ordinals.length; index += 1) setBit(bits, ordinals[index] ?? 0);
}

/** Writes the positions of set bits in order. @returns How many there are. */
export function readBits(bits: Uint8Array, into: Uint16Array): number {
  let count = 0;
  for (let at = 0; at < bits.length; at += 1) {
    let rest = bits[at] ?? 0;
    while (rest !== 0) {
      into[count++] = at * 8 + 31 - Math.clz32(rest & -rest);
      rest &= rest - 1;
    }
  }
  return count;
}

function writeBits(ordinals: Uint16Array, chunkRows: number): Uint8Array {
  const bytes = new Uint8Array(1 + Math.ceil(chunkRows / 8));
  bytes[0] = forms.bits;
  const bits = bytes.subarray(1);
  setBits(bits, ordinals);
  return bytes;
}

export function writeSteps(ordinals: Uint16Array | Uint32Array): Uint8Array {
  const bytes = new Uint8Array(1 + ordinals.length * stepBytesMax);
  bytes[0] = forms.steps;
  let at = 1;
  let last = -1;
  for (let index = 0; index < ordinals.length; index += 1) {
    const ordinal = ordinals[index] ?? 0;
    at = writeVarint(bytes, at, ordinal - last);
    last = ordinal;
  }
  return bytes.slice(0, at);
}

function readSteps(bytes: Uint8Array, into: Uint16Array): number {
  let at = 0;
  let count = 0;
  let last = -1;
  while (at < bytes.length) {
    // Most differences take one byte; the general reader costs three times as much.
    let step = bytes[at++] ?? 0;
    if (step >= 128) {
      step = (step & 127) + ((bytes[at++] ?? 0) << 7);
      if (step >= 16_384) step = (step & 16_383) + ((bytes[at++] ?? 0) << 14);
    }
    last += step;
    into[count++] = last;
  }
  return count;
}

function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = value;
  let end = at;
  while (rest >= 128) {
    bytes[end++] = (rest % 128) + 128;
    rest = Math.floor(rest / 128);
  }
  bytes[end++] = rest;
  return end;
}

function readVarint(bytes: Uint8Array, cursor: { at: number }): number {
  let value = 0;
  let scale = 1;
  for (let count = 0; count < varintBytesMax; count += 1) {
    const byte = bytes[cursor.at++];
    assert(byte !== undefined, "a block of places ends at the end of a place");
    value += (byte & 127) * scale;
    if (byte < 128) return value;
    scale *= 128;
  }
  throw new Error("a number in a block of places is too long");
}
