/**
 * Bodies that are composed of content, where some of it comes from slow sources.
 * @module
 */
import { expect, test } from "bun:test";
import { type BodyReading, type ReadableContent, spanBody } from "../../src/http/gateway/content-response.ts";
import { createCompositions } from "../../src/lib/event-loop.ts";

const size = 2 ** 20;
const span = { start: 0, end: size };

function contentOf(isHere: boolean, read: ReadableContent["read"]): ReadableContent {
  return {
    size,
    root: undefined,
    check: async () => undefined,
    cached: () => isHere,
    fetched: () => !isHere,
    read,
    bytes: async () => new Uint8Array(size),
    file: async () => undefined,
  };
}

async function* silent(_span: unknown, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  await new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  yield new Uint8Array();
}

async function* whole(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(size);
}

test("N6: sources that send nothing keep no other body from being composed", async () => {
  const life = new AbortController();
  const compositions = createCompositions();
  const hold = async () => undefined;
  const reading: BodyReading = { ...compositions, hold, signal: life.signal, bufferBytesMax: 8 * size };
  const slow = Array.from({ length: 16 }, () => spanBody(contentOf(false, silent), span, reading));
  for (const isHere of [true, false]) {
    const { body } = await spanBody(contentOf(isHere, whole), span, reading);
    expect(body instanceof Blob ? body.size : 0).toBe(size);
  }
  life.abort(new Error("left"));
  for (const each of await Promise.allSettled(slow)) expect(each.status).toBe("rejected");
});
