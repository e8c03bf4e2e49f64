/**
 * An HTTP server over a plain socket that fails on demand: at the connection, in the headers, at any byte of a
 * body, by silence, by a wrong length or a wrong bit.
 * @module
 */
import { createServer, type Socket } from "node:net";

/** One request, its headers in lower case. */
export type FaultyRequest = Readonly<{
  method: string;
  path: string;
  headers: ReadonlyMap<string, string>;
  body: Uint8Array;
}>;

/** The response without a fault. */
export type Result = Readonly<{
  status: number;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
}>;

/** What goes wrong with a response. Positions are bytes of the body; negative ones count from its end. */
export type Fault =
  | Readonly<{ kind: "reset" }> // the connection, before any response
  | Readonly<{ kind: "hang"; at: "headers" | number }>
  | Readonly<{ kind: "cut"; at: "headers" | number }> // the connection ends, as if all was said
  | Readonly<{ kind: "length"; by: number }> // another Content-Length than the body has
  | Readonly<{ kind: "extra"; bytes: number }> // a body that is longer, its length announced
  | Readonly<{ kind: "shorter"; bytes: number }> // a body that is shorter, its length announced
  | Readonly<{ kind: "flip"; at: number }> // the lowest bit of a byte
  | Readonly<{ kind: "response"; response: Result }> // something else altogether
  | Readonly<{ kind: "delay"; ms: number }>
  | Readonly<{ kind: "drip"; ms: number }>; // one byte at a time

/** The server. */
export type FaultServer = Readonly<{
  url: string;
  /** `METHOD path` of every request so far, in order. */
  requests: string[];
  /** Asked of every request; undefined: nothing goes wrong. */
  setFault: (fault: (request: FaultyRequest) => Fault | undefined) => void;
  openSockets: () => number;
  stop: () => Promise<void>;
}>;

/** Opens a server on a free port of this machine. */
export async function openFaultServer(
  response: (request: FaultyRequest) => Result | Promise<Result>,
): Promise<FaultServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let faultOf: (request: FaultyRequest) => Fault | undefined = () => undefined;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined); // the client left
    readRequest(socket, async (request) => {
      requests.push(`${request.method} ${request.path}`);
      await respond(socket, request.method, await response(request), faultOf(request));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server listens on a port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    setFault: (fault) => {
      faultOf = fault;
    },
    openSockets: () => sockets.size,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function readRequest(socket: Socket, onRequest: (request: FaultyRequest) => Promise<void>): void {
  let bytes: Buffer = Buffer.alloc(0);
  let isDone = false;
  socket.on("data", (piece: Buffer) => {
    bytes = Buffer.concat([bytes, piece]);
    const headEnd = bytes.indexOf("\r\n\r\n");
    if (isDone || headEnd < 0) return;
    const [first = "", ...lines] = bytes.subarray(0, headEnd).toString().split("\r\n");
    const headers = new Map(lines.map((line) => headerOf(line)));
    const size = Number(headers.get("content-length") ?? 0);
    if (bytes.length < headEnd + 4 + size) return;
    isDone = true;
    const [method = "", path = ""] = first.split(" ");
    void onRequest({ method, path, headers, body: bytes.subarray(headEnd + 4, headEnd + 4 + size) });
  });
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

async function respond(socket: Socket, method: string, usual: Result, fault: Fault | undefined): Promise<void> {
  const response = fault?.kind === "response" ? fault.response : usual;
  if (fault?.kind === "delay") await Bun.sleep(fault.ms);
  if (fault?.kind === "reset") return void socket.resetAndDestroy();
  if ((fault?.kind === "hang" || fault?.kind === "cut") && fault.at === "headers") {
    if (fault.kind === "cut") socket.end();
    return;
  }
  const body = bodyWith(fault, Buffer.from(response.body ?? ""));
  const announced = body.length + (fault?.kind === "length" ? fault.by : 0);
  const headers = { "content-length": String(announced), connection: "close", ...response.headers };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.write(`HTTP/1.1 ${response.status} Status\r\n${lines.join("\r\n")}\r\n\r\n`);
  if (method === "HEAD") return void socket.end();
  if (fault?.kind === "drip") return drip(socket, body, fault.ms);
  if (fault?.kind === "hang" || fault?.kind === "cut") {
    const at = typeof fault.at === "number" ? fault.at : 0;
    socket.write(body.subarray(0, at));
    if (fault.kind === "cut") socket.end();
    return;
  }
  socket.end(body);
}

function bodyWith(fault: Fault | undefined, body: Buffer): Buffer {
  if (fault?.kind === "extra") return Buffer.concat([body, Buffer.alloc(fault.bytes, 0x20)]);
  if (fault?.kind === "shorter") return body.subarray(0, Math.max(0, body.length - fault.bytes));
  if (fault?.kind !== "flip" || body.length === 0) return body;
  const copy = Buffer.from(body);
  const at = fault.at < 0 ? copy.length + fault.at : Math.min(fault.at, copy.length - 1);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

async function drip(socket: Socket, body: Uint8Array, ms: number): Promise<void> {
  for (let at = 0; at < body.length && !socket.destroyed; at++) {
    socket.write(body.subarray(at, at + 1));
    await Bun.sleep(ms);
  }
  socket.end();
}

/** The response to a request for bytes, with the range that its headers request. */
export function rangeResult(headers: FaultyRequest["headers"], bytes: Uint8Array): Result {
  const range = /^bytes=(\d+)-(\d+)$/.exec(headers.get("range") ?? "");
  if (range === null) return { status: 200, body: bytes };
  const [start, end] = [Number(range[1]), Math.min(bytes.length, Number(range[2]) + 1)];
  const contentRange = `bytes ${start}-${end - 1}/${bytes.length}`;
  return { status: 206, headers: { "content-range": contentRange }, body: bytes.subarray(start, end) };
}

/** Opens a server that forwards requests without a body to another server. */
export function openFaultProxy(url: string): Promise<FaultServer> {
  return openFaultServer(async ({ method, path }) => {
    const response = await fetch(`${url}${path}`, { method });
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
  });
}
