/**
 * The program as a process under its readers and writers: what many ranges cost it, and how it ends while they are at it.
 * Source: docs/reference/threats.md (R1, N4). DOWNLOADS and UPLOADS set how many of each are under way.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import net from "node:net";
import { type RunningProgram, startDev } from "../support/program.ts";
import { connectRaw } from "../support/raw-request.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";

const downloadCount = Number(process.env["DOWNLOADS"] ?? 30);
const uploadCount = Number(process.env["UPLOADS"] ?? 10);

/** What all downloads together take, so that the time there is for them is enough: 2 GiB. */
const downloadedBytes = 2 ** 31;

let program: RunningProgram;
let sound: Buffer;
/** Grace enough for a busy machine: who is cut off was not ended in order. */
const environment = { HOST: "127.0.0.1", STOP_DELAY_MS: "1500", STOP_GRACE_MS: "200000" };
const soundUrl = ({ line }: RunningProgram) => `${line.gateway}/raw/${line.sample.sound}`;

/** Starts a program whose large sample is on its disk. */
async function start(): Promise<RunningProgram> {
  const started = await startDev({ environment });
  const response = await eventually(
    () => fetch(soundUrl(started)),
    ({ status }) => status === 200,
  );
  sound = Buffer.from(await response.arrayBuffer());
  const cached = await eventually(
    () => fetch(soundUrl(started), { method: "HEAD" }),
    ({ headers }) => headers.get("x-cache") === "HIT",
  );
  expect(Number(cached.headers.get("content-length"))).toBe(sound.length);
  return started;
}

beforeAll(async () => {
  program = await start();
}, 120_000);
afterAll(() => program.remove());

/** What the process holds: file handles, and bytes of memory. */
function held({ pid }: RunningProgram) {
  const [, kilobytes = "0"] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return { handles: readdirSync(`/proc/${pid}/fd`).length, bytes: Number(kilobytes) * 1_024 };
}

describe("R1: many ranges", () => {
  const list = (count: number, part: (index: number) => string) =>
    `bytes=${Array.from({ length: count }, (_, index) => part(index)).join(",")}`;
  const bombs: readonly (readonly [string, string])[] = [
    ["1,300 times the first byte", list(1_300, () => "0-0")],
    ["1,000 times all of it", list(1_000, () => "0-")],
    ["1,000 that overlap", list(1_000, (index) => `${index}-`)],
    ["16 times all of it", list(16, () => "0-")],
    ["16 that overlap", list(16, (index) => `${index * 1_000_000}-`)],
    ["16 bytes far apart", list(16, (index) => `${index * 900_000}-${index * 900_000}`)],
    ["16 alternating halves", list(16, (index) => (index % 2 === 0 ? "0-7000000" : "7000001-"))],
    ["15 of the last byte, and all of it", list(16, (index) => (index === 15 ? "0-" : "-1"))],
  ];

  test("never cost more than the body, a handle and a few megabytes", async () => {
    const ask = async (range: string) => {
      const response = await fetch(soundUrl(program), { headers: { range, connection: "close" } });
      const { byteLength } = await response.arrayBuffer();
      expect([200, 206, 416]).toContain(response.status);
      expect(byteLength).toBeLessThanOrEqual(sound.length + 16 * 200);
    };
    for (const [, range] of bombs) await ask(range); // what the first of each kind leaves behind stays
    const before = held(program);
    for (let round = 0; round < 5; round++) for (const [, range] of bombs) await ask(range);
    // Memory that is free again is given back a little later.
    const bytesMax = before.bytes + 16 * 2 ** 20 + sound.length;
    await eventually(
      async () => held(program),
      ({ handles, bytes }) => handles - before.handles <= 1 && bytes < bytesMax,
    );
  }, 120_000);
});

/** What came of a download. */
type Downloaded = Readonly<{ size: number; isRight: boolean }>;

/** A download that stops reading for a given time and compares the bytes as they arrive. */
function download(url: string, bytes: number) {
  const { hostname, port, pathname } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  let head: Buffer | undefined = Buffer.alloc(0);
  let size = 0;
  let isRight = true;
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<Downloaded>();
  const take = (piece: Buffer) => {
    isRight &&= piece.equals(sound.subarray(size, size + piece.length));
    size += piece.length;
  };
  const lines = [`GET ${pathname} HTTP/1.1`, `Host: ${hostname}:${port}`, `Range: bytes=0-${bytes - 1}`];
  socket.on("connect", () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
  socket.on("data", (piece: Buffer) => {
    if (head === undefined) return take(piece);
    head = Buffer.concat([head, piece]);
    const bodyAt = head.indexOf("\r\n\r\n") + 4;
    if (bodyAt < 4) return undefined;
    take(head.subarray(bodyAt));
    head = undefined;
    socket.pause();
    return begin();
  });
  socket.on("error", () => undefined); // what arrived tells whether it was broken off
  socket.on("close", () => end({ size, isRight }));
  return { begun, ended, resume: () => socket.resume(), destroy: () => socket.destroy() };
}

/** An upload of which half was sent. */
async function beginUpload(url: string, index: number) {
  const item = testItem(new Uint8Array(100_000).fill(index % 251), {
    tags: [{ name: "N", value: String(index) }],
  });
  const half = item.bytes.length >> 1;
  const { host } = new URL(url);
  const lines = ["POST /v1/tx HTTP/1.1", `Host: ${host}`, "Content-Type: application/octet-stream"];
  const connection = await connectRaw(url);
  await connection.write(`${lines.join("\r\n")}\r\nContent-Length: ${item.bytes.length}\r\n\r\n`);
  await connection.write(item.bytes.subarray(0, half));
  return {
    id: item.id,
    /** Sends the other half. @returns Whether a receipt came. */
    finish: async () => {
      await connection.write(item.bytes.subarray(half));
      const text = await connection.ended;
      return text.startsWith("HTTP/1.1 200") && text.includes(`"id":"${item.id}"`) && text.includes('"signature"');
    },
  };
}

/** Connections that come faster than they are accepted are lost; so they come in waves. */
async function many<Value>(count: number, make: (index: number) => Promise<Value>): Promise<Value[]> {
  const made: Value[] = [];
  for (let first = 0; first < count; first += 50)
    made.push(...(await Promise.all(Array.from({ length: Math.min(50, count - first) }, (_, n) => make(first + n)))));
  return made;
}

describe("N4: SIGTERM", () => {
  test("during downloads and uploads: not ready at once, nothing new is begun, every one of them is whole, exit 0", async () => {
    const url = soundUrl(program);
    const bytes = Math.min(sound.length, Math.floor(downloadedBytes / downloadCount));
    const downloads = await many(downloadCount, async () => {
      const begun = download(url, bytes);
      await begun.begun;
      return begun;
    });
    const uploads = await many(uploadCount, (index) => beginUpload(program.line.upload, index));
    const origin = program.line.gateway;
    const readiness = () =>
      fetch(`${origin}/ready`).then(
        ({ status, headers }) => `${status} ${headers.get("connection")}`,
        () => "unreachable",
      );
    expect(await readiness()).toStartWith("200");
    const stopped = program.stop();
    await eventually(readiness, (said) => said === "503 close");
    expect((await fetch(url, { method: "HEAD" })).status).toBe(200); // who has not seen it yet is served
    await eventually(readiness, (said) => said === "unreachable");
    const receipts = Promise.all(uploads.map(({ finish }) => finish()));
    for (const { resume } of downloads) resume();
    const bodies = await Promise.all(downloads.map(({ ended }) => ended));
    const broken = bodies.filter(({ size, isRight }) => size !== bytes || !isRight);
    expect([broken.length, (await receipts).filter((came) => !came).length]).toEqual([0, 0]);
    expect(await stopped).toBe(0);
    console.log(`${downloads.length} downloads and ${uploads.length} uploads, all whole`);

    program = await startDev({ folder: program.folder, environment });
    const statuses = await many(uploadCount, async (index) => {
      const { status } = await fetch(`${program.line.gateway}/raw/${uploads[index]?.id}`);
      return status;
    });
    expect(new Set(statuses)).toEqual(new Set(uploadCount > 0 ? [200] : []));
  }, 240_000);

  test("a second time ends the process at once, also with active readers", async () => {
    const url = soundUrl(program);
    await eventually(
      () => fetch(url, { method: "HEAD" }),
      ({ status }) => status === 200,
    );
    const stuck = download(url, sound.length);
    await stuck.begun;
    const stopped = program.stop();
    await eventually(
      async () => program.errors(),
      (text) => text.includes('"stopping"'),
    );
    process.kill(program.pid, "SIGTERM");
    expect(await stopped).toBe(143);
    stuck.destroy();
  }, 120_000);
});
