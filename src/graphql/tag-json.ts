/**
 * Writes tags as JSON straight from their stored form. The result is what `JSON.stringify` makes of the decoded texts.
 * Source: docs/reference/index-layout.md#tags.
 * @module
 */
import {
  beginTags,
  knownNames,
  knownPairs,
  nextTag,
  type TagSpan,
  tagForms,
  tagNameOf,
  tagValueOf,
} from "../store/index/rows/tag-blob.ts";
import {
  addAscii,
  addBase64url,
  addBytes,
  addCharacter,
  addHex,
  addJsonUtf8,
  compileShape,
  leaf,
  type Output,
  type Shape,
  textBytes,
  type Write,
} from "./response-bytes.ts";
import type { WrittenField } from "./selection.ts";

const quote = 0x22;

const knownNamesJson = knownNames.map((name) => textBytes(JSON.stringify(name)));
const knownPairsJson = knownPairs.map(([name, value]) => ({
  name: textBytes(JSON.stringify(name)),
  value: textBytes(JSON.stringify(value)),
}));

const tagShape: Shape<TagSpan> = {
  name: "Tag",
  fields: { name: leaf(writeName), value: leaf(writeTagValue) },
};

function writeName(span: TagSpan, out: Output): void {
  const known = span.pair === -1 ? knownNamesJson[span.knownName] : knownPairsJson[span.pair]?.name;
  if (known !== undefined) addBytes(out, known);
  else writeUtf8(out, span.blob, span.nameStart, span.nameEnd);
}

function writeUtf8(out: Output, bytes: Uint8Array, start: number, end: number): void {
  addCharacter(out, quote);
  addJsonUtf8(out, bytes, start, end);
  addCharacter(out, quote);
}

/** Writes the value of the present tag. */
export function writeTagValue(span: TagSpan, out: Output): void {
  const { blob, pair, form, valueStart: start, end } = span;
  const known = knownPairsJson[pair];
  if (known !== undefined) addBytes(out, known.value);
  else if (form === tagForms.text) writeUtf8(out, blob, start, end);
  else {
    addCharacter(out, quote);
    if (form === tagForms.base64url) addBase64url(out, blob, start, end);
    else if (form === tagForms.hex) addHex(out, blob, start, end);
    else addAscii(out, tagValueOf(span));
    addCharacter(out, quote);
  }
}

/** The whole tags of known pairs, and the beginnings of those with known names. */
const knownTagsJson = knownPairs.map(([name, value]) => textBytes(JSON.stringify({ name, value })));
const knownBeginnings = knownNames.map((name) => textBytes(`{"name":${JSON.stringify(name)},"value":`));

/** Names and values in that order are what clients ask for: their constant parts are written at once. */
function isNameAndValue(fields: readonly WrittenField[]): boolean {
  return fields.map(({ key, name }) => `${key}:${name}`).join(" ") === "name:name value:value";
}

function writeNameAndValue(span: TagSpan, out: Output): void {
  const whole = knownTagsJson[span.pair];
  if (whole !== undefined) {
    addBytes(out, whole);
    return;
  }
  const beginning = knownBeginnings[span.knownName];
  if (beginning !== undefined) addBytes(out, beginning);
  else {
    addAscii(out, '{"name":');
    writeUtf8(out, span.blob, span.nameStart, span.nameEnd);
    addAscii(out, ',"value":');
  }
  writeTagValue(span, out);
  addCharacter(out, closingBrace);
}

const closingBrace = 0x7d;
const opening = 0x5b;
const comma = 0x2c;
const closing = 0x5d;

/** The field `tags` of a row; `pick` finds their blob, null is written as an empty list. */
export function tagsField<Source>(pick: (source: Source) => Uint8Array | null): (field: WrittenField) => Write<Source> {
  return ({ inner }) => {
    const write = isNameAndValue(inner) ? writeNameAndValue : compileShape(tagShape, inner);
    return (source, out) => {
      const blob = pick(source);
      addCharacter(out, opening);
      if (blob !== null) {
        const span = beginTags(blob);
        for (let index = 0; nextTag(span); index += 1) {
          if (index > 0) addCharacter(out, comma);
          write(span, out);
        }
      }
      addCharacter(out, closing);
    };
  };
}

const contentTypeIndex = knownNames.indexOf("Content-Type");

/** Goes to the first tag with the name `Content-Type`; undefined without one. */
export function contentTypeTag(blob: Uint8Array): TagSpan | undefined {
  const span = beginTags(blob);
  while (nextTag(span)) {
    const isKnown = span.pair === -1 && span.knownName !== -1;
    if (isKnown ? span.knownName === contentTypeIndex : tagNameOf(span) === "Content-Type") return span;
  }
  return undefined;
}

/** Bytes of the names and values of tags as UTF-8, at most; 0 for tags that were not selected. */
export function tagBytesOf(blob: Uint8Array | null): number {
  if (blob === null) return 0;
  const span = beginTags(blob);
  let size = 0;
  while (nextTag(span)) size += nameSize(span) + valueSize(span);
  return size;
}

function nameSize({ pair, knownName, nameStart, nameEnd }: TagSpan): number {
  if (pair !== -1) return knownPairs[pair]?.[0].length ?? 0;
  return knownName === -1 ? nameEnd - nameStart : (knownNames[knownName]?.length ?? 0);
}

function valueSize({ pair, form, valueStart, end }: TagSpan): number {
  if (pair !== -1) return knownPairs[pair]?.[1].length ?? 0;
  // At most: hexadecimal digits and their prefix or dashes, three digits of a byte.
  return form === tagForms.text ? end - valueStart : (end - valueStart) * 2 + 4;
}
