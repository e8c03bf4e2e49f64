/**
 * Content as base64url inside of a text, written piece by piece so that no turn of the event loop is long.
 * @module
 */
import type { OpenContent } from "../content/open-content.ts";
import { assert } from "../lib/assert.ts";

/** Bytes that stand for three: a piece is cut to a multiple of them, so that pieces join without padding. */
const groupSize = 3;

/**
 * Writes `before`, the content's base64url, `after` as UTF-8.
 *
 * @throws What reading the content throws.
 */
export async function encodedBody(
  before: string,
  content: Pick<OpenContent, "size" | "read">,
  after: string,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const { size } = content;
  const encodedSize = Math.ceil((size * 4) / groupSize);
  const body = Buffer.alloc(Buffer.byteLength(before) + encodedSize + Buffer.byteLength(after));
  let at = body.write(before);
  let held = Buffer.alloc(0);
  for await (const piece of content.read({ start: 0, end: size }, signal)) {
    const joined = Buffer.concat([held, piece]);
    const whole = joined.length - (joined.length % groupSize);
    at += body.write(joined.subarray(0, whole).toString("base64url"), at, "latin1");
    held = joined.subarray(whole);
  }
  at += body.write(held.toString("base64url"), at, "latin1");
  at += body.write(after, at);
  assert(at === body.length, "content has the size that it was opened with");
  return new Uint8Array(body.buffer, body.byteOffset, body.length);
}
