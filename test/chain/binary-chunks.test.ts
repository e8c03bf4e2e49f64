/**
 * The choice between the two formats of a node's chunks, and hostile bodies of the binary format.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { chunkBytesMax, readServedChunkBytes, servedChunkBytes, servedChunkFields } from "../../src/arweave/chunk.ts";
import { chunkSize } from "../../src/arweave/merkle.ts";
import { createChunks } from "../../src/chain/chunks.ts";
import { type Node, openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { madeId } from "./data-node.ts";
import { type FaultServer, openFaultServer, type Result } from "./fault-server.ts";

const none = new AbortController().signal;
const served = {
  chunk: new Uint8Array(1_000).fill(7),
  txPath: new Uint8Array(160).fill(1),
  dataPath: new Uint8Array(64).fill(2),
};
const json: Result = { status: 200, body: JSON.stringify(servedChunkFields(served, 1_000n)) };
const binary: Result = { status: 200, body: servedChunkBytes(served) };

const opened: { server: FaultServer; node: Node }[] = [];
afterEach(async () => {
  for (const { server, node } of opened.splice(0)) {
    node.close();
    await server.stop();
  }
});

/** A node that responds to both formats in its way. */
async function nodeWith(responses: Readonly<{ json: Result; binary: Result }>) {
  const server = await openFaultServer(({ path }) => (path.startsWith("/chunk2/") ? responses.binary : responses.json));
  const node = openNode(server.url, { firstByteMs: 10_000, stallMs: 10_000, totalMs: 20_000 });
  opened.push({ server, node });
  return { server, node };
}

describe("a node's chunks", () => {
  test("come in binary where the node offers it, with the same parts as in JSON", async () => {
    const { server, node } = await nodeWith({ json, binary });
    for (const offset of [1n, 2n]) {
      const response = await node.chunk(offset, none);
      expect(response.kind === "ok" && Buffer.from(response.value.chunk).equals(served.chunk)).toBe(true);
      expect(response.kind === "ok" && Buffer.from(response.value.dataPath).equals(served.dataPath)).toBe(true);
      expect(response.kind === "ok" && Buffer.from(response.value.txPath).equals(served.txPath)).toBe(true);
    }
    expect(server.requests).toEqual(["GET /chunk2/1", "GET /chunk2/2"]);
  });

  test.each([
    ["does not know the path", { status: 404 }],
    ["rejects the path", { status: 400, body: "Request type not found." }],
    ["fails at the path", { status: 500 }],
    ["responds with a page", { status: 200, body: "<html></html>" }],
    ["responds with more than a chunk can have", { status: 200, body: new Uint8Array(chunkBytesMax + 1) }],
  ] as const)(
    "come in JSON from a node that %s, and are not requested in binary again at once",
    async (_how, other) => {
      const { server, node } = await nodeWith({ json, binary: other });
      expect((await node.chunk(1n, none)).kind).toBe("ok");
      expect((await node.chunk(2n, none)).kind).toBe("ok");
      expect(server.requests).toEqual(["GET /chunk2/1", "GET /chunk/1", "GET /chunk/2"]);
    },
  );

  test("that the node lacks say nothing of its formats", async () => {
    const { server, node } = await nodeWith({ json: { status: 404 }, binary: { status: 404 } });
    expect((await node.chunk(1n, none)).kind).toBe("absent");
    expect((await node.chunk(2n, none)).kind).toBe("absent");
    expect(server.requests).toEqual(["GET /chunk2/1", "GET /chunk/1", "GET /chunk2/2", "GET /chunk/2"]);
  });

  test("are requested in JSON while the first one in binary is under way", async () => {
    const { server, node } = await nodeWith({ json, binary });
    server.setFault(({ path }) => (path.startsWith("/chunk2/") ? { kind: "hang", at: "headers" } : undefined));
    const leaving = new AbortController();
    const first = node.chunk(1n, leaving.signal).catch(String);
    expect((await node.chunk(2n, none)).kind).toBe("ok");
    leaving.abort("left");
    expect(await first).toBe("left");
    server.setFault(() => undefined);
    await node.chunk(3n, none);
    expect(server.requests.toSorted()).toEqual(["GET /chunk/2", "GET /chunk2/1", "GET /chunk2/3"]);
  });
});

describe("a fetched chunk", () => {
  const long = { chunk: new Uint8Array(2).fill(7), dataPath: new Uint8Array(100_000), txPath: new Uint8Array(160) };
  const missing: Result = { status: 404 };
  test.each([
    ["in binary", { json: missing, binary: { status: 200, body: servedChunkBytes(long) } }],
    ["in JSON", { json: { status: 200, body: JSON.stringify(servedChunkFields(long, 2n)) }, binary: missing }],
  ] as const)("that came %s keeps nothing else of the response in memory", async (_format, responses) => {
    const { node } = await nodeWith(responses);
    const nodes = createNodes([node], { clock: systemClock, random: () => 0.5, log: silentLog });
    const chunks = createChunks(nodes, nodes, async () => ({ kind: "proven", start: 0, end: 2 }));
    const dataRoot = encodeBase64url(new Uint8Array(32));
    const { bytes, dataPath } = await chunks.fetch({ id: madeId(1), dataRoot, size: 2, weaveStart: 0n }, 0, none);
    expect({ bytes: [...bytes], path: dataPath.length }).toEqual({ bytes: [7, 7], path: 100_000 });
    expect(bytes.buffer.byteLength).toBeLessThan(2 * 2);
    expect(dataPath.buffer.byteLength).toBe(100_000);
  });
});

describe("the binary format", () => {
  const whole = servedChunkBytes(served);
  const changed = (at: number, byte: number) => whole.map((before, index) => (index === at ? byte : before));
  test.each([
    ["nothing", new Uint8Array(0)],
    ["half of a size", whole.subarray(0, 2)],
    ["a chunk that is cut", whole.subarray(0, 500)],
    ["no packing", whole.subarray(0, whole.length - 9)],
    ["a byte more", new Uint8Array([...whole, 0])],
    ["another packing", changed(whole.length - 1, 65)],
    ["a chunk of more than 256 KiB", servedChunkBytes({ ...served, chunk: new Uint8Array(chunkSize + 1) })],
    ["a size of 16 MiB", changed(0, 255)],
  ])("rejects %s", (_what, body) => {
    expect(readServedChunkBytes(body)).toBeUndefined();
  });
});
