/**
 * `GET` and `HEAD` of `/chunk/{offset}` and `/chunk/{offset}/data`.
 * Source: docs/reference/gateway.md#chunks; docs/reference/node-api.md#posting-chunks.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { servedChunkFields } from "../../arweave/chunk.ts";
import type { Chunks, FoundChunk } from "../../gateway/weave-chunks.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { writeJson } from "../../lib/json.ts";
import { matchesTag } from "../conditional-requests.ts";
import { corsHeaders } from "../cors.ts";
import { digestField, unknownType } from "../header-values.ts";
import {
  bytes,
  empty,
  failureResponses,
  inHeader,
  json,
  type Responses,
  type Result,
  ref,
  sourceFault,
  textSchema,
} from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonType, withBodySize } from "../responses.ts";
import { describedAs, plainText, type RouteDescription } from "../route-schema.ts";
import { notModifiedHeaders } from "./content-headers.ts";
import { hopsOf } from "./content-sender.ts";
import type { ResponseCache } from "./response-cache.ts";

/** How long sources may keep a reader waiting, in seconds. */
const sourceSilenceSeconds = 60;

/** Of a chunk that never changes at its offset, and of any other. */
const cacheControl = { final: "public, max-age=2592000, immutable", other: "public, max-age=60" } as const;

/** Memory of a chunk while its response is composed, as bytes and as JSON. Bytes. */
const chunkHoldBytes = 640 * 2 ** 10;

/** A response with 200, with all its headers but its length. */
type ChunkResponse = Readonly<{ body: Blob; headers: Headers }>;

/** The headers of one chunk's response, and its body. */
type Writing = Readonly<{ headers: Readonly<Record<string, string>>; body: string | Uint8Array }>;

export type ChunkRoutesOptions = Readonly<{
  chunks: Chunks;
  /** Caches final responses by their path: such a chunk is proven, hashed and written once for many readers. */
  memory: ResponseCache;
}>;

const params = t.Object({
  offset: plainText(
    {
      description: "Any byte of the chunk, counted through the weave; the first byte is 1.",
      example: "1",
      pattern: "^(0|[1-9][0-9]{0,18})$",
    },
    "invalid_offset",
  ),
});

const failures: Responses = {
  304: empty("`If-None-Match` names this chunk."),
  ...failureResponses("invalid_offset", "not_found", "blocked"),
  ...sourceFault,
};

function ofChunk(summary: string, found: Result): RouteDescription {
  return {
    tag: "Chunks",
    summary,
    parameters: [inHeader("If-None-Match", textSchema, "Entity tag of a chunk that the client has.")],
    responses: { 200: found, ...failures },
  };
}

export function createChunkRoutes({ chunks, memory }: ChunkRoutesOptions): AnyElysia {
  const find = async (offset: bigint, request: Request): Promise<FoundChunk> => {
    contextOf(request).extendIdleTimeout(sourceSilenceSeconds);
    const at = hopsOf(request) > 0 ? chunks.atForGateway : chunks.at;
    return await at(offset, request.signal);
  };

  const make = async (
    offset: bigint,
    request: Request,
    write: (found: FoundChunk, digest: Uint8Array, offset: bigint) => Writing,
  ): Promise<ChunkResponse> => {
    const since = memory.moment();
    await contextOf(request).memory.holdResponse(chunkHoldBytes);
    const found = await find(offset, request);
    const digest = sha256(found.served.chunk);
    const { headers: own, body } = write(found, digest, offset);
    const headers = new Headers({ ...corsHeaders, ...chunkHeaders(found, digest), ...own });
    const response = { body: new Blob([typeof body === "string" ? body : new Uint8Array(body)]), headers };
    if (isFinal(found) && found.transaction !== undefined) {
      const stored = { ...response, dependsOn: [found.transaction.id], goodUntil: Number.POSITIVE_INFINITY };
      // A chunk that was blocked or forked away meanwhile must not be cached.
      memory.put(contextOf(request).target.path, stored, since);
    }
    return response;
  };

  const route =
    (write: (found: FoundChunk, digest: Uint8Array, offset: bigint) => Writing) =>
    async ({ params, request }: Readonly<{ params: { offset: string }; request: Request }>) => {
      const { target, headOnly } = contextOf(request);
      const ready = memory.get(target.path) ?? (await make(BigInt(params.offset), request, write));
      if (matchesTag(request.headers.get("if-none-match"), ready.headers.get("ETag") ?? ""))
        return new Response(null, { status: 304, headers: notModifiedHeaders(ready.headers) });
      if (!headOnly) return withBodySize(new Response(ready.body, ready), ready.body);
      const headers = new Headers(ready.headers);
      headers.set("Content-Length", String(ready.body.size));
      return new Response(null, { headers });
    };

  return new Elysia({ strictPath: true })
    .get("/chunk/:offset", route(asJson), {
      params,
      detail: describedAs(
        {
          path: "/chunk/:offset",
          ...ofChunk("The chunk at an offset, with its proof", json("The chunk.", ref("Chunk"))),
        },
        { path: "/chunk/:offset", method: "HEAD", ...ofChunk("Headers of a chunk", empty("The chunk exists.")) },
      ),
    })
    .get("/chunk/:offset/data", route(asData), {
      params,
      detail: describedAs({
        path: "/chunk/:offset/data",
        ...ofChunk("The bytes of a chunk", bytes("The bytes; the proof is in headers.")),
      }),
    });
}

/** Whether the response of a chunk never changes at its offset: proven, too deep to be forked away, and complete. */
function isFinal({ verified, stable, served }: FoundChunk): boolean {
  return verified && stable && isComplete(served);
}

/** The path of a transaction is missing while, or because, the data of another one of its block cannot be read. */
function isComplete({ txPath }: FoundChunk["served"]): boolean {
  return txPath.length > 0;
}

function chunkHeaders(found: FoundChunk, digest: Uint8Array) {
  return {
    // Another tag than the complete one: a cache must not keep an incomplete response on a 304.
    ETag: `"${encodeBase64url(digest)}${isComplete(found.served) ? "" : ".u"}"`,
    "Cache-Control": isFinal(found) ? cacheControl.final : cacheControl.other,
    "X-AR-IO-Verified": String(found.verified),
  };
}

function asJson({ served, end }: FoundChunk): Writing {
  return { headers: { "Content-Type": jsonType }, body: writeJson(servedChunkFields(served, end)) };
}

function asData(found: FoundChunk, digest: Uint8Array, offset: bigint): Writing {
  return { headers: dataHeaders(found, digest, offset), body: found.served.chunk };
}

/**
 * Headers with which a client can check the bytes by itself; unknown values are left out. Absolute offsets count from
 * 1, as in the path: a chunk's start plus its length is the offset of the next chunk, which clients request next.
 */
function dataHeaders(found: FoundChunk, digest: Uint8Array, offset: bigint): Record<string, string> {
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
    "Content-Digest": digestField(digest),
    "X-Arweave-Chunk-Data-Path": encodeBase64url(served.dataPath),
    "X-Arweave-Chunk-Tx-Path": encodeBase64url(served.txPath),
    "X-Arweave-Chunk-Start-Offset": String(start),
    "X-Arweave-Chunk-Read-Offset": String(offset - start),
    ...place,
  };
}
