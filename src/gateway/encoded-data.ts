/**
 * Content as base64url inside of a text, written piece by piece so that no turn of the event loop is long.
 * @module
 */
import type { OpenContent } from "../content/open-content.ts";
import { assert } from "../lib/assert.ts";
import { blobOf } from "../lib/bytes.ts";

/** How a body is composed. */
export type Composing = Readonly<{
  signal: AbortSignal;
  /** Takes memory for a body of that size before it is composed. @throws Failure `busy`. */
  hold: (bytes: number) => Promise<void>;
}>;

/** Bytes that stand for three: a piece is cut to a multiple of them, so that pieces join without padding. */
const groupSize = 3;

/**
 * Writes `before`, the content's base64url, `after` as UTF-8.
 *
 * @throws What reading the content throws, and `hold`.
 */
export async function encodedBody(
  before: string,
  content: Pick<OpenContent, "size" | "read">,
  after: string,
  { signal, hold }: Composing,
): Promise<Blob> {
  const { size } = content;
  const encodedSize = Math.ceil((size * 4) / groupSize);
  const bodySize = Buffer.byteLength(before) + encodedSize + Buffer.byteLength(after);
  await hold(bodySize);
  const body = Buffer.allocUnsafe(bodySize); // every byte is written, or nothing of it is sent
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
  return blobOf(body);
}
