/**
 * N6: over HTTP/2, content from the disk cache that is not read is counted. Small responses that the runtime keeps in
 * the process are counted, and the connection that has the most of them is cut when they hold more than the share of
 * their client.
 * @module
 */
import { afterAll, describe, expect } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { makeCertificate, openssl } from "../support/certificates.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { testWith } from "../support/helpers.ts";
import { createMemoryContent, patternBytes } from "../support/memory-content.ts";
import { eventually } from "../support/until.ts";

const linux = {
  there: process.platform === "linux" && openssl.there,
  what: "Linux's connections, and openssl",
};
const mebibyte = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), "cairn-unread-"));
const files = linux.there ? await makeCertificate(folder, "localhost") : undefined;
const content = createMemoryContent();
const hot = content.put("hot", { body: patternBytes(4_000), stable: true });
const onDisk = content.put("on disk", {
  body: patternBytes(2 * mebibyte),
  from: "file",
  stable: true,
  digest: "known",
  isHot: true,
});
const sessions: http2.ClientHttp2Session[] = [];
const gateway = openGatewayServer({
  content,
  certificate: files && { cert: readFileSync(files.cert, "utf8"), key: readFileSync(files.key, "utf8") },
  isTrustedProxy: () => true, // each client says in X-Forwarded-For who it is
  memory: { responseBytesMax: 16 * mebibyte },
});
afterAll(async () => {
  for (const session of sessions) session.destroy();
  await gateway.close();
  await content.close();
  removeFolder(folder);
});

type Client = Readonly<{ begun: () => number; isClosed: () => boolean; close: () => void }>;

/** Asks many times on one connection, whose streams may send nothing (RFC 9113 §6.5.2). */
function askUnread(address: string, path: string, count: number, headers: Record<string, string> = {}): Client {
  const session = http2.connect(gateway.url.replace("localhost", "127.0.0.1"), {
    rejectUnauthorized: false,
    settings: { initialWindowSize: 0 },
  });
  sessions.push(session);
  let begun = 0;
  let isClosed = false;
  session.on("error", () => undefined); // being cut is what it came for
  session.on("close", () => {
    isClosed = true;
  });
  for (let index = 0; index < count; index++) {
    const stream = session.request({ ":path": path, "x-forwarded-for": address, ...headers });
    stream.on("response", () => {
      begun += 1;
    });
    stream.on("error", () => undefined); // as above
  }
  return { begun: () => begun, isClosed: () => isClosed, close: () => session.destroy() };
}

describe("N6: content from the disk cache that is not read", () => {
  for (const [name, headers, bytes] of [
    ["a whole file", {}, 256 * 1_024],
    ["a range of 300 KiB of a file", { range: "bytes=1000-308199" }, 256 * 1_024],
    ["a range of 16 KiB from memory", { range: "bytes=0-16383" }, 16_384],
    ["a range of 64 KiB that is read at once", { range: "bytes=1000-66535" }, 65_536],
  ] as const) {
    testWith(
      linux,
      `${name} is counted for each stream, until the client leaves`,
      async () => {
        const first = await fetch(`${gateway.url}/raw/${onDisk}`, { headers, tls: { rejectUnauthorized: false } });
        await first.bytes();
        const again = await fetch(`${gateway.url}/raw/${onDisk}`, { headers, tls: { rejectUnauthorized: false } });
        expect(again.headers.has("x-request-id")).toBe(false); // not composed by the routes
        await again.bytes();
        const client = askUnread("10.0.0.3", `/raw/${onDisk}`, 5, headers);
        const counted = async () => gateway.memory.responseBytes();
        await eventually(counted, (held) => held === 5 * (bytes + 8 * 1_024), 30_000);
        client.close();
        await eventually(counted, (held) => held === 0, 30_000);
      },
      60_000,
    );
  }
});

describe("N6: small responses that do not leave", () => {
  for (const [name, path] of [
    ["from memory", `/raw/${hot}`],
    ["of other routes", "/metrics"],
    ["that are errors", "/raw/invalid"],
  ] as const) {
    testWith(
      linux,
      `${name} are counted, and a connection with more than a share of them is cut`,
      async () => {
        const few = askUnread("10.0.0.1", path, 20);
        const many = askUnread("10.0.0.2", path, 200);
        await eventually(
          async () => few.begun(),
          (begun) => begun === 20,
          30_000,
        );
        await eventually(
          async () => many.isClosed(),
          (isClosed) => isClosed,
          30_000,
        );
        expect(few.isClosed()).toBe(false);
        const counted = async () => gateway.memory.responseBytes();
        await eventually(counted, (bytes) => bytes > 20 * 16_000 && bytes < mebibyte, 30_000);
        few.close();
        await eventually(counted, (bytes) => bytes === 0, 30_000);
      },
      60_000,
    );
  }

  testWith(
    linux,
    "that are read are not counted any more, however many they are",
    async () => {
      const session = http2.connect(gateway.url.replace("localhost", "127.0.0.1"), {
        rejectUnauthorized: false,
      });
      sessions.push(session);
      for (let round = 0; round < 20; round++) {
        await Promise.all(
          Array.from({ length: 50 }, async () => {
            const stream = session.request({ ":path": `/raw/${hot}` });
            let size = 0;
            for await (const piece of stream) size += piece.length;
            expect(size).toBe(4_000);
          }),
        );
      }
      await eventually(
        async () => gateway.memory.responseBytes(),
        (bytes) => bytes === 0,
        30_000,
      );
      expect(session.closed).toBe(false);
      session.destroy();
    },
    60_000,
  );
});
