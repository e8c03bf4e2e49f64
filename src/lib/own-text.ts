/**
 * Texts without the longer ones that they were cut from.
 *
 * The runtime has all of a text in memory while a part of it is used: an id from an address of 15 KB would take 15 KB
 * in a cache whose bound counts 43 characters (measured).
 * @module
 */

/** A part that is shorter than its text by at most so much may share it. Characters. */
const sharedMax = 256;

/** A copy of a text, which shares no memory with any other. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}

/** A part of a text: a copy if the text is much longer. */
export function partOf(text: string, part: string): string {
  return text.length > part.length + sharedMax ? ownText(part) : part;
}
