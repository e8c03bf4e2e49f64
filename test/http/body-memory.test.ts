/**
 * N6: responses from the response cache that are not sent at once are counted with the memory that they hold. Requests
 * are counted as rejected for lack of memory only while their client is connected.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createBodyMemory } from "../../src/http/body-memory.ts";
import { withBodySize, withHeldMemory } from "../../src/http/responses.ts";
import { createMetrics } from "../../src/lib/metrics.ts";

const kibibyte = 2 ** 10;
const listener = {
  clientAddressOf: (request: Request) => request.headers.get("x-forwarded-for") ?? "",
  isInFlight: () => true,
  peerOf: () => undefined,
  isEncrypted: false,
};

/** Memory that one client has used up. */
async function openFull() {
  const metrics = createMetrics();
  const limits = { responseBytesMax: 64 * kibibyte, requestBytesMax: 64 * kibibyte, waitMsMax: 20 };
  const memory = createBodyMemory({ ...limits, metrics });
  const first = memory.open(requestOf("192.0.2.1", new AbortController().signal), listener);
  await first.holdResponse(64 * kibibyte);
  await first.holdRequest(64 * kibibyte, 0);
  const rejected = async () =>
    ["response", "request"].map(
      async (kind) => new RegExp(`^http_${kind}_body_refused_total (\\d+)$`, "m").exec(await metrics.text())?.[1],
    );
  return { memory, rejected: async () => await Promise.all(await rejected()) };
}

function requestOf(client: string, signal: AbortSignal): Request {
  return new Request("http://localhost/", { headers: { "x-forwarded-for": client }, signal });
}

describe("N6: responses and requests that were rejected", () => {
  test("are counted", async () => {
    const { memory, rejected } = await openFull();
    const account = memory.open(requestOf("192.0.2.2", new AbortController().signal), listener);
    await expect(account.holdResponse(32 * kibibyte)).rejects.toThrow();
    await expect(account.holdRequest(32 * kibibyte, 0)).rejects.toThrow();
    const response = withBodySize(new Response("x"), 32 * kibibyte);
    expect((await account.settle(response)).status).toBe(503);
    expect(await rejected()).toEqual(["2", "1"]);
  });

  test("are not counted when their client has left", async () => {
    const { memory, rejected } = await openFull();
    const left = new AbortController();
    const account = memory.open(requestOf("192.0.2.2", left.signal), listener);
    const work = [
      account.holdResponse(32 * kibibyte),
      account.holdRequest(32 * kibibyte, 0),
      account.settle(withBodySize(new Response("x"), 32 * kibibyte)),
    ];
    left.abort(new Error("left"));
    const settled = await Promise.allSettled(work);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    expect(await rejected()).toEqual(["0", "0"]);
  });
});

describe("N6: memory that a request waits for", () => {
  test("is not taken after the response to the request", async () => {
    const limits = { responseBytesMax: 64 * kibibyte, requestBytesMax: 64 * kibibyte };
    const memory = createBodyMemory({ ...limits, metrics: createMetrics() });
    const [first, late] = ["192.0.2.1", "192.0.2.2"].map((client) =>
      memory.open(requestOf(client, new AbortController().signal), listener),
    );
    await first?.holdRequest(64 * kibibyte, 0);
    const waiting = late?.holdRequest(32 * kibibyte, 0); // its body is read when the time for it ends
    await late?.settle(new Response("", { status: 408 }));
    await first?.settle(new Response(""));
    await waiting;
    expect(memory.requestBytes()).toBe(0);
  });
});

describe("N6: responses from the response cache that are not sent at once", () => {
  const mebibyte = 2 ** 20;
  const own = (bytes: number) => () => withBodySize(new Response("x"), bytes);
  const file = (bytes: number) => () => withHeldMemory(new Response("x"), bytes, { kind: "file", bytes });
  const shared = (bytes: number) => {
    const blob = new Blob([new Uint8Array(bytes)]);
    return () => withBodySize(new Response(blob), blob);
  };
  /** A multiple of the number of small responses, and of others, that are counted without a check. */
  const count = 512;
  const [stream, exchange, piece] = [16 * kibibyte, 8 * kibibyte, 256 * kibibyte];

  test.each([
    ["own bytes below 16 KiB", own(16_383), 0, count * (16_383 + stream)],
    ["own bytes of 16 KiB", own(16_384), count * (16_384 + exchange), count * (16_384 + exchange)],
    ["shared bytes below 16 KiB", shared(16_383), 0, count * (16_383 + stream)],
    ["shared bytes of 16 KiB", shared(16_384), 16_384, 16_384],
    ["a file of 256 KiB", file(piece), count * (piece + exchange), count * (piece + exchange)],
    ["a file below 1 MiB", file(mebibyte - 1), count * (piece + exchange), count * (piece + exchange)],
    ["a file of 1 MiB", file(mebibyte), 0, count * (piece + exchange)],
  ] as const)("that hold %s are counted", (_name, responseOf, inTheClear, encrypted) => {
    const counted = [false, true].map((isEncrypted) => {
      const limits = { responseBytesMax: mebibyte, requestBytesMax: mebibyte };
      const memory = createBodyMemory({ ...limits, metrics: createMetrics() });
      const request = requestOf("192.0.2.1", new AbortController().signal);
      for (let index = 0; index < count; index++) memory.noteSent(request, { ...listener, isEncrypted }, responseOf());
      return memory.responseBytes();
    });
    expect(counted).toEqual([inTheClear, encrypted]);
  });
});
