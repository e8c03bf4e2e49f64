/**
 * N6: posted bodies that stop, over HTTP/2, hold the memory that requests may, and what the runtime reads ahead of
 * those that wait.
 * @module
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { makeCertificate, openssl } from "../support/certificates.ts";
import { testWith } from "../support/helpers.ts";
import { lineReader } from "../support/line-reader.ts";
import { until } from "../support/until.ts";

const mebibyte = 2 ** 20;
const connections = 3;
const streams = 60;
const announced = 13_000_000;
const sentBytes = 12_900_000;

/** Requests may hold 128 MiB, those that wait 64; the rest is the runtime's, for connections and its allocator. */
const growthMax = 240 * mebibyte;

const folder = mkdtempSync(join(tmpdir(), "cairn-posts-"));
let served: Bun.Subprocess<"ignore", "pipe", "inherit"> | undefined;
const sessions: http2.ClientHttp2Session[] = [];
let gateway: Readonly<{ url: string; reported: string }>;

beforeAll(async () => {
  if (!openssl.there) return;
  await makeCertificate(folder, "localhost");
  served = Bun.spawn([process.execPath, new URL("slow-readers-served.ts", import.meta.url).pathname], {
    stdout: "pipe",
    env: { ...process.env, TLS_FOLDER: folder },
  });
  gateway = JSON.parse(await lineReader(served.stdout)());
});
afterAll(async () => {
  for (const session of sessions) session.destroy();
  served?.kill();
  await served?.exited;
  removeFolder(folder);
});

type Memory = Readonly<{ rss: number; requestBytes: number }>;

async function memory(): Promise<Memory> {
  return JSON.parse(await (await fetch(gateway.reported)).text());
}

/** Posts a part of a body, as fast as the other side takes it. */
function post(session: http2.ClientHttp2Session, address: string, onStatus: (status: number) => void): void {
  const stream = session.request({
    ":method": "POST",
    ":path": "/tx",
    "content-length": String(announced),
    "x-forwarded-for": address,
  });
  const piece = new Uint8Array(64 * 2 ** 10);
  let left = sentBytes;
  const pump = () => {
    while (left > 0 && !stream.destroyed) {
      left -= piece.length;
      if (!stream.write(piece)) return void stream.once("drain", pump);
    }
  };
  stream.on("response", (headers) => onStatus(Number(headers[":status"])));
  stream.on("error", () => undefined); // being rejected while it sends is what it came for
  pump();
}

describe("N6: posted bodies that stop", () => {
  testWith(
    openssl,
    "of 180 streams of HTTP/2 hold what requests may, and the others are 503",
    async () => {
      const idle = await memory();
      let rssMax = 0;
      let busy = 0;
      let others = 0;
      for (let connection = 0; connection < connections; connection++) {
        const session = http2.connect(gateway.url.replace("localhost", "127.0.0.1"), {
          rejectUnauthorized: false,
        });
        session.on("error", () => undefined); // as above
        sessions.push(session);
        for (let index = 0; index < streams; index++)
          post(session, `10.0.${connection}.${index}`, (status) => {
            if (status === 503) busy += 1;
            else others += 1;
          });
      }
      const held = Math.floor((128 * mebibyte) / announced);
      await until(async () => {
        const { rss, requestBytes } = await memory();
        rssMax = Math.max(rssMax, rss);
        expect(requestBytes).toBeLessThanOrEqual(128 * mebibyte);
        return busy >= connections * streams - held;
      });
      expect(others).toBe(0);
      expect(rssMax - idle.rss).toBeLessThan(growthMax);
      console.log(`${((rssMax - idle.rss) / 1e6).toFixed(0)} MB more, ${busy} rejected`);
    },
    60_000,
  );
});
