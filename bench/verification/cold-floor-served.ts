/**
 * The limits of this machine, which cold.ts measures beside Cairn: a bare server that fetches as many chunks at once
 * from the same node, and streams them. A relay sends what comes. A least gateway also verifies each chunk, by its path
 * and one SHA-256, which a thread of the runtime makes, and writes it to a file. Neither has time-outs, limits or a
 * cache.
 * @module
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { readServedChunkBytes } from "../../src/arweave/chunk.ts";
import { chunkSize, validatePath } from "../../src/arweave/merkle.ts";
import { chunksAhead } from "../../src/content/root-reads.ts";
import { assert } from "../../src/lib/assert.ts";
import { decodeBase64url } from "../../src/lib/base64url.ts";
import { equalBytes } from "../../src/lib/bytes.ts";
import type { NodeRoot } from "../support/gateway-process.ts";

/** The configuration, from the command. */
export type ColdFloor = Readonly<{
  kind: "least gateway" | "relay";
  url: string;
  folder: string;
  roots: readonly NodeRoot[];
}>;

/** Takes the chunk at an offset of the data, which is sent when the promise resolves. */
type Store = (at: number, chunk: Uint8Array, dataPath: Uint8Array) => Promise<void>;

if (import.meta.main) serve(JSON.parse(process.argv[2] ?? ""));

function serve({ kind, url, folder, roots }: ColdFloor): void {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const root = roots.find(({ id }) => request.url.endsWith(`/raw/${id}`));
      if (root === undefined) return new Response("", { status: 404 });
      return new Response(streamOf(url, root, kind === "relay" ? async () => {} : await openStore(folder, root)));
    },
  });
  process.stdout.write(`${server.port}\n`);
}

function streamOf(url: string, { weaveStart, size }: NodeRoot, store: Store): ReadableStream<Uint8Array> {
  const underWay: Promise<Uint8Array>[] = [];
  let next = 0;
  const fetchChunk = async (at: number): Promise<Uint8Array> => {
    const response = await fetch(`${url}/chunk2/${BigInt(weaveStart) + BigInt(at) + 1n}`);
    const served = readServedChunkBytes(new Uint8Array(await response.arrayBuffer()));
    assert(served !== undefined, "the node gives every chunk");
    await store(at, served.chunk, served.dataPath);
    return served.chunk;
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    for (; next < size && underWay.length <= chunksAhead; next += chunkSize) underWay.push(fetchChunk(next));
    const chunk = await underWay.shift();
    if (chunk === undefined) controller.close();
    else controller.enqueue(chunk);
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Verifies chunks, and writes them to a file. */
async function openStore(folder: string, { id, dataRoot, size }: NodeRoot): Promise<Store> {
  const root = decodeBase64url(dataRoot);
  assert(root !== undefined, "the node has a data root for every transaction");
  const file = await open(join(folder, id), "w");
  let stored = 0;
  return async (offset, chunk, dataPath) => {
    const leaf = validatePath({ root, path: dataPath, target: offset, size, ruleset: "relaxed" });
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", viewOf(chunk)));
    assert(leaf !== undefined && equalBytes(digest, leaf.hash), "the node gives the chunk of the offset");
    await file.write(chunk, 0, chunk.length, offset);
    stored += chunk.length;
    if (stored === size) await file.close();
  };
}

/** The same bytes with the type that the runtime's hash takes. */
function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array<ArrayBuffer> {
  assert(buffer instanceof ArrayBuffer, "the body of a response has a buffer of its own");
  return new Uint8Array(buffer, byteOffset, byteLength);
}
