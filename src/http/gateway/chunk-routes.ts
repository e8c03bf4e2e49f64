/**
 * `GET` and `HEAD` of `/chunk/{offset}` and `/chunk/{offset}/data`.
 * Source: specification 4A "Chunks"; contract.md §1, §3; reference/gateway.md §1.3.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { servedChunkFields } from "../../arweave/chunk.ts";
import { Failure } from "../../failures.ts";
import type { Chunks, FoundChunk } from "../../gateway/chunks.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { writeJson } from "../../lib/json.ts";
import { jsonTextAnswer } from "../answers.ts";
import { withBodySize } from "../body-size.ts";
import { namesTag } from "../conditional.ts";
import { contextOf } from "../context.ts";
import { digestField, unknownType } from "../header-values.ts";
import { hopsOf } from "./content-sender.ts";

/** Source: contract.md §3. */
const offsetPattern = /^(0|[1-9]\d{0,18})$/;

/** How long sources may keep a reader waiting, in seconds. */
const sourceSilenceSeconds = 60;

/** A chunk that is proven and too deep to be forked away never changes at its offset; any other may. */
const cacheControl = { final: "public, max-age=2592000, immutable", other: "public, max-age=60" } as const;

/** Creates the routes. */
export function createChunkRoutes(chunks: Chunks): AnyElysia {
  const find = async (text: string, request: Request): Promise<FoundChunk> => {
    if (!offsetPattern.test(text)) throw new Failure("invalid_offset", { text });
    contextOf(request).allowSilence(sourceSilenceSeconds);
    const at = hopsOf(request) > 0 ? chunks.atForGateway : chunks.at;
    return await at(BigInt(text), request.signal);
  };
  return new Elysia({ strictPath: true })
    .get("/chunk/:offset", async ({ params, request }) => {
      const found = await find(params.offset, request);
      const headers = chunkHeaders(found);
      if (isNamed(request, headers.ETag)) return new Response(null, { status: 304, headers });
      return jsonTextAnswer(writeJson(servedChunkFields(found.served, found.end)), 200, headers);
    })
    .get("/chunk/:offset/data", async ({ params, request }) => {
      const found = await find(params.offset, request);
      const headers = chunkHeaders(found);
      if (isNamed(request, headers.ETag)) return new Response(null, { status: 304, headers });
      const body = new Uint8Array(found.served.chunk);
      const all = { ...headers, ...dataHeaders(found, BigInt(params.offset)) };
      return withBodySize(new Response(body, { headers: all }), body.byteLength);
    });
}

function isNamed(request: Request, tag: string): boolean {
  return namesTag(request.headers.get("if-none-match"), tag);
}

function chunkHeaders({ served, verified, stable }: FoundChunk) {
  return {
    ETag: `"${encodeBase64url(sha256(served.chunk))}"`,
    "Cache-Control": verified && stable ? cacheControl.final : cacheControl.other,
    "X-AR-IO-Verified": String(verified),
  };
}

/**
 * What a client needs to check the bytes alone; what is not known is left out. Absolute offsets count from 1, as in the
 * path: a chunk's start and its length make the offset of the next chunk, which clients go by.
 */
function dataHeaders(found: FoundChunk, offset: bigint): Record<string, string> {
  const { served, end, transaction, dataStart } = found;
  const start = end - BigInt(served.chunk.byteLength) + 1n;
  const place =
    transaction === undefined
      ? {}
      : {
          "X-Arweave-Chunk-Data-Root": transaction.dataRoot,
          "X-Arweave-Chunk-Tx-Id": transaction.id,
          "X-Arweave-Chunk-Tx-Data-Size": String(transaction.end - transaction.start),
          "X-Arweave-Chunk-Tx-Start-Offset": String(transaction.start + 1n),
          "X-Arweave-Chunk-Relative-Start-Offset": String(dataStart),
        };
  return {
    "Content-Type": unknownType,
    "X-Content-Type-Options": "nosniff",
    "Content-Digest": digestField(sha256(served.chunk)),
    "X-Arweave-Chunk-Data-Path": encodeBase64url(served.dataPath),
    "X-Arweave-Chunk-Tx-Path": encodeBase64url(served.txPath),
    "X-Arweave-Chunk-Start-Offset": String(start),
    "X-Arweave-Chunk-Read-Offset": String(offset - start),
    ...place,
  };
}
