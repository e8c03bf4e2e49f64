/**
 * Node API routes for blocks and the chain as a whole.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware, ar_info.
 * @module
 */
import { Elysia } from "elysia";
import { readAddress } from "../../arweave/id.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import { yieldToEventLoop } from "../devnet/chunk-store.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { networkName, nodeError, nodeJson, nodeText } from "./node-responses.ts";

/** Most blocks in one response of the block index. */
const blockIndexRangeMax = 10_000;

/** Blocks that are read and parsed at once: 0.4 MiB of empty ones. */
const blocksPerBatch = 100;

/** Blocks that `/recent` shows. */
const recentBlocks = 18;

/** Routes of blocks. */
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

/** What `/info` says. */
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

/** Newest first. Blocks are parsed some at a time, so that others are served in between. */
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
