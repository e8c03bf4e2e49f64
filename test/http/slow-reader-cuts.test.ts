/**
 * N1: a connection that reads less than 32 KiB in a minute of a response held in memory is cut, over HTTP/1.1, with
 * TLS, and over HTTP/2 with a window that opens byte by byte; a faster one is not.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import {
  createSlowReaders,
  type Reader as ReaderUnderWay,
  readerBytesMin,
  readerWindowMs,
  type SlowReaders,
} from "../../src/http/slow-readers.ts";
import { assert } from "../../src/lib/assert.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openTcpConnections, peerKey } from "../../src/lib/tcp-connections.ts";
import { makeCertificate } from "../support/certificates.ts";
import { testWith } from "../support/helpers.ts";
import { until } from "../support/until.ts";

const linux = {
  there: process.platform === "linux" && Bun.which("openssl") !== null,
  what: "Linux's TCP_INFO, and openssl",
};
const body = new Uint8Array(32 * 2 ** 20);
const underWay: ReaderUnderWay[] = [];
let gone = 0;

function serve(request: Request, server: Bun.Server<undefined>): Response {
  const peer = server.requestIP(request);
  if (peer !== null) underWay.push({ peer, bytes: body.length });
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
  certificate && Bun.serve({ hostname: "::", port: 0, idleTimeout: 0, http2: true, tls: certificate, fetch: serve });
afterAll(async () => {
  await Promise.all([clear.stop(true), secure?.stop(true)]);
  removeFolder(folder);
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

function openWatch(): SlowReaders {
  const connections = openTcpConnections();
  assert(connections !== undefined, "Linux tells of its connections");
  return createSlowReaders(connections);
}

describe("N1, N6: slow readers", () => {
  for (const [name, open] of kinds) {
    testWith(
      linux,
      `of ${name} are cut after a minute in which they took next to nothing`,
      async () => {
        const watch = openWatch();
        const [before, goneBefore] = [underWay.length, gone];
        const slow = open();
        await until(() => underWay.length > before);
        const peers = underWay.slice(before);
        await Bun.sleep(200); // until the kernel's buffers are full
        expect(await watch.check(peers, 0, 0)).toBe(0);
        expect(await watch.check(peers, readerWindowMs - 1, 0)).toBe(0);
        expect(slow.isClosed()).toBe(false);
        expect(await watch.check(peers, readerWindowMs, 0)).toBe(1);
        await until(() => {
          slow.socket.resume(); // what had come is read to its end
          return slow.isClosed();
        });
        await until(() => gone > goneBefore); // and what was held is given back
        expect(await watch.check(peers, 3 * readerWindowMs, 0)).toBe(0);
      },
      30_000,
    );
  }

  testWith(
    linux,
    "that take 32 KiB in a minute are not cut, however long it takes",
    async () => {
      const watch = openWatch();
      const before = underWay.length;
      const slow = reader(net.connect(clear.port ?? 0, "127.0.0.1"), text);
      await until(() => underWay.length > before && slow.taken() > 0);
      const peers = underWay.slice(before);
      for (let minute = 0; minute < 4; minute++) {
        expect(await watch.check(peers, minute * readerWindowMs, 0)).toBe(0);
        // The kernel announces free space to the peer in steps larger than the bytes of a minute.
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

  /** Connections that take so many bytes a window each, and what is held for each. */
  const cases: readonly (readonly [string, readonly (readonly [number, number])[], number, readonly number[]])[] = [
    [
      "no reader when no bytes are needed",
      [
        [32, 16_000],
        [64, 16_000],
      ],
      0,
      [],
    ],
    [
      "the slowest",
      [
        [64, 16_000],
        [32, 16_000],
        [128, 16_000],
      ],
      1,
      [1],
    ],
    [
      "as many as it takes",
      [
        [64, 16_000],
        [32, 16_000],
        [128, 16_000],
      ],
      20_000,
      [1, 0],
    ],
    [
      "no reader that will be done in another minute",
      [
        [16_000, 16_000],
        [20_000, 16_000],
        [900, 800],
      ],
      50_000,
      [],
    ],
    [
      "not those who are faster than that",
      [
        [16_000, 16_000],
        [33, 64],
        [40, 30],
      ],
      50_000,
      [1],
    ],
  ];
  test.each(cases)("of which others need the memory: %s", async (_name, rates, freeKib, expected) => {
    const kib = 2 ** 10;
    const cut: number[] = [];
    let minute = 0;
    const peerOf = (index: number) => ({ address: "192.0.2.1", port: index + 1 });
    const watch = createSlowReaders({
      descriptors: () => rates.map((_, index) => index + 10),
      at: (descriptor) => {
        const index = descriptor - 10;
        const [rate = 0] = rates[index] ?? [];
        return {
          peer: peerKey({ address: [192, 0, 2, 1], port: index + 1 }),
          bytesTaken: () => minute * rate * kib,
          cut: () => void cut.push(index),
        };
      },
    });
    const readers = rates.map(([, held], index) => ({ peer: peerOf(index), bytes: held * kib }));
    expect(await watch.check(readers, 0, freeKib * kib)).toBe(0); // none of them was seen for a minute
    minute = 1;
    expect(await watch.check(readers, readerWindowMs, freeKib * kib)).toBe(expected.length);
    expect(cut).toEqual([...expected]);
  });
});
