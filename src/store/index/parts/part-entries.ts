/**
 * The entries of a part, `partKey << 24 | ordinal`, and the buckets in which those of rare keys and of ids are stored.
 *
 * A bucket has the entries of a range of keys, about 240 of them, and is read by its number. In parts that will be
 * merged again soon, entries are plain words; in larger parts, they are packed: the differences of sorted keys as Rice
 * codes (Golomb 1966), and each ordinal in as many bits as the largest one has; of further rows of a key, the step from
 * the ordinal before. In a part of four million rows, an entry takes 5 bytes instead of 8, and a further row 1 to 4.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import { assert } from "../../../lib/assert.ts";
import { filterKeyBits } from "../filter-key.ts";

/** Bits of a filter's key in a part. The other 24 bits of an entry are the row's ordinal. */
export const partKeyBits = 40;
const partKeyScale = 2 ** (filterKeyBits - partKeyBits);

/** The leading bits of a filter's key that parts store. */
export function partKeyOf(key: number): number {
  return Math.floor(key / partKeyScale);
}

/** The key of an entry, from its two 32-bit words. */
export function keyOfWords(low: number, high: number): number {
  return high * 256 + (low >>> 24);
}

/** The ordinal of an entry, from its lower word. */
export function ordinalOfWord(low: number): number {
  return low & 0xffffff;
}

/** Collects entries. @param most - Limit of their number. */
export function createEntryList(most: number) {
  const entries = new BigUint64Array(most);
  const words = new Uint32Array(entries.buffer);
  let at = 0;
  return {
    add: (key: number, ordinal: number): void => {
      words[at] = (key % 256) * 2 ** 24 + ordinal;
      words[at + 1] = Math.floor(key / 256);
      at += 2;
    },
    /** Adds entries of a source. @param renumbered - The new ordinal of each of its rows. */
    addWords: (from: Uint32Array, renumbered: Uint32Array): void => {
      for (let word = 0; word < from.length; word += 2) {
        const low = from[word] ?? 0;
        words[at] = (low >>> 24) * 2 ** 24 + (renumbered[ordinalOfWord(low)] ?? 0);
        words[at + 1] = from[word + 1] ?? 0;
        at += 2;
      }
    },
    /** Adds entries as they are. */
    addAll: (from: Uint32Array): void => {
      words.set(from, at);
      at += from.length;
    },
    count: (): number => at / 2,
    unsorted: (): BigUint64Array => entries.subarray(0, at / 2),
    sorted: (): BigUint64Array => withoutRepeats(entries.subarray(0, at / 2).sort()),
  };
}

/** The words of entries: lower, upper. */
export function wordsOf(entries: BigUint64Array): Uint32Array {
  return new Uint32Array(entries.buffer, entries.byteOffset, entries.length * 2);
}

/** Removes repeated entries: of a tag that a row has twice, and of a row that two parts have. */
function withoutRepeats(sorted: BigUint64Array): BigUint64Array {
  const words = wordsOf(sorted);
  let stored = 0;
  for (let at = 0; at < words.length; at += 2) {
    const low = words[at] ?? 0;
    const high = words[at + 1] ?? 0;
    const isRepeat = stored > 0 && words[stored - 2] === low && words[stored - 1] === high;
    if (isRepeat) continue;
    words[stored] = low;
    words[stored + 1] = high;
    stored += 2;
  }
  return sorted.subarray(0, stored / 2);
}

/** Average number of entries of a bucket: a look-up of a rare key reads about a kilobyte. */
const entriesPerBucket = 240;

/** The number of buckets for so many entries. */
export function bucketsFor(entries: number): number {
  return Math.max(1, Math.ceil(entries / entriesPerBucket));
}

/** The bucket of a key. */
export function bucketOf(partKey: number, buckets: number): number {
  return Math.floor((partKey / 2 ** partKeyBits) * buckets);
}

/** The bucket of each entry in order of keys, as `[bucket, its words]`; buckets without entries are left out. */
export function* inBuckets(words: Uint32Array, buckets: number): Generator<[bucket: number, words: Uint32Array]> {
  for (let start = 0, end = 0; start < words.length; start = end) {
    const bucket = bucketOf(keyOfWords(words[start] ?? 0, words[start + 1] ?? 0), buckets);
    while (end < words.length && bucketOf(keyOfWords(words[end] ?? 0, words[end + 1] ?? 0), buckets) === bucket)
      end += 2;
    yield [bucket, words.subarray(start, end)];
  }
}

/**
 * Encodings of a bucket, in its first byte. Numbers are part of the format. With `packedRepeats` a bit before each
 * entry tells whether its key is that of the entry before; if so, the step from that one's ordinal follows.
 */
export const bucketForms = { plain: 0, packed: 1, packedRepeats: 2 } as const;
/** How a bucket is to be written. */
export type BucketForm = "plain" | "packed";

/** Serializes a bucket. @param words - The words of its entries: lower, upper; sorted by entry. */
export function writeBucket(words: Uint32Array, form: BucketForm): Uint8Array {
  if (form === "packed") return writePacked(words);
  const body = new Uint8Array(1 + words.byteLength);
  body[0] = bucketForms.plain;
  body.set(new Uint8Array(words.buffer, words.byteOffset, words.byteLength), 1);
  return body;
}

/** Reads the output of `writeBucket`; a bucket that is absent has no entries. @returns The words of its entries. */
export function readBucket(body: Uint8Array | undefined): Uint32Array {
  if (body === undefined) return new Uint32Array(0);
  if (body[0] === bucketForms.packed || body[0] === bucketForms.packedRepeats) return readPacked(body);
  assert(body[0] === bucketForms.plain, "a bucket has a known form");
  return wordsIn(body.subarray(1));
}

/** Reads a bucket of a part of an earlier release, which has no form. */
function readFormlessBucket(body: Uint8Array | undefined): Uint32Array {
  return wordsIn(body ?? new Uint8Array(0));
}

/** The reader of the buckets of rare keys of a part. @param idBuckets - Null for a part of an earlier release. */
export function bucketReaderOf(idBuckets: number | null): (body: Uint8Array | undefined) => Uint32Array {
  return idBuckets === null ? readFormlessBucket : readBucket;
}

/** The words of a body. They are copied, because SQLite's buffers may not be aligned to four bytes. */
function wordsIn(body: Uint8Array): Uint32Array {
  assert(body.length % 8 === 0, "a bucket has complete entries");
  return new Uint32Array(new Uint8Array(body).buffer);
}

/** Offsets in a packed bucket, after its form: numbers of bits and entries, the key of the first entry, all bits. */
const packedHead = { remainderBits: 1, ordinalBits: 2, count: 3, firstKey: 7, end: 12 } as const;

/** A number of more bits is written in two. With seven bits of the byte before it, it is less than 32 bits. */
const bitsAtOnce = 24;
const scaleAtOnce = 2 ** bitsAtOnce;

/** Bits of the number of bits of a step to the next ordinal of the same key. */
const stepSizeBits = 5;
const ordinalsMax = 2 ** (64 - partKeyBits);

function writePacked(words: Uint32Array): Uint8Array {
  const layout = layoutOf(words);
  const { firstKey, repeats, remainderBits, ordinalBits } = layout;
  const { body, put, end } = beginPacked(layout);
  const scale = 2 ** remainderBits;
  const putDifference = (difference: number): void => {
    let quotient = Math.floor(difference / scale);
    const remainder = difference - quotient * scale;
    for (; quotient >= bitsAtOnce; quotient -= bitsAtOnce) put(0, bitsAtOnce);
    put(0, quotient);
    put(1, 1);
    if (remainderBits <= bitsAtOnce) put(remainder, remainderBits);
    else {
      put(remainder % scaleAtOnce, bitsAtOnce);
      put(Math.floor(remainder / scaleAtOnce), remainderBits - bitsAtOnce);
    }
  };
  const putStep = (step: number): void => {
    const stepBits = 32 - Math.clz32(step);
    put(stepBits, stepSizeBits);
    put(step - 2 ** (stepBits - 1), stepBits - 1);
  };
  let key = firstKey;
  let ordinal = 0;
  for (let word = 0; word < words.length; word += 2) {
    const low = words[word] ?? 0;
    const next = keyOfWords(low, words[word + 1] ?? 0);
    const isRepeat = word > 0 && next === key;
    if (repeats > 0) put(isRepeat ? 1 : 0, 1);
    if (isRepeat) putStep(ordinalOfWord(low) - ordinal);
    else {
      putDifference(next - key);
      put(ordinalOfWord(low), ordinalBits);
    }
    key = next;
    ordinal = ordinalOfWord(low);
  }
  return body.slice(0, end());
}

/** What the head of a packed bucket says, and a limit of the bits of its entries. */
type PackedLayout = Readonly<{
  count: number;
  /** Entries whose key is that of the entry before. */
  repeats: number;
  firstKey: number;
  remainderBits: number;
  ordinalBits: number;
  bitsMax: number;
}>;

function layoutOf(words: Uint32Array): PackedLayout {
  const count = words.length / 2;
  const firstKey = keyOfWords(words[0] ?? 0, words[1] ?? 0);
  const lastKey = keyOfWords(words.at(-2) ?? 0, words.at(-1) ?? 0);
  let repeats = 0;
  let ordinalMax = 0;
  for (let at = 0, key = -1; at < words.length; at += 2) {
    const low = words[at] ?? 0;
    const next = keyOfWords(low, words[at + 1] ?? 0);
    if (next === key) repeats += 1;
    key = next;
    ordinalMax = Math.max(ordinalMax, ordinalOfWord(low));
  }
  const ordinalBits = 32 - Math.clz32(ordinalMax);
  const mean = (lastKey - firstKey) / Math.max(1, count - repeats - 1);
  // The best parameter of a Rice code for differences of random keys.
  const remainderBits = Math.max(0, Math.round(Math.log2(mean * Math.LN2 + 2 ** -9)));
  // The quotients of all differences add up to their sum divided by the scale.
  const bitsMax =
    (count - repeats) * (2 + remainderBits + ordinalBits) +
    repeats * (1 + stepSizeBits + ordinalBits) +
    (lastKey - firstKey) / 2 ** remainderBits;
  return { count, repeats, firstKey, remainderBits, ordinalBits, bitsMax };
}

/** The body of a packed bucket with its head, and the call that adds the next bits, at most 24. */
function beginPacked({ count, repeats, firstKey, remainderBits, ordinalBits, bitsMax }: PackedLayout) {
  const body = new Uint8Array(packedHead.end + Math.ceil(bitsMax / 8) + 1);
  const head = new DataView(body.buffer);
  body[0] = repeats > 0 ? bucketForms.packedRepeats : bucketForms.packed;
  body[packedHead.remainderBits] = remainderBits;
  body[packedHead.ordinalBits] = ordinalBits;
  head.setUint32(packedHead.count, count);
  body[packedHead.firstKey] = Math.floor(firstKey / 2 ** 32);
  head.setUint32(packedHead.firstKey + 1, firstKey % 2 ** 32);
  let at: number = packedHead.end;
  let pending = 0;
  let pendingBits = 0;
  return {
    body,
    put: (value: number, bits: number): void => {
      pending |= value << pendingBits;
      pendingBits += bits;
      for (; pendingBits >= 8; pendingBits -= 8) {
        body[at++] = pending & 255;
        pending >>>= 8;
      }
    },
    /** @returns The number of bytes. */
    end: (): number => {
      if (pendingBits > 0) body[at++] = pending;
      return at;
    },
  };
}

function readPacked(body: Uint8Array): Uint32Array {
  assert(body.length >= packedHead.end, "a packed bucket has a head");
  const head = new DataView(body.buffer, body.byteOffset, body.length);
  const hasRepeats = body[0] === bucketForms.packedRepeats;
  const remainderBits = head.getUint8(packedHead.remainderBits);
  const ordinalBits = head.getUint8(packedHead.ordinalBits);
  const count = head.getUint32(packedHead.count);
  const bitsEnd = body.length * 8;
  assert(
    remainderBits <= partKeyBits && ordinalBits <= bitsAtOnce && count <= bitsEnd,
    "a packed bucket has numbers in their bounds",
  );
  const words = new Uint32Array(count * 2);
  const scale = 2 ** remainderBits;
  const lowBits = Math.min(remainderBits, bitsAtOnce);
  let bit = packedHead.end * 8;
  /** The next bits, at most 24; they stay. */
  const peek = (bits: number): number => {
    const at = bit >>> 3;
    const four =
      (body[at] ?? 0) | ((body[at + 1] ?? 0) << 8) | ((body[at + 2] ?? 0) << 16) | ((body[at + 3] ?? 0) << 24);
    return (four >>> (bit & 7)) & (scaleAtOnce - 1) & (2 ** bits - 1);
  };
  const takeDifference = (): number => {
    let quotient = 0;
    let ahead = peek(bitsAtOnce);
    for (; ahead === 0; ahead = peek(bitsAtOnce)) {
      quotient += bitsAtOnce;
      bit += bitsAtOnce;
      assert(bit < bitsEnd, "a packed bucket ends at the end of an entry");
    }
    const zeros = 31 - Math.clz32(ahead & -ahead);
    quotient += zeros;
    bit += zeros + 1;
    let remainder = peek(lowBits);
    bit += lowBits;
    if (remainderBits > bitsAtOnce) {
      remainder += peek(remainderBits - bitsAtOnce) * scaleAtOnce;
      bit += remainderBits - bitsAtOnce;
    }
    return quotient * scale + remainder;
  };
  const takeStep = (): number => {
    const stepBits = peek(stepSizeBits);
    bit += stepSizeBits;
    assert(stepBits > 0 && stepBits <= bitsAtOnce, "a step has one bit or more");
    const step = 2 ** (stepBits - 1) + peek(stepBits - 1);
    bit += stepBits - 1;
    return step;
  };
  let key = head.getUint8(packedHead.firstKey) * 2 ** 32 + head.getUint32(packedHead.firstKey + 1);
  let ordinal = 0;
  for (let word = 0; word < words.length; word += 2) {
    const isRepeat = hasRepeats && peek(1) === 1;
    if (hasRepeats) bit += 1;
    if (isRepeat) {
      ordinal += takeStep();
      assert(ordinal < ordinalsMax, "an ordinal has 24 bits");
    } else {
      key += takeDifference();
      ordinal = peek(ordinalBits);
      bit += ordinalBits;
    }
    words[word] = (key % 256) * 2 ** 24 + ordinal;
    words[word + 1] = Math.floor(key / 256);
  }
  assert(bit <= bitsEnd, "a packed bucket ends at the end of an entry");
  return words;
}
