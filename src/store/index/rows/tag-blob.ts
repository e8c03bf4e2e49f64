/**
 * Serializes the tags of one row compactly and without loss.
 *
 * Common names and common pairs are numbers. Values that are ids, hashes, UUIDs or decimal numbers are stored as bytes
 * instead of text (8 typical tags: 125 bytes instead of 260).
 *
 * A blob is a sequence of tags. A tag begins with a varint code:
 * - 0: the name follows (varint length, UTF-8), then the value;
 * - odd: known name (code − 1) / 2; the value follows;
 * - even: known pair code / 2 − 1; nothing follows.
 *
 * A value is a varint (length << 3 | form) and that many bytes in that form.
 * Source: docs/reference/index-layout.md#tags.
 * @module
 */
import type { Tag } from "../../../arweave/tags.ts";
import { assert } from "../../../lib/assert.ts";

/** Common tag names. Positions are part of the stored format: new names are added at the end. */
export const knownNames: readonly string[] = [
  "Content-Type",
  "App-Name",
  "App-Version",
  "Unix-Time",
  "Bundle-Format",
  "Bundle-Version",
  "User-Agent",
  "Type",
  "Title",
  "Description",
  "Signing-Client",
  "Signing-Client-Version",
  "ArFS",
  "Cipher",
  "Cipher-IV",
  "Client",
  "Drive-Id",
  "Drive-Privacy",
  "Drive-Auth-Mode",
  "Entity-Type",
  "File-Id",
  "Folder-Id",
  "Parent-Folder-Id",
  "Contract",
  "Input",
  "Contract-Src",
  "Init-State",
  "SDK",
  "Sequencer",
  "Sequencer-Owner",
  "Sequencer-Mills",
  "Sequencer-Sort-Key",
  "Sequencer-Tx-Id",
  "Sequencer-Block-Height",
  "Sequencer-Block-Id",
  "Sequencer-Block-Timestamp",
  "Sequencer-Prev-Sort-Key",
  "Interact-Write",
  "Request-Vrf",
  "Nonce",
  "Data-Protocol",
  "Variant",
  "Action",
  "From-Process",
  "From-Module",
  "Pushed-For",
  "Ref_",
  "Reference",
  "Message",
  "Process",
  "Assignment",
  "Epoch",
  "Slot",
  "Block-Height",
  "Block-Hash",
  "Block-Timestamp",
  "Timestamp",
  "Hash-Chain",
  "Module",
  "Scheduler",
  "Authority",
  "Recipient",
  "Quantity",
  "Sender",
  "Name",
  "Ticker",
  "Logo",
  "Denomination",
  "Content-Encoding",
  "Content-Hash",
  "Content-Disposition",
  "Content-Length",
  "Cache-Control",
  "File-Name",
  "File-Hash",
  "Filename",
  "Name-Hash",
  "Topic",
  "Topics",
  "License",
  "Creator",
  "Published",
  "Version",
  "Application",
  "Application-ID",
  "IPFS-Add",
  "IPFS-Hash",
  "IPFS-CID",
  "Service",
  "Feed",
  "Source",
  "Symbol",
  "dataServiceId",
  "dataFeedId",
  "signerAddress",
  "timestamp",
  "type",
  "value",
  "Network",
  "Protocol",
  "Protocol-Name",
  "Uploader",
  "Bundler-App-Name",
  "Root-Hash",
  "Collection-Code",
  "Implements",
  "Forked",
  "Render-With",
  "Thumbnail",
  "Profile-Id",
  "Asset-Id",
  "Image-Id",
  "Hash",
  "Data-Hash",
  "Anchor-Hash",
  "X-Origin",
  "Function",
  "Pool",
  "Uploaded-At",
  "Bundlr",
  "Kyve",
];

/** Common pairs of name and value. Positions are part of the stored format: new pairs are added at the end. */
export const knownPairs: readonly (readonly [string, string])[] = [
  ["Content-Type", "application/json"],
  ["Content-Type", "application/octet-stream"],
  ["Content-Type", "text/plain"],
  ["Content-Type", "text/html"],
  ["Content-Type", "text/plain; charset=utf-8"],
  ["Content-Type", "text/html; charset=utf-8"],
  ["Content-Type", "text/css"],
  ["Content-Type", "text/javascript"],
  ["Content-Type", "text/markdown"],
  ["Content-Type", "application/javascript"],
  ["Content-Type", "application/pdf"],
  ["Content-Type", "application/x.arweave-manifest+json"],
  ["Content-Type", "image/png"],
  ["Content-Type", "image/jpeg"],
  ["Content-Type", "image/gif"],
  ["Content-Type", "image/webp"],
  ["Content-Type", "image/svg+xml"],
  ["Content-Type", "video/mp4"],
  ["Content-Type", "audio/mpeg"],
  ["Content-Type", "font/woff2"],
  ["Content-Encoding", "gzip"],
  ["Bundle-Format", "binary"],
  ["Bundle-Version", "2.0.0"],
  ["Type", "Message"],
  ["Type", "Process"],
  ["Type", "Assignment"],
  ["Type", "Result"],
  ["Type", "image"],
  ["Data-Protocol", "ao"],
  ["Variant", "ao.TN.1"],
  ["Variant", "ao.N.1"],
  ["SDK", "aoconnect"],
  ["SDK", "Warp"],
  ["SDK", "RedStone"],
  ["Action", "Transfer"],
  ["Action", "Credit-Notice"],
  ["Action", "Debit-Notice"],
  ["Action", "Balance"],
  ["Action", "Eval"],
  ["App-Name", "SmartWeaveAction"],
  ["App-Name", "SmartWeaveContract"],
  ["App-Name", "SmartWeaveContractSource"],
  ["App-Name", "ArDrive-App"],
  ["App-Name", "ArDrive-CLI"],
  ["App-Name", "ArDrive-Web"],
  ["App-Name", "ArDrive-Core"],
  ["App-Name", "ArDrive Turbo"],
  ["App-Name", "ArDrive"],
  ["App-Name", "Redstone"],
  ["App-Name", "ArConnect"],
  ["App-Name", "arweave-deploy"],
  ["App-Version", "0.3.0"],
  ["App-Version", "0.2.0"],
  ["App-Version", "1.0.0"],
  ["ArFS", "0.11"],
  ["ArFS", "0.12"],
  ["ArFS", "0.13"],
  ["ArFS", "0.14"],
  ["ArFS", "0.15"],
  ["Cipher", "AES256-GCM"],
  ["Entity-Type", "file"],
  ["Entity-Type", "folder"],
  ["Entity-Type", "drive"],
  ["Entity-Type", "snapshot"],
  ["Drive-Privacy", "public"],
  ["Drive-Privacy", "private"],
  ["Drive-Auth-Mode", "password"],
  ["Client", "ArDrive-Web"],
  ["Signing-Client", "ArConnect"],
  ["Protocol", "Lens"],
  ["Application", "RedStone"],
  ["IPFS-Add", "application/octet-stream"],
  ["Sequencer", "RedStone"],
];

const nameCodes = new Map(knownNames.map((name, index) => [name, index * 2 + 1]));
/** Codes of known pairs, by name and value. */
const pairCodes = new Map<string, Map<string, number>>();
for (const [index, [name, value]] of knownPairs.entries()) {
  const codes = pairCodes.get(name) ?? new Map<string, number>();
  pairCodes.set(name, codes.set(value, index * 2 + 2));
}

/** Encodings of a value. Numbers are part of the format. */
export const tagForms = { text: 0, base64url: 1, hex: 2, decimal: 3, uuid: 4, prefixedHex: 5 } as const;

const hexPattern = /^[0-9a-f]+$/;
const decimalPattern = /^[1-9][0-9]{4,14}$/;
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const base64urlLengths = new Set([43, 64, 86]); // 32, 48 and 64 bytes: ids, block hashes, signatures
const hexLengthMin = 16;
const uuidLength = 36;

let scratch = Buffer.alloc(16 * 1_024);

/** Serializes tags in order. Their text must be well-formed UTF-16 (decoded UTF-8 always is). */
export function encodeTagBlob(tags: readonly Tag[]): Uint8Array {
  let at = 0;
  for (const { name, value } of tags) {
    // At most three bytes of UTF-8 for a UTF-16 unit, and three varints.
    reserve(at + (name.length + value.length) * 3 + 16);
    const pairCode = pairCodes.get(name)?.get(value);
    if (pairCode !== undefined) {
      at = writeVarint(at, pairCode);
      continue;
    }
    at = writeName(at, name);
    at = writeValue(at, value);
  }
  return new Uint8Array(scratch.subarray(0, at));
}

/** Reads the output of `encodeTagBlob`. */
export function decodeTagBlob(blob: Uint8Array): Tag[] {
  const tags: Tag[] = [];
  const span = beginTags(blob);
  while (nextTag(span)) tags.push({ name: tagNameOf(span), value: tagValueOf(span) });
  return tags;
}

/** The parts of the present tag of a blob. One object serves all tags of a blob. */
export type TagSpan = {
  readonly blob: Uint8Array;
  /** Index in `knownPairs`; −1: the tag has parts. */
  pair: number;
  /** Index in `knownNames`; −1: the name is the text between `nameStart` and `nameEnd`. */
  knownName: number;
  nameStart: number;
  nameEnd: number;
  /** Form of the value, which is between `valueStart` and `end`. */
  form: number;
  valueStart: number;
  /** Start of the next tag. */
  end: number;
};

/** Begins before the first tag of a blob. */
export function beginTags(blob: Uint8Array): TagSpan {
  return { blob, pair: -1, knownName: -1, nameStart: 0, nameEnd: 0, form: tagForms.text, valueStart: 0, end: 0 };
}

/** Goes on to the next tag; false at the end. */
export function nextTag(span: TagSpan): boolean {
  if (span.end >= span.blob.length) return false;
  const code = readVarint(span);
  if (code !== 0 && code % 2 === 0) {
    span.pair = code / 2 - 1;
    return true;
  }
  span.pair = -1;
  span.knownName = code === 0 ? -1 : (code - 1) / 2;
  if (code === 0) {
    const size = readVarint(span);
    span.nameStart = span.end;
    span.end += size;
    span.nameEnd = span.end;
  }
  const head = readVarint(span);
  span.form = head % 8;
  span.valueStart = span.end;
  span.end += Math.floor(head / 8);
  assert(span.end <= span.blob.length, "a tag blob ends at the end of a tag");
  return true;
}

/**
 * Buffer's methods, called on the database's byte arrays. Wrapping an array in a Buffer costs more than reading eight
 * texts from it (0.8 of 1.3 µs, measured).
 */
const { toString: readBytes, readUIntBE } = Buffer.prototype;

/** The name of the present tag. */
export function tagNameOf({ blob, pair, knownName, nameStart, nameEnd }: TagSpan): string {
  if (pair === -1 && knownName === -1) return readBytes.call(blob, "utf8", nameStart, nameEnd);
  const name = pair === -1 ? knownNames[knownName] : knownPairs[pair]?.[0];
  assert(name !== undefined, "a tag blob names a known name");
  return name;
}

/** The value of the present tag. */
export function tagValueOf({ blob, pair, form, valueStart: start, end }: TagSpan): string {
  if (pair !== -1) {
    const value = knownPairs[pair]?.[1];
    assert(value !== undefined, "a tag blob names a known pair");
    return value;
  }
  switch (form) {
    case tagForms.text:
      return readBytes.call(blob, "utf8", start, end);
    case tagForms.base64url:
      return readBytes.call(blob, "base64url", start, end);
    case tagForms.hex:
      return readBytes.call(blob, "hex", start, end);
    case tagForms.prefixedHex:
      return `0x${readBytes.call(blob, "hex", start, end)}`;
    case tagForms.decimal:
      return String(readUIntBE.call(blob, start, end - start));
    case tagForms.uuid: {
      const hex = readBytes.call(blob, "hex", start, end);
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    }
    default:
      throw new Error(`a tag blob has no form ${form}`);
  }
}

function writeName(at: number, name: string): number {
  const code = nameCodes.get(name);
  if (code !== undefined) return writeVarint(at, code);
  const lengthAt = writeVarint(at, 0);
  const size = Buffer.byteLength(name);
  const start = writeVarint(lengthAt, size);
  scratch.write(name, start);
  return start + size;
}

function writeValue(at: number, value: string): number {
  // The value is written after space for a length of one or two bytes.
  const form = formOf(value);
  if (form !== tagForms.text) {
    const size = writeCompact(at + 2, value, form);
    if (size > 0) return closeValue(at, size, form);
  }
  const size = Buffer.byteLength(value);
  const start = writeVarint(at, size * 8 + tagForms.text);
  scratch.write(value, start);
  return start + size;
}

/** Writes the head of a value whose bytes are at `at + 2`. */
function closeValue(at: number, size: number, form: number): number {
  const start = writeVarint(at, size * 8 + form);
  if (start !== at + 2) scratch.copyWithin(start, at + 2, at + 2 + size);
  return start + size;
}

/** The probable form of a value; only writing it shows whether it restores exactly the same text. */
function formOf(value: string): number {
  const { length } = value;
  if (length < hexLengthMin) return decimalPattern.test(value) ? tagForms.decimal : tagForms.text;
  if (length % 2 === 0) {
    if (length === uuidLength && uuidPattern.test(value)) return tagForms.uuid;
    if (hexPattern.test(value)) return tagForms.hex;
    if (value.startsWith("0x") && hexPattern.test(value.slice(2))) return tagForms.prefixedHex;
  }
  return base64urlLengths.has(length) ? tagForms.base64url : tagForms.text;
}

/** Writes a value in its form. @returns Its size, 0 when reading would not restore the text. */
function writeCompact(at: number, value: string, form: number): number {
  switch (form) {
    case tagForms.uuid:
      return scratch.write(value.replaceAll("-", ""), at, "hex");
    case tagForms.hex:
      return scratch.write(value, at, "hex");
    case tagForms.prefixedHex:
      return scratch.write(value.slice(2), at, "hex");
    case tagForms.decimal:
      return writeDecimal(at, Number(value));
    default: {
      const size = scratch.write(value, at, "base64url");
      return scratch.toString("base64url", at, at + size) === value ? size : 0;
    }
  }
}

function writeDecimal(at: number, value: number): number {
  // A Buffer reads at most six bytes as one number.
  if (value >= 2 ** 48) return 0;
  const size = Math.ceil(Math.log2(value + 1) / 8);
  scratch.writeUIntBE(value, at, size);
  return size;
}

function writeVarint(at: number, value: number): number {
  let rest = value;
  let end = at;
  while (rest >= 128) {
    scratch[end++] = (rest % 128) + 128;
    rest = Math.floor(rest / 128);
  }
  scratch[end++] = rest;
  return end;
}

/** Reads the number at `span.end`, and moves it behind the number. */
function readVarint(span: TagSpan): number {
  const first = span.blob[span.end];
  if (first !== undefined && first < 128) {
    span.end += 1;
    return first;
  }
  let value = 0;
  let scale = 1;
  for (;;) {
    const byte = span.blob[span.end++];
    assert(byte !== undefined && scale < 2 ** 49, "a tag blob ends at the end of a tag");
    value += (byte % 128) * scale;
    if (byte < 128) return value;
    scale *= 128;
  }
}

function reserve(size: number): void {
  if (size <= scratch.length) return;
  const larger = Buffer.alloc(2 ** Math.ceil(Math.log2(size)));
  scratch.copy(larger);
  scratch = larger;
}

/** Values of Content-Type and Content-Encoding, in this order; undefined when the tag is absent. */
type ContentTags = readonly (string | undefined)[];

const names = ["content-type", "content-encoding"] as const;

/** The first tag of each name is used. */
export function contentTags(tags: readonly Tag[]): ContentTags {
  return names.map((name) => tags.find((tag) => tag.name.toLowerCase() === name)?.value);
}

/** Serializes the values as one text; null when both are undefined. */
export function writeContentTags(values: ContentTags): string | null {
  return values.every((value) => value === undefined) ? null : JSON.stringify(values);
}

/** Reads the output of `writeContentTags`. */
export function readContentTags(text: string | null): ContentTags {
  const values: unknown = text === null ? [] : JSON.parse(text);
  return Array.isArray(values) ? values.map((value) => (typeof value === "string" ? value : undefined)) : [];
}
