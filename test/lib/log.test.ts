/**
 * Log lines: what they hold, and that nothing a caller passes can break one.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/failures.ts";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";
import { createLog, type LogLevel, openLineWriter } from "../../src/lib/log.ts";

function logged(level: LogLevel = "debug") {
  const lines: string[] = [];
  const log = createLog({
    level,
    format: "json",
    clock: () => 1_700_000_000_000,
    write: (line) => lines.push(line),
  });
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? "null") };
}

describe("a log line", () => {
  test("is one JSON object with level, time and message first", () => {
    const { log, lines } = logged();
    log.info("request served", { requestId: "r1", status: 200 });
    expect(lines).toEqual([
      '{"level":"info","time":"2023-11-14T22:13:20.000Z","message":"request served","requestId":"r1","status":200}\n',
    ]);
  });

  test("below the lowest level is not written", () => {
    const { log, lines } = logged("warn");
    log.debug("a");
    log.info("b");
    log.warn("c");
    expect(lines).toHaveLength(1);
    expect([log.writes("info"), log.writes("error")]).toEqual([false, true]);
  });

  test("has the fields of the log that it is derived from", () => {
    const { log, last } = logged();
    log.with({ part: "follow" }).with({ height: 7 }).info("block taken", { txs: 2 });
    expect(last()).toMatchObject({ part: "follow", height: 7, txs: 2 });
  });

  test.each([
    ["a bigint", { weave: 2n ** 70n }, { weave: "1180591620717411303424" }],
    ["bytes", { chunk: new Uint8Array(5) }, { chunk: "5 bytes" }],
    ["a buffer", { chunk: Buffer.alloc(5) }, { chunk: "5 bytes" }],
    ["a buffer within", { deep: { list: [Buffer.alloc(3)] } }, { deep: { list: ["3 bytes"] } }],
    ["a new line in text", { text: "a\nb" }, { text: "a\nb" }],
  ])("writes %s", (_name, fields, expected) => {
    const { log, lines, last } = logged();
    log.info("x", fields);
    expect(last()).toMatchObject(expected);
    expect(lines[0]?.split("\n")).toHaveLength(2);
  });

  test("writes an error with its code, context and causes", () => {
    const { log, last } = logged();
    const cause = new Error("connection refused");
    log.error("source failed", { error: new Failure("source_failed", { id: "abc" }, cause) });
    expect(last().error).toMatchObject({
      name: "Failure",
      code: "source_failed",
      context: { id: "abc" },
      cause: { message: "connection refused" },
    });
  });

  test("writes no stack of a failure that nothing unexpected caused, and the stack of everything else", () => {
    const { log, last } = logged();
    const failure = new Failure("source_failed", { id: "abc" }, new Failure("source_failed"));
    log.warn("no source", { error: failure });
    expect(JSON.stringify(last())).not.toContain("stack");
    for (const error of [new Error("x"), new Failure("source_failed", {}, new TypeError("x"))]) {
      log.warn("no source", { error });
      expect(last().error).toMatchObject({ stack: expect.stringContaining("log.test.ts") });
    }
  });

  test("writes fields that refer to themselves", () => {
    const { log, last } = logged();
    const fields: Record<string, unknown> = {};
    fields["self"] = fields;
    log.info("cycle", fields);
    expect(last()).toMatchObject({ level: "info", message: "cycle" });
  });
});

describe("a readable line", () => {
  const lines: string[] = [];
  const { info } = createLog({
    level: "info",
    format: "pretty",
    clock: () => 1_700_000_000_000,
    write: (line) => lines.push(line),
  });

  test("has time, level, message and fields", () => {
    info("block taken", { height: 7, peer: "a" });
    expect(lines.at(-1)).toBe("22:13:20.000 info  block taken  height=7  peer=a\n");
  });

  test("tells a failure in words, without code around the place that noticed it", () => {
    info("no source", { error: new Failure("source_failed", { id: "abc" }) });
    expect(lines.at(-1)).toBe('22:13:20.000 info  no source  error=No source could provide valid data {"id":"abc"}\n');
    info("no source", { error: new Failure("source_failed", {}, new TypeError("x is undefined")) });
    expect(lines.at(-1)).toContain("log.test.ts");
  });

  test("escapes control characters, which could move the cursor of a terminal or begin another line", () => {
    info("asked\u001b[2J", {
      agent: "x\r\n22:13:20.000 error forged\u009b",
      list: ["\u001b", "\u009b\u202e"],
    });
    info("failed", { error: new Error("said \u001b[31mred") });
    expect(lines.slice(-2).join("").replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    expect(lines.at(-2)?.split("\n")).toHaveLength(2);
    expect(lines.at(-2)).toContain("agent=x\\x0d\\x0a22:13:20.000 error forged\\x9b");
  });
});

describe("a line writer", () => {
  test("writes characters completely when a full pipe accepts half of one, and drops lines beyond its buffer", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-log-"));
    const file = join(folder, "pipe");
    Bun.spawnSync(["mkfifo", file]);
    const reading = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openLineWriter(openSync(file, constants.O_WRONLY | constants.O_NONBLOCK));
    const text = `ab${"☃".repeat(100_000)}\n`;
    writer.write(text);
    for (let count = 0; count < 20; count++) writer.write("x".repeat(1 << 20));
    expect(writer.dropped()).toBe(17);
    const bytes: Buffer[] = [];
    for (let size = 0; size < Buffer.byteLength(text); ) {
      const piece = Buffer.alloc(1 << 16);
      try {
        const taken = readSync(reading, piece);
        bytes.push(piece.subarray(0, taken));
        size += taken;
      } catch {
        await Bun.sleep(1); // nothing there yet
      }
    }
    expect(Buffer.concat(bytes).toString().slice(0, text.length)).toBe(text);
    closeSync(reading);
    rmSync(folder, { recursive: true });
  });

  test("writes the lines of one iteration in order", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-log-"));
    const file = join(folder, "log");
    const writer = openLineWriter(openSync(file, "w"));
    for (let index = 0; index < 100; index++) writer.write(`${index}\n`);
    await yieldToEventLoop();
    writer.close();
    writer.write("after\n");
    const text = readFileSync(file, "utf8");
    expect(text).toBe(`${Array.from({ length: 100 }, (_, index) => `${index}\n`).join("")}after\n`);
    rmSync(folder, { recursive: true });
  });
});
