/**
 * Request bodies, read whole within a limit.
 * @module
 */
import { Failure } from "../failures.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";
import { piecesOf, wholeBytesMax } from "./body-pieces.ts";
import { contextOf } from "./context.ts";
import type { RequestMemory } from "./memory-account.ts";

/** How long a body may take. */
export type BodyTimes = Readonly<{
  /** However small it is. Milliseconds. */
  leastMs: number;
  /** The slowest that a body may arrive, seen over all of it. Bytes a millisecond. */
  slowestBytesPerMs: number;
}>;

/** Memory for a body whose size was not announced is taken in steps of this size. Bytes. */
const holdStepBytes = 64 * 2 ** 10;

/** The runtime reads so much of a body before anybody takes it (decision 091). Bytes. */
const aheadBytesMax = 2 * 2 ** 20;

/** Slower than a modem of 1998: whoever sends a byte a second sends it to hold a connection. */
const timesDefault: BodyTimes = { leastMs: 20_000, slowestBytesPerMs: 32 };

/**
 * Reads a body of at most `bytesMax` bytes. Its bytes count against the memory of request bodies until the request is
 * answered.
 *
 * @param bytesMax - Inclusive; checked against Content-Length before anything is read.
 * @throws Failure `too_large`, `body_timeout`, `busy`; the signal's reason when the caller leaves.
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  { leastMs, slowestBytesPerMs }: BodyTimes = timesDefault,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) throw new Failure("too_large", { announced, bytesMax });
  const { holdRequest } = contextOf(request).memory;
  await holdRequest(announced, Math.min(announced, aheadBytesMax));
  const { body } = request; // from here on the runtime reads ahead: 2 MB of a stream of HTTP/2
  if (body === null) return new Uint8Array(0);
  const ms = leastMs + Math.ceil((announced > 0 ? announced : bytesMax) / slowestBytesPerMs);
  const read = () => (announced > 0 ? readAnnounced(request, announced) : readCounted(body, bytesMax, holdRequest));
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

/** Reads a body of a known size into one buffer. A sender that stops is not waited for until the deadline. */
async function readAnnounced(request: Request, announced: number): Promise<Uint8Array<ArrayBuffer>> {
  if (announced <= wholeBytesMax) return await request.bytes();
  const bytes = new Uint8Array(announced);
  let at = 0;
  for await (const piece of piecesOf(request)) {
    if (at + piece.byteLength > announced) throw new Failure("too_large", { announced });
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return at === announced ? bytes : bytes.slice(0, at);
}

async function readCounted(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
  hold: RequestMemory["holdRequest"],
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  let held = 0;
  for await (const piece of body) {
    size += piece.byteLength;
    if (size > bytesMax) throw new Failure("too_large", { bytesMax });
    pieces.push(piece);
    for (; held < size; held += holdStepBytes) await hold(holdStepBytes, aheadBytesMax);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}
