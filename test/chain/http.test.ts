/**
 * The client of other machines: bodies as they are.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { openGateways } from "../../src/chain/gateways.ts";
import { openHttp } from "../../src/chain/http.ts";
import { silentLog } from "../../src/lib/log.ts";

const plain = new TextEncoder().encode("said again and again, ".repeat(100));
const coded = Bun.gzipSync(plain);
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
    const headers = { "content-encoding": "gzip", "content-length": String(coded.length) };
    if (range === null) return new Response(coded, { headers });
    const part = coded.subarray(Number(range[1]), Number(range[2]) + 1);
    const place = `bytes ${range[1]}-${range[2]}/${coded.length}`;
    return new Response(part, {
      status: 206,
      headers: { "content-encoding": "gzip", "content-range": place },
    });
  },
});
afterAll(() => server.stop(true));

const url = `http://127.0.0.1:${server.port}`;
const signal = AbortSignal.timeout(10_000);
const timeouts = { firstByteMs: 5_000, stallMs: 5_000, totalMs: 5_000 };

describe("a body with a coding", () => {
  test.each([
    [true, coded],
    [undefined, plain],
  ] as const)("is given as it is when that is asked for: %p", async (keepsCoding, wanted) => {
    const http = openHttp(timeouts);
    const request = { method: "GET", url, ...(keepsCoding && { keepsCoding }) } as const;
    const answer = await http.whole(request, 1e6, signal);
    expect(answer.kind === "answer" ? Buffer.from(answer.body).equals(wanted) : answer).toBe(true);
    http.close();
  });

  test("is the content that a gateway has under an id, whole and in part", async () => {
    const gateways = openGateways([url], { clock: Date.now, random: () => 0, log: silentLog, timeouts });
    const found = await gateways.find("id", async (value) => ({ kind: "ok", value }) as const, signal);
    if (found.kind !== "ok") throw new Error(`not found: ${Bun.inspect(found)}`);
    expect(found.value).toMatchObject({ size: coded.length, contentEncoding: "gzip" });
    for (const span of [
      { start: 0, end: coded.length },
      { start: 3, end: 20 },
    ]) {
      const pieces = await Array.fromAsync(gateways.read("id", found.value, span, signal));
      expect(Buffer.concat(pieces).equals(coded.subarray(span.start, span.end))).toBe(true);
    }
    gateways.close();
  });
});
