/**
 * Several ranges in one response, `multipart/byteranges`, with a length that is known before a byte is read.
 * Source: RFC 9110 §14.6; RFC 2046 §5.1.
 * @module
 */
import { createHash } from "node:crypto";
import { type ByteSpan, contentRange } from "../lib/range.ts";

/** The frame around the parts of one response. */
export type MultipartFrame = Readonly<{
  contentType: string;
  /** The header before each part's bytes, in order. */
  heads: readonly Uint8Array<ArrayBuffer>[];
  tail: Uint8Array<ArrayBuffer>;
  /** Bytes of the whole body. */
  size: number;
}>;

/**
 * Secret part of the boundary, so that no content can contain the boundary on purpose.
 */
const boundarySecret = crypto.getRandomValues(new Uint8Array(32));

const encoder = new TextEncoder();

/**
 * Frames disjoint spans of one body. HEAD and GET of the same request get the same frame.
 *
 * @param tag - The body's entity tag.
 * @param partType - The body's media type, which each part repeats.
 * @param spans - Non-empty, within `size` bytes.
 */
export function frameSpans(tag: string, partType: string, spans: readonly ByteSpan[], size: number): MultipartFrame {
  const ranges = spans.map((span) => contentRange(span, size));
  const boundary = createHash("sha256")
    .update(boundarySecret)
    .update(tag)
    .update(ranges.join())
    .digest("hex")
    .slice(0, 40);
  const heads = ranges.map((range, index) => {
    const gap = index === 0 ? "" : "\r\n";
    const fields = `Content-Type: ${partType}\r\nContent-Range: ${range}`;
    return encoder.encode(`${gap}--${boundary}\r\n${fields}\r\n\r\n`);
  });
  const tail = encoder.encode(`\r\n--${boundary}--\r\n`);
  const framing = heads.reduce((sum, head) => sum + head.byteLength, tail.byteLength);
  const bodies = spans.reduce((sum, span) => sum + span.end - span.start, 0);
  return {
    contentType: `multipart/byteranges; boundary=${boundary}`,
    heads,
    tail,
    size: framing + bodies,
  };
}
