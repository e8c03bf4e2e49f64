/**
 * A load client that sends a fixed number of requests and checks the responses. The number is fixed, because other load
 * on the machine changes the number of requests in a fixed time, and with it the share of cold code.
 * @module
 */

export type Load = Readonly<{
  port: number;
  /** Paths that are requested in order. */
  paths: readonly string[];
  /** Size of each body. Bytes. */
  bodyBytes: number;
  /** Requests ranges of `bodyBytes` in a hundred places of bodies of this size; absent: complete bodies. Bytes. */
  rangesOf?: number;
  /** Headers of each request besides its own. */
  headers?: Readonly<Record<string, string>>;
  connections: number;
  /** Number of requests over all connections. */
  requests: number;
}>;

/** Runs a load; rejects when a response is not 200 or 206, or has the wrong length. */
export async function runLoad(load: Load): Promise<void> {
  let left = load.requests;
  let next = 0;
  const take = (): string | undefined => {
    if (left === 0) return undefined;
    left -= 1;
    const path = load.paths[next % load.paths.length] ?? "/";
    next += 1;
    return path;
  };
  await Promise.all(Array.from({ length: load.connections }, () => runConnection(load, take)));
}

/** The state of one response: remaining bytes, or `undefined` while the head is incomplete. */
type Progress = { head: Buffer; left: number | undefined };

async function runConnection(load: Load, take: () => string | undefined): Promise<void> {
  const done = Promise.withResolvers<void>();
  const progress: Progress = { head: Buffer.alloc(0), left: undefined };
  const more = Object.entries(load.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  const headers = `Host: 127.0.0.1:${load.port}\r\nUser-Agent: bench\r\nAccept: */*\r\n${more.join("")}`;
  let asked = 0;
  const ask = (socket: Bun.Socket) => {
    const path = take();
    if (path === undefined) {
      done.resolve();
      socket.end();
      return;
    }
    asked += 1;
    progress.head = Buffer.alloc(0);
    progress.left = undefined;
    socket.write(`GET ${path} HTTP/1.1\r\n${headers}${rangeHeader(load, asked)}\r\n`);
  };
  await Bun.connect({
    hostname: "127.0.0.1",
    port: load.port,
    socket: {
      open: ask,
      data: (socket, bytes) => {
        try {
          if (readResponse(progress, bytes, load.bodyBytes)) ask(socket);
        } catch (error) {
          done.reject(error);
          socket.end();
        }
      },
      error: (_socket, error) => done.reject(error),
      close: () => done.reject(new Error("the connection was closed before the load was done")),
    },
  });
  await done.promise;
}

/** Ranges begin in a hundred places, so that they are hot in any cache. */
const rangePlaces = 100;

/** Bytes from one place to the next, so that they are anywhere within the pages of a file and the steps of a cache. */
const rangeStride = 10_472_899;

function rangeHeader({ rangesOf, bodyBytes }: Load, asked: number): string {
  if (rangesOf === undefined) return "";
  const start = ((asked % rangePlaces) * rangeStride) % (rangesOf - bodyBytes);
  return `Range: bytes=${start}-${start + bodyBytes - 1}\r\n`;
}

/** Processes received bytes; true when the response is complete. */
function readResponse(progress: Progress, bytes: Buffer, bodyBytes: number): boolean {
  if (progress.left !== undefined) progress.left -= bytes.length;
  else {
    progress.head = progress.head.length === 0 ? bytes : Buffer.concat([progress.head, bytes]);
    const headEnd = progress.head.indexOf("\r\n\r\n");
    if (headEnd === -1) return false;
    const head = progress.head.subarray(0, headEnd).toString("latin1");
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    if (!/^HTTP\/1\.1 20[06] /.test(head) || length !== bodyBytes) throw new Error(`a wrong response: ${head}`);
    progress.left = length - (progress.head.length - headEnd - 4);
  }
  if (progress.left < 0) throw new Error("a response was longer than its Content-Length");
  return progress.left === 0;
}
