/**
 * The floor of the runtime, which http.ts measures beside Cairn: a bare server that sends prepared bodies and ranges of
 * large ones, with as many headers as Cairn sends. It reads the three headers of a request without which no server of
 * content can respond, validates none of them, counts nothing, and limits nothing.
 * @module
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [folder = "", headersText = "{}"] = process.argv.slice(2);
const shared: Readonly<Record<string, string>> = JSON.parse(headersText);

/** Larger ranges are sent from their file, as by Cairn. Bytes. */
const rangeInMemoryMax = 256 * 2 ** 10;

/** Bodies of this size and larger are sent from their file, as by Cairn. Bytes. */
const fileBytesMin = 2 ** 20;

type Respond = (request: Request) => Response;

const bodies = new Map<string, Respond>(
  readdirSync(folder).map((name) => {
    const path = join(folder, name);
    const { size } = statSync(path);
    // Each body has headers of its own, which are other memory for each request.
    const init = { status: 200, headers: new Headers({ ...shared, etag: `"${name}"` }) };
    return [`/${name}`, size < fileBytesMin ? fromMemory(path, init) : fromFile(path, size, init)] as const;
  }),
);

function fromMemory(path: string, init: ResponseInit): Respond {
  const body = bytesOf(path);
  return ({ headers }) => (headers.has("range") ? unanswered() : new Response(body, init));
}

function fromFile(path: string, size: number, init: ResponseInit): Respond {
  let bytes: Blob | undefined;
  return ({ headers }) => {
    const range = headers.get("range");
    if (range === null) return new Response(Bun.file(path).slice(0, size), init);
    const dash = range.indexOf("-");
    const [start, end] = [Number(range.slice("bytes=".length, dash)), Number(range.slice(dash + 1)) + 1];
    const isSmall = end - start <= rangeInMemoryMax;
    if (isSmall) bytes ??= bytesOf(path);
    const body = isSmall ? bytes : Bun.file(path);
    // Setting a header of the response costs less than another copy of all headers before it.
    const response = new Response(body?.slice(start, end), { ...init, status: 206 });
    response.headers.set("content-range", `bytes ${start}-${end - 1}/${size}`);
    return response;
  };
}

/** For requests that the bench does not send. */
function unanswered(): Response {
  return new Response(null, { status: 501 });
}

/** A Blob, because the runtime shares its bytes among responses. */
function bytesOf(path: string): Blob {
  return new Blob([new Uint8Array(readFileSync(path))]);
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => {
    const { method, url, headers } = request;
    if (method !== "GET" || headers.has("if-none-match") || headers.has("if-match")) return unanswered();
    const path = url.slice(url.indexOf("/", url.indexOf("//") + 2));
    return bodies.get(path)?.(request) ?? unanswered();
  },
});
process.stdout.write(`${server.port}\n`);
