/**
 * Node API routes that read the chain: blocks, accounts and prices, chunks, transactions and their data.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware (handle_get_chunk, handle_get_tx and the clauses of "tx"),
 * ar_info, ar_wallet (checksums of addresses), ar_serialize (poa_to_binary), ar_http_util.
 * @module
 */
import { crc32 } from "node:zlib";
import { Elysia } from "elysia";
import { servedChunkBytes, servedChunkFields } from "../../arweave/chunk.ts";
import { type Address, isAddress, readAddress } from "../../arweave/id.ts";
import { tagValue } from "../../arweave/tags.ts";
import { readTransactionHeader } from "../../arweave/transaction.ts";
import { withCharset } from "../../http/header-values.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { yieldToEventLoop } from "../../lib/event-loop.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import { devnetFee } from "../devnet/chain-rules.ts";
import { joinData, writeData } from "../devnet/chunk-store.ts";
import type { MinedTransaction } from "../devnet/database.ts";
import type { Devnet, WeaveChunk } from "../devnet/devnet.ts";
import { networkName, nodeBytes, nodeEmpty, nodeError, nodeJson, nodeText } from "./node-responses.ts";

/** Maximum number of blocks in a response of the block index. */
const blockIndexRangeMax = 10_000;

/** Blocks that are read and parsed without a pause: 0.4 MiB if empty. */
const blocksPerBatch = 100;

/** Number of blocks in `/recent`. */
const recentBlocks = 18;

export function blockRoutes(devnet: Devnet) {
  return new Elysia()
    .get("/", () => nodeJson(infoText(devnet)))
    .get("/info", () => nodeJson(infoText(devnet)))
    .get("/time", () => nodeText(`${Math.floor(devnet.now() / 1_000)}`))
    .get("/peers", () => nodeJson("[]"))
    .get("/queue", () => nodeJson("[]"))
    .get("/height", () => nodeText(`${devnet.height()}`))
    .get("/recent", () => nodeJson(recentText(devnet)))
    .get("/tx_anchor", () => nodeText(devnet.suggestedAnchor()))
    .get("/block/current", () => blockResponse(devnet.blockOf(devnet.tipHash())))
    .get("/current_block", () => blockResponse(devnet.blockOf(devnet.tipHash())))
    .get("/block/height/:height", ({ params }) => blockByHeight(devnet, params.height))
    .get("/block/hash/:hash", ({ params }) => blockResponse(devnet.blockOf(params.hash)))
    .get("/block/height/:height/wallet/:address/balance", ({ params }) =>
      balanceAt(devnet, params.height, params.address),
    )
    .get("/block/:by/:id/:field", () => nodeText("Subfield block querying is disabled on this node.", 421))
    .get("/hash_list", () => nodeError("not_supported_since_fork_2_6"))
    .get("/block_index", () => nodeError("not_supported_since_fork_2_6"))
    .get("/hash_list/:from/:to", ({ params, request }) => blockIndex(devnet, params, request))
    .get("/block_index/:from/:to", ({ params, request }) => blockIndex(devnet, params, request))
    .get("/recent_hash_list", () => nodeJson(JSON.stringify(recentHashes(devnet))));
}

/** The JSON of `/info`. */
export function infoText(devnet: Devnet): string {
  const height = devnet.height();
  return JSON.stringify({
    network: networkName,
    version: 5,
    release: 92,
    git_hash: "",
    height,
    current: devnet.tipHash(),
    blocks: height + 1,
    cached_blocks: Math.min(height + 1, 50),
    peers: 0,
    queue_length: 0,
    node_state_latency: 0,
  });
}

function blockResponse(block: Readonly<{ text: string }> | undefined): Response {
  return block === undefined ? nodeText("Block not found.", 404) : nodeJson(block.text);
}

function blockByHeight(devnet: Devnet, text: string): Response {
  const height = readHeight(text);
  return height === undefined ? nodeText("Invalid height.", 400) : blockResponse(devnet.blockAt(height));
}

function balanceAt(devnet: Devnet, heightText: string, addressText: string): Response {
  const height = readHeight(heightText);
  if (height === undefined) return nodeText("Invalid height.", 400);
  const address = readAddress(addressText);
  if (address === undefined) return nodeText("Invalid address.", 400);
  if (height > devnet.height()) return nodeText("Block not found.", 404);
  return nodeText(`${devnet.balanceAt(address, height)}`);
}

async function blockIndex(devnet: Devnet, params: { from: string; to: string }, request: Request): Promise<Response> {
  const from = readInteger(params.from);
  const to = readInteger(params.to);
  if (from === undefined || to === undefined) return nodeError("invalid_range");
  if (from < 0) return nodeError("negative_start");
  if (from > to) return nodeError("start_bigger_than_end");
  if (to - from + 1 > blockIndexRangeMax) {
    return nodeError("range_too_big", 400, { max_range_size: blockIndexRangeMax });
  }
  if (from > devnet.height()) return nodeError("start_too_big");
  const isShort = (request.headers.get("x-block-format") ?? "2") === "2";
  const entries = isShort ? devnet.hashes(from, to) : await indexEntries(devnet, from, to);
  return nodeJson(JSON.stringify(entries));
}

/** Newest first. Blocks are parsed in batches, so that other requests are served in between. */
async function indexEntries(devnet: Devnet, from: number, to: number) {
  const entries: ReturnType<typeof indexEntry>[] = [];
  for (let top = Math.min(to, devnet.height()); top >= from; top -= blocksPerBatch) {
    entries.push(...devnet.blocks(Math.max(from, top - blocksPerBatch + 1), top).map(indexEntry));
    await yieldToEventLoop();
  }
  return entries;
}

function indexEntry({ hash, text }: Readonly<{ hash: string; text: string }>) {
  const fields = readJson(text);
  const { tx_root = "", weave_size = "0" } = isJsonObject(fields) ? fields : {};
  return { tx_root, weave_size, hash };
}

function recentText(devnet: Devnet): string {
  const height = devnet.height();
  const blocks = devnet.blocks(height - recentBlocks + 1, height).map((block) => {
    const fields = readJson(block.text);
    return { id: block.hash, received: isJsonObject(fields) ? fields["timestamp"] : 0, height: block.height };
  });
  return JSON.stringify({ blocks, forks: [] });
}

function recentHashes(devnet: Devnet): readonly string[] {
  return devnet.hashes(devnet.height() - 49, devnet.height());
}

function readHeight(text: string): number | undefined {
  const height = readInteger(text);
  return height === undefined || height < 0 ? undefined : height;
}

function readInteger(text: string): number | undefined {
  return /^[+-]?\d{1,30}$/.test(text) ? Number(text) : undefined;
}

/** Maximum number of digits of a size. */
const sizeDigitsMax = 78;

export function walletRoutes(devnet: Devnet) {
  const balance = (address: Address | undefined) => (address && devnet.account(address)?.balance) ?? 0n;
  const lastTx = (address: Address | undefined) => (address && devnet.account(address)?.lastTx) ?? "";
  return new Elysia()
    .get("/wallet/:address/balance", ({ params }) => ofAddress(params.address, (address) => `${balance(address)}`))
    .get("/wallet/:address/last_tx", ({ params }) => ofAddress(params.address, lastTx))
    .get("/wallet/:address/reserved_rewards_total", ({ params }) => ofAddress(params.address, () => "0"))
    .get("/total_supply", () => nodeText(`${devnet.supply()}`))
    .get("/inflation/:height", ({ params }) =>
      /^\d+$/.test(params.height) ? nodeText("0") : nodeError("height_must_be_an_integer"),
    )
    .use(priceRoutes(devnet));
}

function priceRoutes(devnet: Devnet) {
  const text = (size: string, target: string | undefined, request: Request) =>
    priceResponse(devnet, size, target, wantsJson(request));
  const json = (size: string, target?: string) => priceResponse(devnet, size, target, true);
  return new Elysia()
    .get("/price/:size", ({ params, request }) => text(params.size, undefined, request))
    .get("/price/:size/:target", ({ params, request }) => text(params.size, params.target, request))
    .get("/v2price/:size", ({ params, request }) => text(params.size, undefined, request))
    .get("/v2price/:size/:target", ({ params, request }) => text(params.size, params.target, request))
    .get("/price2/:size", ({ params }) => json(params.size))
    .get("/price2/:size/:target", ({ params }) => json(params.size, params.target))
    .get("/optimistic_price/:size", ({ params }) => json(params.size))
    .get("/optimistic_price/:size/:target", ({ params }) => json(params.size, params.target));
}

function priceResponse(devnet: Devnet, sizeText: string, targetText: string | undefined, asJson: boolean): Response {
  const target = targetText === undefined ? undefined : readChecksummed(targetText);
  if (targetText !== undefined && target === undefined) return nodeText("Invalid address.", 400);
  if (!/^\+?\d+$/.test(sizeText) || sizeText.length > sizeDigitsMax) return nodeError("size_must_be_an_integer");
  const fee = devnetFee(BigInt(sizeText), recipientOf(devnet, target));
  const headers = { "arweave-denomination": "1" };
  return asJson
    ? nodeJson(JSON.stringify({ fee: `${fee}`, denomination: 1 }), 200, headers)
    : nodeText(`${fee}`, 200, headers);
}

function recipientOf(devnet: Devnet, target: string | undefined): "none" | "known" | "new" {
  if (target === undefined) return "none";
  const address = readAddress(target);
  return address !== undefined && devnet.account(address) !== undefined ? "known" : "new";
}

/** Whether the client accepts only JSON; other clients get the older text response. */
function wantsJson(request: Request): boolean {
  return request.headers.get("accept") === "application/json";
}

function ofAddress(text: string, response: (address: Address | undefined) => string): Response {
  const address = readChecksummed(text);
  return address === undefined ? nodeText("Invalid address.", 400) : nodeText(response(readAddress(address)));
}

/** Parses an address of 20 to 64 bytes, with or without its checksum. @returns The address without the checksum. */
function readChecksummed(text: string): string | undefined {
  const [address = "", checksum, ...more] = text.split(":");
  const bytes = isAddress(address) ? Buffer.from(address, "base64url") : decodeBase64url(address);
  if (bytes === undefined || more.length > 0 || bytes.length < 20 || bytes.length > 64) return undefined;
  if (checksum === undefined) return address;
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return checksum === encodeBase64url(sum) ? address : undefined;
}

/** An offset has 32 bytes in a data path. */
const offsetMax = 2n ** 256n - 1n;

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
  const bytes = servedChunkBytes({ chunk, dataPath, txPath });
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

/** Maximum data in one response of a node. Bytes. */
const servedDataMax = 12 * 2 ** 20;

/** Content types that are valid in a header. */
const contentTypePattern = /^[\x20-\x7e]{1,255}$/;

export function transactionRoutes(devnet: Devnet) {
  const pending = () => nodeJson(JSON.stringify(devnet.pendingIds()));
  return new Elysia()
    .get("/tx/pending", pending)
    .get("/tx/ready_for_mining", pending)
    .get("/tx/:id", ({ params }) => transactionResponse(devnet, params.id))
    .get("/tx/:id/status", ({ params }) => statusResponse(devnet, params.id))
    .get("/tx/:id/offset", ({ params }) => offsetResponse(devnet, params.id))
    .get("/tx/:id/:field", ({ params }) => fieldResponse(devnet, params.id, params.field))
    .get("/unconfirmed_tx/:id", ({ params }) => unconfirmedResponse(devnet, params.id))
    .get("/:name", ({ params }) => namedResponse(devnet, params.name));
}

async function transactionResponse(devnet: Devnet, id: string): Promise<Response> {
  if (!isHash(id)) return nodeText("Invalid hash.", 400);
  const found = devnet.transaction(id);
  switch (found.kind) {
    case "mined":
      return nodeJson((await devnet.written(id)) ?? found.transaction.text);
    case "pending":
      return nodeText("Pending", 202);
    case "rejected":
      return nodeText(found.codes.join(" "), 410);
    case "unknown":
      return nodeText("Not Found.", 404);
  }
}

async function unconfirmedResponse(devnet: Devnet, id: string): Promise<Response> {
  const text = isHash(id) ? await devnet.written(id) : undefined;
  return text === undefined ? await transactionResponse(devnet, id) : nodeJson(text);
}

function statusResponse(devnet: Devnet, id: string): Response {
  if (!isHash(id)) return nodeText("Invalid address.", 400);
  const found = devnet.transaction(id);
  if (found.kind === "pending") return nodeText("Pending", 202);
  if (found.kind !== "mined") return nodeText("Not Found.", 404);
  const { height } = found.transaction;
  return nodeJson(
    JSON.stringify({
      block_height: height,
      block_indep_hash: devnet.blockAt(height)?.hash,
      number_of_confirmations: devnet.height() - height + 1,
    }),
  );
}

function offsetResponse(devnet: Devnet, id: string): Response {
  if (!isHash(id)) return nodeError("invalid_address");
  const found = devnet.transaction(id);
  const data = found.kind === "mined" ? found.transaction.data : undefined;
  if (data === undefined) return nodeEmpty(404);
  return nodeJson(JSON.stringify({ offset: `${data.weaveEnd}`, size: `${data.size}` }));
}

async function fieldResponse(devnet: Devnet, id: string, field: string): Promise<Response> {
  if (field.startsWith("data.")) return await rawResponse(devnet, id);
  if (!isHash(id)) return nodeText("Invalid hash.", 400);
  const found = devnet.transaction(id);
  if (found.kind === "pending") return nodeText("Pending", 202);
  if (found.kind !== "mined") return nodeText("Not Found.", 404);
  if (field === "data") return await dataResponse(devnet, found.transaction);
  const fields = readJson(found.transaction.text);
  const value = isJsonObject(fields) && Object.hasOwn(fields, field) ? fields[field] : undefined;
  if (value === undefined) return nodeError("invalid_field");
  return typeof value === "object" ? nodeJson(JSON.stringify(value)) : nodeText(`${value}`);
}

async function dataResponse(devnet: Devnet, transaction: MinedTransaction): Promise<Response> {
  if (transaction.data === undefined) return nodeText("");
  const { size } = transaction.data;
  if (size > servedDataMax) return nodeError("tx_data_too_big");
  const chunks = devnet.chunksOf(transaction);
  return chunks === undefined ? missingPage() : nodeText(await writeData(chunks, size));
}

/** A path in the root that begins with an id, 43 characters, is a transaction's data; an extension may follow. */
async function namedResponse(devnet: Devnet, name: string): Promise<Response> {
  return name.length < 43 ? nodeText("Request type not found.", 400) : await rawResponse(devnet, name.slice(0, 43));
}

async function rawResponse(devnet: Devnet, id: string): Promise<Response> {
  if (!isHash(id)) return nodeText("Invalid hash.", 400);
  const found = devnet.transaction(id);
  if (found.kind !== "mined") return missingPage();
  const { transaction } = found;
  const { tags } = readTransactionHeader(transaction.text);
  const contentType = tagValue(tags, "Content-Type") ?? "text/html";
  if (!contentTypePattern.test(contentType)) return nodeEmpty(421);
  const size = transaction.data?.size ?? 0;
  if (size > servedDataMax) return nodeError("tx_data_too_big");
  const chunks = devnet.chunksOf(transaction);
  if (chunks === undefined) return missingPage();
  // Stored content must not use the chain's controls, which have the same origin.
  const guards = { "Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff" };
  return nodeBytes(await joinData(chunks, size), withCharset(contentType), guards);
}

function missingPage(): Response {
  const page = "<!doctype html><title>Not found</title><p>The chain does not have this data.</p>\n";
  return new Response(page, {
    status: 404,
    headers: { "Content-Type": "text/html; charset=utf-8", "Access-Control-Allow-Origin": "*" },
  });
}

/** Whether a text is base64url. */
function isHash(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text) && text.length % 4 !== 1;
}
