/**
 * The node that cold.ts fetches from, in a process of its own: the chunks of several transactions, as JSON and in
 * binary.
 * @module
 */
import { servedChunkBytes, servedChunkFields } from "../../src/arweave/chunk.ts";
import { makeData } from "../../test/chain/data-node.ts";
import type { NodeRoot } from "../support/gateway-process.ts";

/** What the node has. */
export type ColdNodeLine = Readonly<{ port: number; roots: readonly NodeRoot[] }>;

if (import.meta.main) serve(Number(process.argv[2]), Number(process.argv[3]));

function serve(count: number, size: number): void {
  const bodies = new Map<string, { json: () => string; binary: Uint8Array<ArrayBuffer> }>();
  const roots = Array.from({ length: count }, (_, seed): NodeRoot => {
    const { root, bytes, spans, path } = makeData(seed, size);
    const { id, dataRoot, weaveStart = 0n } = root;
    for (const [index, { start, end }] of spans.entries()) {
      const served = { chunk: bytes.subarray(start, end), dataPath: path(index), txPath: new Uint8Array(0) };
      const json = () => JSON.stringify(servedChunkFields(served, weaveStart + BigInt(end)));
      bodies.set(String(weaveStart + BigInt(start) + 1n), { json, binary: servedChunkBytes(served) });
    }
    return { id, dataRoot, size, weaveStart: String(weaveStart), digest: Bun.SHA256.hash(bytes, "hex") };
  });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const [kind, offset = ""] = url.slice(url.indexOf("/", 8) + 1).split("/");
      const body = bodies.get(offset); // by the first byte of a chunk, which is what readers of whole data request
      if (body !== undefined && kind === "chunk2") return new Response(body.binary);
      if (body !== undefined && kind === "chunk") return new Response(body.json());
      return new Response("", { status: 404 });
    },
  });
  const line: ColdNodeLine = { port: server.port ?? 0, roots };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
