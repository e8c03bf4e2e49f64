/**
 * Request bodies, read whole within a limit.
 * @module
 */
import { Failure } from "../failures.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";

/** How long a body may take. */
export type BodyTimes = Readonly<{
  /** However small it is. Milliseconds. */
  leastMs: number;
  /** The slowest that a body may arrive, seen over all of it. Bytes a millisecond. */
  slowestBytesPerMs: number;
}>;

/** Slower than a modem of 1998: whoever sends a byte a second sends it to hold a connection. */
const timesDefault: BodyTimes = { leastMs: 20_000, slowestBytesPerMs: 32 };

/**
 * Reads a body of at most `bytesMax` bytes.
 *
 * @param bytesMax - Inclusive; checked against Content-Length before anything is read.
 * @throws Failure `too_large`, `body_timeout`; the signal's reason when the caller leaves.
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  { leastMs, slowestBytesPerMs }: BodyTimes = timesDefault,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) throw new Failure("too_large", { announced, bytesMax });
  const { body } = request;
  if (body === null) return new Uint8Array(0);
  const ms = leastMs + Math.ceil((announced > 0 ? announced : bytesMax) / slowestBytesPerMs);
  // Announced bodies cannot exceed what they announced; only chunked ones have to be counted.
  const read = () => (announced > 0 ? request.bytes() : readCounted(body, bytesMax));
  try {
    return await withDeadline(request.signal, ms, (own) => untilStopped(read(), own));
  } catch (error) {
    if (isTimeout(error)) throw new Failure("body_timeout", { announced, ms }, error);
    throw error;
  }
}

/**
 * Reads a JSON body.
 *
 * @throws Failure `too_large`, `body_timeout`, `malformed_json`.
 */
export async function readJsonBody(request: Request, bytesMax: number): Promise<unknown> {
  const bytes = await readBody(request, bytesMax);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Failure("malformed_json", { size: bytes.byteLength }, error);
  }
}

async function readCounted(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > bytesMax) throw new Failure("too_large", { bytesMax });
    pieces.push(piece);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}
