/**
 * N6: concurrent node responses hold a bounded share of the memory; small ones never wait for it.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { openNode } from "../../src/chain/node.ts";
import { createNodes } from "../../src/chain/nodes.ts";
import { Failure } from "../../src/failures.ts";
import { createRelay } from "../../src/gateway/relay.ts";
import { createByteBudget } from "../../src/lib/byte-budget.ts";
import { silentLog } from "../../src/lib/log.ts";
import { eventually } from "../support/until.ts";

const never = new AbortController().signal;
const kibibyte = 2 ** 10;
const large = 400 * kibibyte;
const asked: string[] = [];
let rest = Promise.withResolvers<void>();

/** Sends half of a body at once and the other half on release. Source: RFC 9112 §6.2, §7.1. */
const node = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    data: async (socket, bytes) => {
      const path = bytes.toString("latin1").split(" ")[1] ?? "";
      asked.push(path);
      if (path.startsWith("/small")) {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall");
        return;
      }
      const half = Buffer.alloc(large / 2, 97);
      const isChunked = path.startsWith("/chunked");
      const head = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${large}`;
      const [begin, end] = isChunked ? [`${(large / 2).toString(16)}\r\n`, "\r\n"] : ["", ""];
      socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${head}\r\n\r\n${begin}`);
      await writeAll(socket, half);
      socket.write(end);
      await rest.promise;
      socket.write(begin);
      await writeAll(socket, half);
      socket.end(isChunked ? "\r\n0\r\n\r\n" : "");
    },
  },
});
afterAll(() => node.stop(true));

async function writeAll(socket: Bun.Socket<undefined>, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length && socket.readyState > 0; ) {
    at += Math.max(0, socket.write(bytes.subarray(at)));
    await Bun.sleep(1);
  }
}

function openRelay(waitMsMax: number) {
  const reads = createByteBudget({ bytesMax: 2 ** 20, clientBytesMax: 2 ** 20, waitMsMax });
  const nodes = createNodes([openNode(`http://127.0.0.1:${node.port}`)], {
    clock: Date.now,
    random: () => 0.5,
    log: silentLog,
  });
  return { reads, relay: createRelay(nodes, 20_000, reads) };
}

const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => "read",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );

describe("N6: responses of nodes", () => {
  test.each(["announced", "chunked"])(
    "with bodies that are %s take memory as they are read, and are 503 without it; small ones go on",
    async (kind) => {
      rest = Promise.withResolvers<void>();
      const { reads, relay } = openRelay(500);
      const outcomes: string[] = [];
      const all = Array.from({ length: 10 }, async (_, index) => {
        outcomes.push(await outcomeOf(relay.get(`/${kind}/${index}`, 0, never)));
      });
      await eventually(
        async () => outcomes.length,
        (count) => count >= 2,
        20_000,
      );
      expect(new Set(outcomes)).toEqual(new Set(["busy"]));
      expect(reads.bytes()).toBeGreaterThan(large / 2);
      expect(reads.bytes()).toBeLessThanOrEqual(2 ** 20);
      expect((await relay.get("/small", 0, never)).body.byteLength).toBe(5);
      rest.resolve();
      await Promise.all(all);
      expect(outcomes.filter((outcome) => outcome === "read").length).toBeGreaterThanOrEqual(1);
      expect(reads.bytes()).toBe(0);
    },
    60_000,
  );

  test("release their memory when no caller waits for them", async () => {
    rest = Promise.withResolvers<void>();
    const { reads, relay } = openRelay(20_000);
    const left = new AbortController();
    const outcome = outcomeOf(relay.get("/announced/left", 0, left.signal));
    await eventually(
      async () => reads.bytes(),
      (bytes) => bytes === large,
      20_000,
    );
    left.abort(new Error("left"));
    expect(await outcome).toBe("Error: left");
    await eventually(
      async () => reads.bytes(),
      (bytes) => bytes === 0,
      20_000,
    );
    rest.resolve();
  }, 60_000);
});
