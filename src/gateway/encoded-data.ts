/**
 * Content as base64url within a text, written piece by piece so that the event loop is not blocked.
 * @module
 */
import { beginComposing, bringToDisk, type OpenContent } from "../content/opened-content.ts";
import { assert } from "../lib/assert.ts";
import { type Composing, sliceBytesMax } from "../lib/event-loop.ts";

/** Pieces are cut to a multiple of this size, so that they join without padding. Bytes. */
const groupSize = 3;

/**
 * Writes `before`, the content's base64url, `after` as UTF-8.
 *
 * @throws What reading the content throws, and `hold`.
 */
export async function encodedBody(
  before: string,
  content: Pick<OpenContent, "root" | "size" | "cached" | "read">,
  after: string,
  composing: Composing,
): Promise<Blob> {
  const { size } = content;
  const encodedSize = Math.ceil((size * 4) / groupSize);
  const bodySize = Buffer.byteLength(before) + encodedSize + Buffer.byteLength(after);
  const { hold, signal } = composing;
  const whole = { start: 0, end: size };
  await hold(bodySize);
  await bringToDisk(content, whole, signal);
  const end = await beginComposing(content, [whole], bodySize, composing);
  try {
    return await encode(before, content, after, bodySize, composing);
  } finally {
    end();
  }
}

async function encode(
  before: string,
  content: Pick<OpenContent, "size" | "read">,
  after: string,
  bodySize: number,
  { signal, slice, blobOf }: Composing,
): Promise<Blob> {
  // Safe: every byte is written before it is sent. The buffer is not pooled, because it moves to a thread.
  const body = Buffer.allocUnsafeSlow(bodySize);
  let at = body.write(before);
  let held = Buffer.alloc(0);
  for await (const piece of content.read({ start: 0, end: content.size }, signal)) {
    for (let from = 0; from < piece.length; from += sliceBytesMax) {
      const part = piece.subarray(from, from + sliceBytesMax);
      await slice(part.length);
      const joined = Buffer.concat([held, part]);
      const whole = joined.length - (joined.length % groupSize);
      at += body.write(joined.subarray(0, whole).toString("base64url"), at, "latin1");
      held = joined.subarray(whole);
    }
  }
  at += body.write(held.toString("base64url"), at, "latin1");
  at += body.write(after, at);
  assert(at === body.length, "content has the size that it was opened with");
  return await blobOf(body);
}
