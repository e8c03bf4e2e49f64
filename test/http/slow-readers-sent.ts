/**
 * Clients in a process of their own that ask and do not read: each writes one request and reads the first bytes of its
 * response at most.
 *
 * A line of standard input is JSON: `{port, requests: [{head, count}], addresses}`; the response is a line with the
 * statuses that came by request, and how many connections were closed. An empty line closes all of them.
 * @module
 */
import net from "node:net";

/** The requests to send. */
export type SlowRequests = Readonly<{
  port: number;
  requests: readonly Readonly<{
    head: string;
    count: number;
    /** Bytes of the request's body that are sent. */
    bodyBytes?: number;
  }>[];
  /** Clients are this many, by X-Forwarded-For. */
  addresses: number;
  /** Milliseconds after the last request until statuses are counted. */
  waitMs: number;
}>;

/** What became of it: of each request, responses by status; "none" did not begin. */
export type SlowOutcome = Readonly<{ statuses: readonly Readonly<Record<string, number>>[]; closed: number }>;

type Client = { status: string; isClosed: boolean; readonly socket: net.Socket };

/** Connections that come faster than they are accepted are lost. */
const waveSize = 100;

const open: Client[] = [];

for await (const line of console) {
  if (line === "") {
    for (const { socket } of open.splice(0)) socket.destroy();
    console.log("{}");
    continue;
  }
  const wanted: SlowRequests = JSON.parse(line);
  console.log(JSON.stringify(await send(wanted)));
}

async function send({ port, requests, addresses, waitMs }: SlowRequests): Promise<SlowOutcome> {
  const all: Client[][] = [];
  let sent = 0;
  for (const { head, count, bodyBytes = 0 } of requests) {
    const clients: Client[] = [];
    all.push(clients);
    for (let index = 0; index < count; index++) {
      const client = sent % addresses;
      const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`;
      clients.push(connect(port, `${head}\r\nHost: gateway.test\r\nX-Forwarded-For: ${address}\r\n\r\n`, bodyBytes));
      if (++sent % waveSize === 0) await Bun.sleep(20);
    }
  }
  await Bun.sleep(waitMs);
  const statuses = all.map((clients) => {
    const counts: Record<string, number> = {};
    for (const { status } of clients) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  });
  return { statuses, closed: all.flat().filter(({ isClosed }) => isClosed).length };
}

/** Sends a request and a part of its body, and reads no more than its status. */
function connect(port: number, head: string, bodyBytes: number): Client {
  const socket = net.connect(port, "127.0.0.1");
  const client: Client = { status: "none", isClosed: false, socket };
  open.push(client);
  socket.on("connect", () => {
    socket.write(head);
    if (bodyBytes > 0) socket.write(new Uint8Array(bodyBytes));
  });
  let first = "";
  socket.on("data", (bytes: Buffer) => {
    first += bytes.toString("latin1", 0, 12);
    if (first.length < 12) return;
    client.status = first.slice(9, 12);
    socket.pause();
  });
  socket.on("error", () => undefined); // being cut off is what it came for
  socket.on("close", () => {
    client.isClosed = true;
  });
  return client;
}
