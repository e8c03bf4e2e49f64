/**
 * A gateway in a process of its own, whose memory can be watched: bodies of every kind that responses have.
 *
 * Prints a line of JSON with its origin, the origin that tells its memory, and the ids of its content. With a
 * certificate (localhost.crt and .key in TLS_FOLDER), it is https with HTTP/2.
 * @module
 */
import { openBlobThread } from "../../src/app/threads.ts";
import { blockHashFromBytes } from "../../src/arweave/id.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { emptyReader, openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent, patternBytes } from "../support/memory-content.ts";

/** Distinct bodies between what the response cache keeps and what is sent from its file. */
const middleCount = 64;

const content = createMemoryContent();
const data = patternBytes(12_000_000);
const body = patternBytes(7_900_000);
const ids = {
  small: content.put("small", { body: patternBytes(1_000), stable: true }),
  data: content.put("data", { body: data, from: "file" }),
  body: content.put("body", { body, from: "file" }),
  source: content.put("source", { body: patternBytes(32 * 2 ** 20), from: "source" }),
  hot: content.put("hot", { body: patternBytes(250_000), from: "file", stable: true }),
  middle: Array.from({ length: middleCount }, (_, index) =>
    content.put(`middle ${index}`, { body: body.subarray(index, index + 900_000), from: "file" }),
  ),
};
const folder = process.env["TLS_FOLDER"];
const certificate =
  folder === undefined
    ? undefined
    : {
        cert: await Bun.file(`${folder}/localhost.crt`).text(),
        key: await Bun.file(`${folder}/localhost.key`).text(),
      };
const closers = createClosers(() => undefined);
const status = { height: 1, hash: blockHashFromBytes(new Uint8Array(48)), confirmations: 100 };
const gateway = openGatewayServer({
  content,
  certificate,
  reader: {
    ...emptyReader,
    transactionRecord: () => ({ ...status, text: '{"format":1,"data":""}', dataAt: 20 }),
    transactionStatus: () => status,
  },
  memory: { blobThread: openBlobThread(closers) },
  isTrustedProxy: () => true, // each client says in X-Forwarded-For who it is
});
const reported = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => {
    Bun.gc(true);
    return Response.json({
      rss: process.memoryUsage.rss(),
      responseBytes: gateway.memory.responseBytes(),
      requestBytes: gateway.memory.requestBytes(),
    });
  },
});
console.log(JSON.stringify({ url: gateway.url, reported: reported.url.origin, ids }));
