/**
 * The program as a process under its readers: what many ranges cost it, and how it ends while they read.
 * Source: reference/trust.md A3, rows R1 and N4.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import net from "node:net";
import { eventually, type RunningProgram, startDev } from "../support/program.ts";

let program: RunningProgram;
let sound: Buffer;
const environment = { HOST: "127.0.0.1", STOP_DELAY_MS: "1500" };
const soundUrl = ({ line }: RunningProgram) => `${line.gateway}/raw/${line.sample.sound}`;

/** Starts a program whose large sample is on its disk. */
async function start(): Promise<RunningProgram> {
  const started = await startDev({ environment });
  const answer = await eventually(
    () => fetch(soundUrl(started)),
    ({ status }) => status === 200,
  );
  sound = Buffer.from(await answer.arrayBuffer());
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
    ["16 halves in turn", list(16, (index) => (index % 2 === 0 ? "0-7000000" : "7000001-"))],
    ["15 of the last byte, and all of it", list(16, (index) => (index === 15 ? "0-" : "-1"))],
  ];

  test("never cost more than the body, a handle and a few megabytes", async () => {
    const ask = async (range: string) => {
      const answer = await fetch(soundUrl(program), { headers: { range, connection: "close" } });
      const { byteLength } = await answer.arrayBuffer();
      expect([200, 206, 416]).toContain(answer.status);
      expect(byteLength).toBeLessThanOrEqual(sound.length + 16 * 200);
    };
    for (const [, range] of bombs) await ask(range); // what the first of each kind leaves behind stays
    const before = held(program);
    for (let round = 0; round < 5; round++) for (const [, range] of bombs) await ask(range);
    const after = held(program);
    expect(after.handles - before.handles).toBeLessThanOrEqual(1);
    expect(after.bytes - before.bytes).toBeLessThan(16 * 2 ** 20 + sound.length);
  }, 120_000);
});

/** A download that stops reading for as long as it is told to. */
function download(url: string) {
  const { hostname, port, pathname } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const pieces: Buffer[] = [];
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<Buffer>();
  socket.on("connect", () => socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`));
  socket.on("data", (piece: Buffer) => {
    pieces.push(piece);
    if (pieces.length === 1) socket.pause();
    begin();
  });
  socket.on("error", () => undefined); // what arrived tells whether it was broken off
  socket.on("close", () => {
    const bytes = Buffer.concat(pieces);
    end(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4));
  });
  return { begun, ended, resume: () => socket.resume(), destroy: () => socket.destroy() };
}

describe("N4: SIGTERM", () => {
  test("during 30 downloads: not ready at once, nothing new is begun, every download arrives whole, exit 0", async () => {
    const url = soundUrl(program);
    const downloads = Array.from({ length: 30 }, () => download(url));
    await Promise.all(downloads.map(({ begun }) => begun));
    const origin = program.line.gateway;
    const readiness = () =>
      fetch(`${origin}/ready`).then(
        ({ status, headers }) => `${status} ${headers.get("connection")}`,
        () => "refused",
      );
    expect(await readiness()).toStartWith("200");
    const stopped = program.stop();
    await eventually(readiness, (said) => said === "503 close");
    expect((await fetch(url, { method: "HEAD" })).status).toBe(200); // who has not seen it yet is served
    await eventually(readiness, (said) => said === "refused");
    for (const { resume } of downloads) resume();
    const bodies = await Promise.all(downloads.map(({ ended }) => ended));
    expect(bodies.filter((body) => body.equals(sound))).toHaveLength(30);
    expect(await stopped).toBe(0);
  }, 120_000);

  test("a second time ends it at once, whoever still reads", async () => {
    program = await startDev({ folder: program.folder, environment });
    const url = soundUrl(program);
    await eventually(
      () => fetch(url, { method: "HEAD" }),
      ({ status }) => status === 200,
    );
    const stuck = download(url);
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
