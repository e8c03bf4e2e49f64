/**
 * Node API routes for chunks: bytes of the weave with their proofs.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware (handle_get_chunk), ar_serialize (poa_to_binary).
 * @module
 */
import { Elysia } from "elysia";
import { servedChunkFields } from "../../arweave/chunk.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, utf8Bytes, withSize } from "../../lib/bytes.ts";
import type { Devnet, WeaveChunk } from "../devnet/devnet.ts";
import { nodeBytes, nodeEmpty, nodeError, nodeJson } from "./node-responses.ts";

/** Offsets are notes of 32 bytes. */
const offsetMax = 2n ** 256n - 1n;

/** Routes of chunks. */
export function chunkRoutes(devnet: Devnet) {
  return new Elysia()
    .get("/chunk/:offset", ({ params }) => ofOffset(devnet, params.offset, wholeChunk))
    .get("/chunk2/:offset", ({ params }) => ofOffset(devnet, params.offset, binaryChunk))
    .get("/chunk_proof/:offset", ({ params }) => ofOffset(devnet, params.offset, proofOnly))
    .get("/unconfirmed_chunk/:id/:offset", ({ params }) => unconfirmedChunk(devnet, params.id, params.offset));
}

function ofOffset(devnet: Devnet, text: string, response: (chunk: WeaveChunk) => Response): Response {
  if (!/^[+-]?\d{1,100}$/.test(text)) return nodeError("invalid_offset");
  const offset = BigInt(text);
  if (offset < 0n || offset > offsetMax) return nodeError("offset_out_of_bounds");
  if (offset === 0n || offset > devnet.weaveSize()) return nodeEmpty(404);
  const chunk = devnet.chunkAt(Number(offset));
  return chunk === undefined ? nodeEmpty(404) : response(chunk);
}

function wholeChunk({ chunk, dataPath, txPath, weaveEnd }: WeaveChunk): Response {
  const fields = servedChunkFields({ chunk, dataPath, txPath }, BigInt(weaveEnd));
  return nodeJson(JSON.stringify(fields), 200, { "arweave-absolute-end-offset": `${weaveEnd}` });
}

function proofOnly({ dataPath, txPath, weaveEnd }: WeaveChunk): Response {
  const fields = {
    data_path: encodeBase64url(dataPath),
    tx_path: encodeBase64url(txPath),
    absolute_end_offset: `${weaveEnd}`,
  };
  return nodeJson(JSON.stringify(fields), 200, { "arweave-absolute-end-offset": `${weaveEnd}` });
}

function binaryChunk({ chunk, dataPath, txPath, weaveEnd }: WeaveChunk): Response {
  const packing = utf8Bytes("unpacked");
  const parts = [withSize(chunk, 3), withSize(txPath, 3), withSize(dataPath, 3), withSize(packing, 1)];
  const bytes = new Uint8Array(concatBytes(parts));
  return nodeBytes(bytes, "application/octet-stream", { "arweave-absolute-end-offset": `${weaveEnd}` });
}

function unconfirmedChunk(devnet: Devnet, id: string, text: string): Response {
  if (!/^\d{1,15}$/.test(text) || Number(text) === 0) return nodeError("invalid_offset");
  const found = devnet.chunkOf(id, Number(text) - 1);
  if (found === undefined) return nodeEmpty(404);
  const fields = {
    chunk: encodeBase64url(found.chunk),
    data_path: encodeBase64url(found.dataPath),
    packing: "unpacked",
    is_stored_long_term: true,
  };
  return nodeJson(JSON.stringify(fields));
}
