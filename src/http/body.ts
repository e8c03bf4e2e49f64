/**
 * Request bodies, read whole within a limit.
 * @module
 */
import { Failure } from "../failures.ts";

/**
 * Reads a body of at most `bytesMax` bytes.
 *
 * @param bytesMax - Inclusive; checked against Content-Length before anything is read.
 * @throws Failure `too_large`.
 */
export async function readBody(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) throw new Failure("too_large", { announced, bytesMax });
  if (request.body === null) return new Uint8Array(0);
  // Announced bodies cannot exceed what they announced; only chunked ones have to be counted.
  if (announced > 0) return await request.bytes();
  return await readCounted(request.body, bytesMax);
}

/**
 * Reads a JSON body.
 *
 * @throws Failure `too_large`, `malformed_json`.
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
