/**
 * N1: clients that are slow by intent hold connections, and nothing else: others are served as if they were not there,
 * and what does not come in time is ended.
 * Source: docs/reference/threats.md. COUNT sets how many of each kind there are.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import net from "node:net";
import { Elysia } from "elysia";
import { readBody } from "../../src/http/request-body.ts";
import { textResponse } from "../../src/http/responses.ts";
import { silentLog } from "../../src/lib/log.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { openServer } from "../support/http-server.ts";
import { createMemoryContent, patternBytes } from "../support/memory-content.ts";
import { until } from "../support/until.ts";

const count = Number(process.env["COUNT"] ?? 200);
const content = createMemoryContent();
const large = patternBytes(32 * 2 ** 20);
const ids = {
  small: content.put("small", { body: patternBytes(1_000), stable: true }),
  file: content.put("file", { body: large, from: "file" }),
  stream: content.put("stream", { body: large, from: "source" }),
};
const gateway = openGatewayServer({ content });
const patience = { leastMs: 500, slowestBytesPerMs: 1_000 };
const app = new Elysia()
  .get("/", () => textResponse("here"))
  .post("/body", async ({ request }) => textResponse(`${(await readBody(request, 1_000_000, patience)).length}`), {
    parse: "none",
  });
const listener = { hostname: "127.0.0.1", port: 0, app, bodyBytesMax: 2 ** 20, log: silentLog };
const stats = { responded: () => undefined, respondedFromCache: () => undefined };
/** The same listener with little patience for bodies, and one with little for silence, so that its end is seen. */
const strict = openServer({ ...listener, stats });
const impatient = openServer({ ...listener, stats, idleSeconds: 2 });
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all([strict.close(0), impatient.close(0)]);
  await gateway.close();
  await content.close();
});

const sockets = new Set<net.Socket>();

/** A client: what it sends first, what it sends again and again, and what it got when it was ended. */
type SlowClient = Readonly<{
  socket: net.Socket;
  got: () => string;
  ended: Promise<void>;
  isEnded: () => boolean;
}>;

/** Slow clients and listener are one process here: all of them together send 10,000 times a second at most. */
const dripMs = Math.max(100, count / 10);

function connect(port: number, head: string, drip: string | undefined): SlowClient {
  const socket = net.connect(port, "127.0.0.1");
  sockets.add(socket);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let isEnded = false;
  let got = "";
  let timer: Timer | undefined;
  socket.on("connect", () => {
    socket.write(head);
    if (drip !== undefined) timer = setInterval(() => socket.write(drip), dripMs);
  });
  socket.on("data", (bytes: Buffer) => {
    got += bytes.toString("latin1");
  });
  socket.on("error", () => undefined); // being cut off is what it came for
  socket.on("close", () => {
    clearInterval(timer);
    sockets.delete(socket);
    isEnded = true;
    resolve();
  });
  return { socket, got: () => got, ended, isEnded: () => isEnded };
}

/** Connections that come faster than they are accepted are lost without a word to clients that say nothing. */
const waveSize = 200;

async function many(open: () => SlowClient, wanted = count): Promise<readonly SlowClient[]> {
  const clients: SlowClient[] = [];
  while (clients.length < wanted) {
    if (clients.length > 0) await Bun.sleep(20);
    clients.push(...Array.from({ length: Math.min(waveSize, wanted - clients.length) }, open));
  }
  return clients;
}

const patienceMs = 30_000 + 20 * count;

const head = "Host: gateway.test\r\n";

/** Begun first: the listener looks for silence every few seconds. They and others share this process's files. */
const cutOffCount = Math.min(count, 500);
const cutOff: Readonly<Record<string, Promise<readonly SlowClient[]>>> = {
  "headers that arrive a byte at a time": many(
    () => connect(impatient.port, `GET / HTTP/1.1\r\n${head}X-Slow: `, "x"),
    cutOffCount,
  ),
  "connections that say nothing": many(() => connect(impatient.port, "", undefined), cutOffCount),
};

/** Begun with the others: stored after a response, as keep-alive allows, and silent from then on. */
const stored = many(() => connect(impatient.port, `GET / HTTP/1.1\r\n${head}\r\n`, undefined), cutOffCount);

/** Other clients request small, large and absent content. */
async function expectOthersToBeServed(): Promise<void> {
  for (let round = 0; round < 40; round++) {
    const [small, part, absent] = await Promise.all([
      fetch(`${gateway.url}/raw/${ids.small}`),
      fetch(`${gateway.url}/raw/${ids.file}`, { headers: { range: "bytes=1000000-1999999" } }),
      fetch(`${gateway.url}/block/height/x`),
    ]);
    expect([small.status, part.status, absent.status]).toEqual([200, 206, 400]);
    const bytes = await part.bytes();
    expect(Buffer.compare(bytes, large.subarray(1_000_000, 2_000_000))).toBe(0);
    await Promise.all([small.arrayBuffer(), absent.text()]);
  }
}

describe("N1: slow clients", () => {
  const kinds: readonly (readonly [string, () => SlowClient])[] = [
    ["headers", () => connect(gateway.server.port, `GET / HTTP/1.1\r\n${head}X-Slow: `, "x")],
    [
      "bodies, announced",
      () => connect(gateway.server.port, `POST /tx HTTP/1.1\r\n${head}Content-Length: 1000000\r\n\r\n{`, " "),
    ],
    [
      "bodies, in pieces",
      () =>
        connect(
          gateway.server.port,
          `POST /graphql HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n`,
          "1\r\n \r\n",
        ),
    ],
    ["readers of a file", () => stalled(`/raw/${ids.file}`)],
    ["readers of a stream", () => stalled(`/raw/${ids.stream}`)],
  ];

  function stalled(path: string): SlowClient {
    const client = connect(gateway.server.port, `GET ${path} HTTP/1.1\r\n${head}\r\n`, undefined);
    client.socket.pause();
    return client;
  }

  test.each(kinds)(
    `others are served while ${count} have slow %s`,
    async (_name, open) => {
      const slow = await many(open);
      await Bun.sleep(300); // time for the server to end slow clients, which must not happen
      expect(slow.filter(({ isEnded }) => isEnded()).length).toBe(0);
      await expectOthersToBeServed();
      for (const { socket } of slow) socket.destroy();
      await Promise.all(slow.map(({ ended }) => ended));
      await until(() => content.openReads() === 0); // nothing is read for a disconnected client
      expect((await fetch(`${gateway.url}/raw/${ids.small}`)).status).toBe(200);
    },
    patienceMs,
  );

  test.each([
    ["announced", "Content-Length: 1000000\r\n\r\n", "x"],
    ["in pieces", "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"],
  ])(
    `${count} bodies that arrive a byte at a time, %s, get 408 and are cut off`,
    async (_name, more, drip) => {
      const open = (again?: string) => connect(strict.port, `POST /body HTTP/1.1\r\n${head}${more}`, again);
      const stalled = open();
      const slow = await many(() => open(drip));
      await Promise.all([stalled, ...slow].map(({ ended }) => ended));
      const response = /^HTTP\/1\.1 408 [\s\S]*Connection: close[\s\S]*"Request Timeout"$/i;
      expect(stalled.got()).toMatch(response);
      // A client that goes on sending to a connection that has ended may be reset, and loses what had come.
      for (const { got } of slow) if (got() !== "") expect(got()).toMatch(response);
      const whole = await fetch(`${strict.url}/body`, { method: "POST", body: new Uint8Array(900_000) });
      expect(await whole.text()).toBe("900000");
    },
    patienceMs,
  );

  test.each(Object.keys(cutOff))(
    `${cutOffCount} %s are cut off`,
    async (name) => {
      const slow = (await cutOff[name]) ?? [];
      await Promise.all(slow.map(({ ended }) => ended));
      expect(slow.every(({ got }) => !got().includes(" 200 "))).toBe(true);
      expect(await (await fetch(impatient.url)).text()).toBe("here");
    },
    patienceMs,
  );

  test(
    `${cutOffCount} connections that say nothing after a response are closed`,
    async () => {
      const clients = await stored;
      await Promise.all(clients.map(({ ended }) => ended));
      for (const { got } of clients) expect(got()).toContain(" 200 ");
    },
    patienceMs,
  );
});
