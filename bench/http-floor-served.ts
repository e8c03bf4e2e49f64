/**
 * The floor of the runtime, which bench/http.ts measures beside Cairn: a bare server that sends prepared bodies, with
 * as many headers as Cairn sends. It looks at no header of a request, counts nothing, and limits nothing.
 * @module
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [folder = "", headersText = "{}"] = process.argv.slice(2);
const shared: Readonly<Record<string, string>> = JSON.parse(headersText);

/** Larger bodies are sent from their file, as by Cairn. Bytes. */
const inMemoryMax = 256 * 2 ** 10;

const bodies = new Map<string, () => Response>(
  readdirSync(folder).map((name) => {
    const path = join(folder, name);
    const { size } = statSync(path);
    // Each body has headers of its own, which are other memory for each request.
    const init = { status: 200, headers: new Headers({ ...shared, etag: `"${name}"` }) };
    const body = size <= inMemoryMax ? new Blob([new Uint8Array(readFileSync(path))]) : undefined;
    return [`/${name}`, () => new Response(body ?? Bun.file(path).slice(0, size), init)] as const;
  }),
);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) => bodies.get(url.slice(url.indexOf("/", url.indexOf("//") + 2)))?.() ?? new Response(null),
});
process.stdout.write(`${server.port}\n`);
