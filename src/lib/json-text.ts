/**
 * The text of one JSON string, as its bytes come: escapes resolved, malformed UTF-8 replaced, in constant memory.
 *
 * The bytes given on are UTF-8, in which a surrogate without its other half has three bytes (WTF-8): two strings are
 * equal in JavaScript exactly when their bytes are.
 * Source: RFC 8259 §7; WHATWG Encoding §4.1; docs/decisions/090-manifest-indexes.md.
 * @module
 */

import { utf8Bytes } from "./bytes.ts";

/** Takes the bytes of a text, in order; they are changed after the call. */
export type TextSink = Readonly<{ add: (bytes: Uint8Array, start: number, end: number) => void }>;

/** One string after another. */
export type JsonText = Readonly<{
  begin: (sink: TextSink | undefined) => void;
  /** Takes bytes that are neither escapes nor quotes. @param ascii - Whether each is below 0x80. */
  run: (bytes: Uint8Array, start: number, end: number, ascii: boolean) => void;
  beginEscape: () => void;
  isEscaped: () => boolean;
  /** Takes the next byte of an escape. @returns Whether it may stand there. */
  escape: (byte: number) => boolean;
  end: () => void;
}>;

const escapes = new Map([...'"\\/bfnrt'].map((name, at) => [name.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(at)]));
const unicodeEscape = 0x75;
const unicodeDigits = 4;

/** Creates the reader of strings. */
export function createJsonText(): JsonText {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const units = createUnits();
  let sink: TextSink | undefined;
  let isDecoding = false;

  function endRun(): void {
    if (!isDecoding) return;
    isDecoding = false;
    giveText(sink, decoder.decode());
  }

  return {
    begin(next) {
      sink = next;
      units.begin(next);
    },
    run(bytes, start, end, ascii) {
      if (sink === undefined) return;
      units.end();
      if (ascii && !isDecoding) return sink.add(bytes, start, end);
      isDecoding = true;
      giveText(sink, decoder.decode(bytes.subarray(start, end), { stream: true }));
    },
    beginEscape() {
      endRun();
      units.beginEscape();
    },
    isEscaped: units.isEscaped,
    escape: units.escape,
    end() {
      endRun();
      units.end();
      sink = undefined;
    },
  };
}

function giveText(sink: TextSink | undefined, text: string): void {
  if (text === "") return;
  const bytes = utf8Bytes(text);
  sink?.add(bytes, 0, bytes.length);
}

/** UTF-16 code units that escapes spell, joined to characters. */
function createUnits() {
  const few = new Uint8Array(4);
  let sink: TextSink | undefined;
  /** Of an escape, bytes that are still to come: 5 before the letter after the backslash, then digits. */
  let left = 0;
  let unit = 0;
  /** The first half of a pair, whose second may follow. */
  let high = 0;

  function give(codePoint: number): void {
    sink?.add(few, 0, writeCodePoint(codePoint, few));
  }

  function end(): void {
    if (high === 0) return;
    give(high);
    high = 0;
  }

  function takeUnit(): void {
    if (high !== 0 && unit >= 0xdc00 && unit <= 0xdfff) {
      give(0x10000 + (high - 0xd800) * 0x400 + (unit - 0xdc00));
      high = 0;
      return;
    }
    end();
    if (unit >= 0xd800 && unit <= 0xdbff) high = unit;
    else give(unit);
  }

  function takeDigit(byte: number): boolean {
    const digit = hexDigit(byte);
    unit = unit * 16 + digit;
    left -= 1;
    if (left === 0 && digit >= 0) takeUnit();
    return digit >= 0;
  }

  return {
    begin(next: TextSink | undefined): void {
      sink = next;
      high = 0;
    },
    /** Gives what waits for its other half. */
    end,
    isEscaped: () => left > 0,
    beginEscape(): void {
      left = 1 + unicodeDigits;
    },
    escape(byte: number): boolean {
      if (left <= unicodeDigits) return takeDigit(byte);
      const isUnicode = byte === unicodeEscape;
      left = isUnicode ? unicodeDigits : 0;
      unit = isUnicode ? 0 : (escapes.get(byte) ?? -1);
      if (!isUnicode && unit >= 0) takeUnit();
      return unit >= 0;
    },
  };
}

/** Writes a text as the bytes that a string of the same value has here. */
export function textBytes(text: string): Uint8Array {
  if (text.isWellFormed()) return utf8Bytes(text);
  const few = new Uint8Array(4);
  return Uint8Array.from(
    [...text].flatMap((character) => {
      const size = writeCodePoint(character.codePointAt(0) ?? 0, few);
      return [...few.subarray(0, size)];
    }),
  );
}

function writeCodePoint(codePoint: number, bytes: Uint8Array): number {
  if (codePoint < 0x80) {
    bytes[0] = codePoint;
    return 1;
  }
  const size = codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
  let rest = codePoint;
  for (let at = size - 1; at > 0; at -= 1) {
    bytes[at] = 0x80 | (rest & 0x3f);
    rest >>= 6;
  }
  bytes[0] = ((0xf00 >> size) & 0xff) | rest;
  return size;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
