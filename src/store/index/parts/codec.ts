/**
 * How a part of the posting index is written: places by blocks, the rows of a key by chunks.
 *
 * Rows of a part are numbered by place ("ordinals"). Places and ordinals are sorted, so both are written as what
 * each adds to the one before, in as few bytes as that takes.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import { assert } from "../../../lib/assert.ts";

/** Places of rows in order: upper 32 and lower 31 bits of each. */
export type PlaceList = Readonly<{ high: Uint32Array; low: Uint32Array }>;

/** Places written together: what is read to learn one of them. */
export const placesPerBlock = 1_024;

/** Ordinals of one key that are written together: those that share all but their lower 16 bits. */
export const ordinalsPerChunk = 65_536;

/** Above this share of a chunk, one bit for each of its rows is shorter than one byte for each that is in. */
const bitmapShare = 0.1;

/** How the ordinals of a chunk are written. Numbers are part of the format. */
const forms = { steps: 0, bits: 1 } as const;

/** Five bytes take 35 bits: more than any difference. */
const varintBytesMax = 5;

/** Writes a block of places. The first is written whole, so that each block can be read alone. */
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
      // No place adds nothing to the one before: 0 says that another transaction begins.
      at = writeVarint(bytes, at, 0);
      at = writeVarint(bytes, at, nextHigh - lastHigh);
      at = writeVarint(bytes, at, nextLow);
    }
    lastHigh = nextHigh;
    lastLow = nextLow;
  }
  return bytes.slice(0, at);
}

/** Reads what `writePlaces` wrote. */
export function readPlaces(bytes: Uint8Array): PlaceList {
  const high = new Uint32Array(placesPerBlock);
  const low = new Uint32Array(placesPerBlock);
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
  return { high: high.subarray(0, count), low: low.subarray(0, count) };
}

/**
 * Writes ordinals of one chunk.
 *
 * @param ordinals - Lower 16 bits, in order, each once.
 * @param chunkRows - Rows that the part has in this chunk.
 */
export function writeOrdinals(ordinals: Uint16Array, chunkRows: number): Uint8Array {
  return ordinals.length > chunkRows * bitmapShare ? writeBits(ordinals, chunkRows) : writeSteps(ordinals);
}

/** Reads what `writeOrdinals` wrote. */
export function readOrdinals(bytes: Uint8Array, count: number): Uint16Array {
  const ordinals = new Uint16Array(count);
  const rest = bytes.subarray(1);
  const found = bytes[0] === forms.bits ? readBits(rest, ordinals) : readSteps(rest, ordinals);
  assert(found === count, "a chunk has as many ordinals as its directory says");
  return ordinals;
}

/** Sets one bit for each ordinal that `writeOrdinals` wrote; bits are numbered from the lowest of each byte. */
export function markOrdinals(bytes: Uint8Array, count: number, bits: Uint8Array): void {
  if (bytes[0] !== forms.bits) {
    for (const ordinal of readOrdinals(bytes, count)) setBit(bits, ordinal);
    return;
  }
  for (let at = 1; at < bytes.length; at += 1) bits[at - 1] = (bits[at - 1] ?? 0) | (bytes[at] ?? 0);
}

/** Sets the bit of an ordinal. */
export function setBit(bits: Uint8Array, ordinal: number): void {
  const at = ordinal >>> 3;
  bits[at] = (bits[at] ?? 0) | (1 << (ordinal & 7));
}

/** Writes the ordinals whose bits are set, in order; answers how many. */
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
  for (const ordinal of ordinals) setBit(bits, ordinal);
  return bytes;
}

function writeSteps(ordinals: Uint16Array): Uint8Array {
  const bytes = new Uint8Array(1 + ordinals.length * 3);
  bytes[0] = forms.steps;
  let at = 1;
  let last = -1;
  for (const ordinal of ordinals) {
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
    // Most steps are one byte; the general reader costs three times as much.
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
