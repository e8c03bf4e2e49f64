/**
 * The floor of records that are read from the index, which routes.ts measures beside Cairn: a bare server that makes
 * the same reads, sends as many headers, and does what every response that is read needs: it has the request's id, and
 * is counted. It validates, caches and limits nothing, and looks in no memory first.
 * Source: docs/reference/gateway.md#request-ids; docs/decisions/119-records.md.
 * @module
 */
import { readId } from "../../src/arweave/id.ts";
import { requestIdOf } from "../../src/http/request-context.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { readTarget } from "../../src/http/request-target.ts";
import { withBodySize } from "../../src/http/responses.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";

const [indexPath = "", headersText = "{}"] = process.argv.slice(2);
const headers = new Headers(JSON.parse(headersText));
const reader = openIndexReader(indexPath);
const metrics = createRequestMetrics(createMetrics(), silentLog);
const label = { service: "gateway", route: "record" } as const;
const clientAddress = () => "";

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
  fetch: (request) => {
    const startedAt = performance.now();
    const target = readTarget(request.url);
    const bytes = read(target.path);
    if (bytes === undefined) return new Response(null, { status: 404 });
    const response = withBodySize(new Response(bytes, { headers }), bytes.length);
    const requestId = requestIdOf(request.headers.get("x-request-id"));
    response.headers.set("X-Request-Id", requestId);
    const context = { requestId, target, headOnly: false, clientAddress };
    metrics.responded({ request, context, label, response, durationMs: performance.now() - startedAt });
    return response;
  },
});
process.stdout.write(`${server.port}\n`);
