/**
 * The floor of records that are read from the index, which routes.ts measures beside Cairn: a bare server that makes
 * the same reads. It sends as many headers, validates nothing, caches nothing, counts nothing, and limits nothing.
 * @module
 */
import { readId } from "../../src/arweave/id.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";

const [indexPath = "", headersText = "{}"] = process.argv.slice(2);
const headers = new Headers(JSON.parse(headersText));
const reader = openIndexReader(indexPath);

const blockPrefix = "/block/height/";
const transactionPrefix = "/tx/";

function read(path: string): Uint8Array<ArrayBuffer> | undefined {
  if (path.startsWith(blockPrefix)) return reader.finalBlock(Number(path.slice(blockPrefix.length)));
  const id = readId(path.slice(transactionPrefix.length));
  return id && reader.finalTransaction(id);
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) => {
    const bytes = read(url.slice(url.indexOf("/", url.indexOf("//") + 2)));
    return bytes === undefined ? new Response(null, { status: 404 }) : new Response(bytes, { headers });
  },
});
process.stdout.write(`${server.port}\n`);
