/**
 * Writing a stream of any size into an upload: in as many parts as it takes.
 * @module
 */
import { chunkSizeMax, type Multipart } from "./multipart-uploads.ts";
import type { ArrivingPart } from "./part-writers.ts";

/** Parts are cut so large. Bytes. */
const partBytes = Math.min(chunkSizeMax, 256 * 2 ** 20);

/** Bytes that arrive, or are at hand. */
export type ArrivingBytes = Omit<ArrivingPart, "pieces"> &
  Readonly<{ pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array> }>;

/** Writes them. @throws Failure as `Multipart.put` does. */
export async function putAll(
  multipart: Pick<Multipart, "put">,
  id: string,
  { start, size, pieces }: ArrivingBytes,
  signal: AbortSignal,
): Promise<void> {
  const cutter = createCutter(pieces);
  for (let at = 0; at < size; at += partBytes) {
    const part = Math.min(partBytes, size - at);
    // The last one takes all that comes, so that more than was announced is seen.
    const cut = cutter(at + part === size ? Number.POSITIVE_INFINITY : part);
    await multipart.put(id, { start: start + at, size: part, pieces: cut }, signal);
  }
}

/** Cuts a stream into runs of so many bytes. */
function createCutter(pieces: ArrivingBytes["pieces"]): (bytes: number) => AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  return async function* (bytes) {
    for (let left = bytes; left > 0; ) {
      if (rest.length === 0) {
        const next = await pieces.next();
        if (next.done === true) return;
        rest = next.value;
      }
      const taken = rest.subarray(0, Math.min(rest.length, left));
      rest = rest.subarray(taken.length);
      left -= taken.length;
      if (taken.length > 0) yield taken;
    }
  };
}
