/**
 * N1: a connection that takes less than 32 KiB in a minute of what is held in memory for it is cut, over HTTP/1.1, with
 * TLS, and over HTTP/2 with a window that opens byte by byte; one that takes more is not.
 * @module
 */
import { afterAll, describe, expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import {
  createSlowReaders,
  type PeerAddress,
  readerBytesMin,
  readerWindowMs,
} from "../../src/http/slow-readers.ts";
import { openTcpConnections } from "../../src/lib/tcp-connections.ts";
import { makeCertificate } from "../support/certificates.ts";
import { testWith } from "../support/helpers.ts";

const linux = {
  there: process.platform === "linux" && Bun.which("openssl") !== null,
  what: "Linux's TCP_INFO, and openssl",
};
const body = new Uint8Array(32 * 2 ** 20);
const underWay: PeerAddress[] = [];
let gone = 0;

function serve(request: Request, server: Bun.Server<undefined>): Response {
  const peer = server.requestIP(request);
  if (peer !== null) underWay.push(peer);
  request.signal.addEventListener("abort", () => {
    gone += 1;
  });
  return new Response(body);
}

const folder = mkdtempSync(join(tmpdir(), "cairn-slow-"));
const files = linux.there ? await makeCertificate(folder, "localhost") : undefined;
const certificate = files && { cert: readFileSync(files.cert, "utf8"), key: readFileSync(files.key, "utf8") };
const clear = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: serve });
const secure =
  certificate &&
  Bun.serve({ hostname: "::", port: 0, idleTimeout: 0, http2: true, tls: certificate, fetch: serve });
afterAll(async () => {
  await Promise.all([clear.stop(true), secure?.stop(true)]);
  rmSync(folder, { recursive: true, force: true });
});

type Reader = Readonly<{ socket: net.Socket; taken: () => number; isClosed: () => boolean }>;

function reader(socket: net.Socket, first: string | Uint8Array): Reader {
  let taken = 0;
  let isClosed = false;
  socket.on(socket instanceof tls.TLSSocket ? "secureConnect" : "connect", () => socket.write(first));
  socket.on("data", (bytes: Buffer) => {
    taken += bytes.length;
    socket.pause();
  });
  socket.on("error", () => undefined); // being cut off is what it came for
  socket.on("close", () => {
    isClosed = true;
  });
  return { socket, taken: () => taken, isClosed: () => isClosed };
}

/** A frame of HTTP/2. Source: RFC 9113 §4.1. */
function frame(type: number, flags: number, stream: number, payload: readonly number[] = []): number[] {
  const size = payload.length;
  return [0, size >> 8, size & 255, type, flags, 0, 0, 0, stream, ...payload];
}

/** A request on a connection whose streams may send nothing: SETTINGS_INITIAL_WINDOW_SIZE is 0. */
const closedWindow = Uint8Array.from([
  ...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  ...frame(4, 0, 0, [0, 4, 0, 0, 0, 0]),
  ...frame(1, 5, 1, [0x82, 0x87, 0x84, 0x01, 9, ...new TextEncoder().encode("localhost")]),
]);

const text = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const kinds: readonly (readonly [string, () => Reader])[] = [
  ["HTTP/1.1", () => reader(net.connect(clear.port ?? 0, "127.0.0.1"), text)],
  ["HTTP/1.1 with TLS", () => reader(connectSecure("http/1.1"), text)],
  ["HTTP/2 with a window of 0", () => reader(connectSecure("h2"), closedWindow)],
];

function connectSecure(protocol: string): tls.TLSSocket {
  return tls.connect({
    port: secure?.port ?? 0,
    host: "127.0.0.1",
    ALPNProtocols: [protocol],
    rejectUnauthorized: false,
  });
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5);
}

describe("N1, N6: slow readers", () => {
  for (const [name, open] of kinds) {
    testWith(
      linux,
      `of ${name} are cut after a minute in which they took next to nothing`,
      async () => {
        const watch = createSlowReaders(openTcpConnections() ?? (() => new Map()));
        const [before, goneBefore] = [underWay.length, gone];
        const slow = open();
        await until(() => underWay.length > before);
        const peers = underWay.slice(before);
        await Bun.sleep(200); // until the kernel's buffers are full
        expect(watch.look(peers, 0)).toBe(0);
        expect(watch.look(peers, readerWindowMs - 1)).toBe(0);
        expect(slow.isClosed()).toBe(false);
        expect(watch.look(peers, readerWindowMs)).toBe(1);
        await until(() => {
          slow.socket.resume(); // what had come is read to its end
          return slow.isClosed();
        });
        await until(() => gone > goneBefore); // and what was held is given back
        expect(watch.look(peers, 3 * readerWindowMs)).toBe(0);
      },
      30_000,
    );
  }

  testWith(
    linux,
    "that take 32 KiB in a minute are not cut, however long it takes",
    async () => {
      const watch = createSlowReaders(openTcpConnections() ?? (() => new Map()));
      const before = underWay.length;
      const slow = reader(net.connect(clear.port ?? 0, "127.0.0.1"), text);
      await until(() => underWay.length > before && slow.taken() > 0);
      const peers = underWay.slice(before);
      for (let minute = 0; minute < 4; minute++) {
        expect(watch.look(peers, minute * readerWindowMs)).toBe(0);
        // The kernel tells the other side of room in steps larger than what a minute asks for.
        const enough = slow.taken() + 32 * readerBytesMin;
        while (slow.taken() < enough) {
          slow.socket.resume();
          await Bun.sleep(1);
        }
      }
      expect(slow.isClosed()).toBe(false);
      slow.socket.destroy();
    },
    30_000,
  );
});
