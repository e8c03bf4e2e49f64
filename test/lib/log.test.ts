/**
 * Log lines: what they hold, and that nothing a caller passes can break one.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/failures.ts";
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
    log.info("request answered", { requestId: "r1", status: 200 });
    expect(lines).toEqual([
      '{"level":"info","time":"2023-11-14T22:13:20.000Z","message":"request answered","requestId":"r1","status":200}\n',
    ]);
  });

  test("below the least level is not written", () => {
    const { log, lines } = logged("warn");
    log.debug("a");
    log.info("b");
    log.warn("c");
    expect(lines).toHaveLength(1);
    expect([log.writes("info"), log.writes("error")]).toEqual([false, true]);
  });

  test("carries the facts of the log it came from", () => {
    const { log, last } = logged();
    log.with({ part: "follow" }).with({ height: 7 }).info("block taken", { txs: 2 });
    expect(last()).toMatchObject({ part: "follow", height: 7, txs: 2 });
  });

  test.each([
    ["a bigint", { weave: 2n ** 70n }, { weave: "1180591620717411303424" }],
    ["bytes", { chunk: new Uint8Array(5) }, { chunk: "5 bytes" }],
    ["a new line in text", { text: "a\nb" }, { text: "a\nb" }],
  ])("writes %s", (_name, fields, expected) => {
    const { log, lines, last } = logged();
    log.info("x", fields);
    expect(last()).toMatchObject(expected);
    expect(lines[0]?.split("\n")).toHaveLength(2);
  });

  test("writes an error with its code, facts and causes", () => {
    const { log, last } = logged();
    const cause = new Error("connection refused");
    log.error("source failed", { error: new Failure("source_failed", { id: "abc" }, cause) });
    expect(last().error).toMatchObject({
      name: "Failure",
      code: "source_failed",
      facts: { id: "abc" },
      cause: { message: "connection refused" },
    });
  });

  test("survives facts that refer to themselves", () => {
    const { log, last } = logged();
    const facts: Record<string, unknown> = {};
    facts["self"] = facts;
    log.info("cycle", facts);
    expect(last()).toMatchObject({ level: "info", message: "cycle" });
  });
});

describe("a line writer", () => {
  test("writes the lines of one turn in their order", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-log-"));
    const file = join(folder, "log");
    const writer = openLineWriter(openSync(file, "w"));
    for (let index = 0; index < 100; index++) writer.write(`${index}\n`);
    await new Promise((resolve) => setImmediate(resolve));
    writer.close();
    writer.write("after\n");
    const text = readFileSync(file, "utf8");
    expect(text).toBe(`${Array.from({ length: 100 }, (_, index) => `${index}\n`).join("")}after\n`);
    rmSync(folder, { recursive: true });
  });
});
