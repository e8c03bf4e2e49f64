/**
 * A streaming JSON parser in constant memory. It reports the structure and the strings of a text by callbacks.
 *
 * It accepts exactly the texts that `JSON.parse(new TextDecoder().decode(bytes))` accepts, with the same strings: a
 * leading byte order mark is skipped, malformed UTF-8 becomes U+FFFD, escapes are resolved.
 *
 * Strings are reported as UTF-8, with three bytes for an unpaired surrogate (WTF-8): two strings are equal in
 * JavaScript exactly when their bytes are.
 * Source: RFC 8259 §7; WHATWG Encoding §4.1 (UTF-8 decode); docs/decisions/090-manifest-indexes.md.
 * @module
 */
import { utf8Bytes } from "./bytes.ts";

/** The callbacks of the scan. A value follows each key; `leave` ends the innermost object or list. */
export type JsonEvents = Readonly<{
  enter: (kind: "object" | "list") => void;
  leave: () => void;
  /** A key begins. @returns The receiver of its text; `undefined` skips the text. */
  key: () => TextSink | undefined;
  /** A string value begins. @returns As {@link key}. */
  string: () => TextSink | undefined;
  /** A key or a string has ended. */
  textEnd: (isKey: boolean) => void;
  /** A number, true, false or null begins. */
  plain: () => void;
}>;

export type JsonFault = "not json" | "too many brackets";

export type JsonScan = Readonly<{
  /** Reads the next bytes. @returns The fault, also at each later call; `undefined` while the text may be valid. */
  take: (bytes: Uint8Array) => JsonFault | undefined;
  /** Ends the text. @returns The fault; `undefined` for a complete JSON text. */
  finish: () => JsonFault | undefined;
}>;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const minus = 0x2d;

/** Tokens that may follow. */
const [aValue, itemOrEnd, keyOrEnd, aKey, aColon, afterValue] = [0, 1, 2, 3, 4, 5];

/** The current token. */
const [between, inText, inNumber, inWord] = [0, 1, 2, 3];

const words = new Map(["true", "false", "null"].map((word) => [word.charCodeAt(0), Buffer.from(word)]));
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Classes of bytes within a string: 0 is a plain character. */
const [endsRun, notAscii, opensMore] = [1, 2, 4];
const classes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0x20 || byte === quote || byte === backslash) return endsRun;
  if (byte >= 0x80) return notAscii;
  return byte === openList || byte === openObject ? opensMore : 0;
});

type State = {
  readonly events: JsonEvents;
  readonly bracketsMax: number;
  readonly text: JsonText;
  readonly levels: ReturnType<typeof createLevels>;
  fault: JsonFault | undefined;
  token: number;
  expected: number;
  isKey: boolean;
  position: number; // offset of the piece in the text
  numberState: number;
  word: Uint8Array;
  wordAt: number;
  listCount: number;
  objectCount: number;
};

/**
 * Starts a scan.
 *
 * @param bracketsMax - Maximum number of `[`, and of `{`, in the text, strings included: bounds the memory for the
 *   nesting, one byte per level.
 */
export function createJsonScan(events: JsonEvents, bracketsMax: number): JsonScan {
  const state: State = {
    events,
    bracketsMax,
    text: createJsonText(),
    levels: createLevels(),
    fault: undefined,
    token: between,
    expected: aValue,
    isKey: false,
    position: 0,
    numberState: 0,
    word: byteOrderMark,
    wordAt: 0,
    listCount: 0,
    objectCount: 0,
  };
  return {
    take(bytes) {
      for (let at = 0; at < bytes.length && state.fault === undefined; )
        at = (takeToken[state.token] ?? takeStructure)(state, bytes, at);
      state.position += bytes.length;
      return state.fault;
    },
    finish() {
      const isCut = state.token === inNumber ? !endNumber(state) : state.token !== between;
      if (isCut || state.expected !== afterValue || state.levels.top() !== undefined) fail(state);
      return state.fault;
    },
  };
}

/** @returns An offset after every byte: nothing more is read. */
function fail(state: State, reason: JsonFault = "not json"): number {
  state.fault ??= reason;
  return Number.MAX_SAFE_INTEGER;
}

function countBrackets(state: State, lists: number, objects: number): void {
  state.listCount += lists;
  state.objectCount += objects;
  if (state.listCount > state.bracketsMax || state.objectCount > state.bracketsMax) fail(state, "too many brackets");
}

// Each function reads bytes of one token from an offset, and returns the offset after them.

const takeToken = [takeStructure, takeText, takeNumber, takeWord] as const;

function takeStructure(state: State, bytes: Uint8Array, at: number): number {
  const byte = bytes[at] ?? 0;
  if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return at + 1;
  if (state.position + at === 0 && byte === byteOrderMark[0]) return beginWord(state, byteOrderMark, at);
  switch (state.expected) {
    case afterValue:
      return takeAfterValue(state, byte, at);
    case aColon:
      state.expected = aValue;
      return byte === colon ? at + 1 : fail(state);
    case keyOrEnd:
      return byte === closeObject ? leave(state, at) : takeQuote(state, byte, at);
    case aKey:
      return takeQuote(state, byte, at);
    case itemOrEnd:
      return byte === closeList ? leave(state, at) : beginValue(state, byte, at);
    default:
      return beginValue(state, byte, at);
  }
}

function takeAfterValue(state: State, byte: number, at: number): number {
  const level = state.levels.top();
  if (byte === closeList && level === "list") return leave(state, at);
  if (byte === closeObject && level === "object") return leave(state, at);
  if (byte !== comma || level === undefined) return fail(state);
  state.expected = level === "object" ? aKey : aValue;
  return at + 1;
}

function takeQuote(state: State, byte: number, at: number): number {
  return byte === quote ? beginText(state, true, at) : fail(state);
}

function beginValue(state: State, byte: number, at: number): number {
  if (byte === quote) return beginText(state, false, at);
  if (byte === openList) return enter(state, "list", at);
  if (byte === openObject) return enter(state, "object", at);
  const word = words.get(byte);
  if (word === undefined && byte !== minus && (byte < 0x30 || byte > 0x39)) return fail(state);
  state.events.plain();
  if (word !== undefined) return beginWord(state, word, at);
  state.token = inNumber;
  state.numberState = numberStart;
  return at;
}

function enter(state: State, kind: "object" | "list", at: number): number {
  countBrackets(state, kind === "list" ? 1 : 0, kind === "list" ? 0 : 1);
  if (state.fault !== undefined) return fail(state);
  state.levels.push(kind);
  state.expected = kind === "list" ? itemOrEnd : keyOrEnd;
  state.events.enter(kind);
  return at + 1;
}

function leave(state: State, at: number): number {
  state.levels.pop();
  state.expected = afterValue;
  state.events.leave();
  return at + 1;
}

function beginText(state: State, isKey: boolean, at: number): number {
  state.token = inText;
  state.isKey = isKey;
  state.text.begin(isKey ? state.events.key() : state.events.string());
  return at + 1;
}

function takeText(state: State, bytes: Uint8Array, from: number): number {
  const { text } = state;
  if (text.isEscaped()) return text.escape(bytes[from] ?? 0) ? from + 1 : fail(state);
  let at = from;
  let seen = 0;
  for (; at < bytes.length; at += 1) {
    const kind = classes[bytes[at] ?? 0] ?? 0;
    if (kind === endsRun) break;
    seen |= kind;
  }
  if ((seen & opensMore) !== 0) countWithin(state, bytes, from, at);
  if (at > from) text.run(bytes, from, at, (seen & notAscii) === 0);
  return at === bytes.length ? at : endRun(state, bytes[at] ?? 0, at);
}

/** Counts the brackets in a run of a string. */
function countWithin(state: State, bytes: Uint8Array, from: number, to: number): void {
  let lists = 0;
  let objects = 0;
  for (let at = from; at < to; at += 1) {
    if (bytes[at] === openList) lists += 1;
    else if (bytes[at] === openObject) objects += 1;
  }
  countBrackets(state, lists, objects);
}

function endRun(state: State, byte: number, at: number): number {
  if (byte !== quote && byte !== backslash) return fail(state);
  if (byte === backslash) {
    state.text.beginEscape();
    return at + 1;
  }
  state.text.end();
  state.events.textEnd(state.isKey);
  state.token = between;
  state.expected = state.isKey ? aColon : afterValue;
  return at + 1;
}

function takeNumber(state: State, bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    const next = numberStep(state.numberState, bytes[at] ?? 0);
    if (next === 0) return endNumber(state) ? at : fail(state);
    state.numberState = next;
  }
  return bytes.length;
}

/** Whether the number is complete. */
function endNumber(state: State): boolean {
  state.token = between;
  state.expected = afterValue;
  return numberEnds.has(state.numberState);
}

function beginWord(state: State, word: Uint8Array, at: number): number {
  state.token = inWord;
  state.word = word;
  state.wordAt = 0;
  return at;
}

function takeWord(state: State, bytes: Uint8Array, at: number): number {
  if (bytes[at] !== state.word[state.wordAt]) return fail(state);
  state.wordAt += 1;
  if (state.wordAt === state.word.length) {
    state.token = between;
    state.expected = state.word === byteOrderMark ? aValue : afterValue;
  }
  return at + 1;
}

/** States of a number: after nothing, a minus, a first zero, digits, a point, decimals, e, its sign, its digits. */
const [numberStart, afterMinus, afterZero, digits, afterPoint] = [1, 2, 3, 4, 5];
const [decimals, afterE, afterSign, exponent] = [6, 7, 8, 9];
const numberEnds: ReadonlySet<number> = new Set([afterZero, digits, decimals, exponent]);

/** The next state for each character. */
const numberSteps: ReadonlyMap<number, Readonly<Record<string, number>>> = new Map([
  [numberStart, { "-": afterMinus, "0": afterZero, "9": digits }],
  [afterMinus, { "0": afterZero, "9": digits }],
  [afterZero, { ".": afterPoint, e: afterE }],
  [digits, { "0": digits, "9": digits, ".": afterPoint, e: afterE }],
  [afterPoint, { "0": decimals, "9": decimals }],
  [decimals, { "0": decimals, "9": decimals, e: afterE }],
  [afterE, { "-": afterSign, "+": afterSign, "0": exponent, "9": exponent }],
  [afterSign, { "0": exponent, "9": exponent }],
  [exponent, { "0": exponent, "9": exponent }],
]);

/** @returns The next state; 0 when the byte is not part of the number. */
function numberStep(state: number, byte: number): number {
  const character = byte >= 0x31 && byte <= 0x39 ? "9" : String.fromCharCode(byte === 0x45 ? 0x65 : byte);
  return numberSteps.get(state)?.[character] ?? 0;
}

/** The open objects and lists, one byte each. */
function createLevels() {
  let kinds = new Uint8Array(64);
  let depth = 0;
  return {
    top: () => (depth === 0 ? undefined : kinds[depth - 1] === 1 ? ("object" as const) : ("list" as const)),
    push(kind: "object" | "list") {
      if (depth === kinds.length) {
        const wider = new Uint8Array(2 * depth);
        wider.set(kinds);
        kinds = wider;
      }
      kinds[depth] = kind === "object" ? 1 : 0;
      depth += 1;
    },
    pop() {
      depth -= 1;
    },
  };
}

/** Receives the bytes of a text in order. The buffer is reused after the call. */
export type TextSink = Readonly<{ add: (bytes: Uint8Array, start: number, end: number) => void }>;

/** Decodes one string after another. */
export type JsonText = Readonly<{
  begin: (sink: TextSink | undefined) => void;
  /** Adds bytes that are neither escapes nor quotes. @param ascii - Whether all are below 0x80. */
  run: (bytes: Uint8Array, start: number, end: number, ascii: boolean) => void;
  beginEscape: () => void;
  isEscaped: () => boolean;
  /** Adds the next byte of an escape. @returns Whether the byte is valid. */
  escape: (byte: number) => boolean;
  end: () => void;
}>;

const escapes = new Map([...'"\\/bfnrt'].map((name, at) => [name.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(at)]));
const unicodeEscape = 0x75;
const unicodeDigits = 4;

export function createJsonText(): JsonText {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const units = createUnits();
  let sink: TextSink | undefined;
  let isDecoding = false;

  function endRun(): void {
    if (!isDecoding) return;
    isDecoding = false;
    passText(sink, decoder.decode());
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
      passText(sink, decoder.decode(bytes.subarray(start, end), { stream: true }));
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

function passText(sink: TextSink | undefined, text: string): void {
  if (text === "") return;
  const bytes = utf8Bytes(text);
  sink?.add(bytes, 0, bytes.length);
}

/** Joins the UTF-16 code units of escapes to characters. */
function createUnits() {
  const few = new Uint8Array(4);
  let sink: TextSink | undefined;
  /** Bytes that remain of an escape: 5 before the character after the backslash, then digits. */
  let left = 0;
  let unit = 0;
  /** A high surrogate whose low surrogate may follow. */
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
    /** Passes on an unpaired surrogate. */
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

/** Encodes a text as the bytes that the scan reports for an equal string. */
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
