/**
 * What a chain node answers, at the gateway: network, blocks, transactions, wallets, prices, posting.
 *
 * Failures of ours become answers in server.ts; what a node would say of a wrong request is said here in its
 * words.
 * Source: docs/reference/node-api.md#routes; docs/reference/gateway.md#bare-text.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Id } from "../../arweave/id.ts";
import type { Blocks } from "../../gateway/blocks.ts";
import type { Broadcast } from "../../gateway/broadcast.ts";
import { type ChainResponse, nodeTexts, relayed } from "../../gateway/chain-response.ts";
import type { Network } from "../../gateway/network.ts";
import type { Relay, RelayCheck } from "../../gateway/relay.ts";
import { relayedShapes } from "../../gateway/relayed-shapes.ts";
import type { Transactions } from "../../gateway/transactions.ts";
import type { Composing } from "../../lib/event-loop.ts";
import { readBody } from "../body.ts";
import { withBodySize } from "../body-size.ts";
import { composingOf, contextOf } from "../context.ts";
import { takesOnlyJson } from "../header-values.ts";
import { limits } from "../limits.ts";
import type { RequestMemory } from "../memory-account.ts";
import { jsonTextResponse, sizeOf, textResponse, textType } from "../responses.ts";
import { pathParameters } from "./parameters.ts";

/** What the routes ask. */
export type ChainRoutesOptions = Readonly<{
  network: Network;
  blocks: Blocks;
  transactions: Transactions;
  broadcast: Broadcast;
  relay: Relay;
}>;

/** A request about a transaction, or about one of its fields. */
type Asked = Readonly<{ params: Readonly<{ id: string; field?: string }>; request: Request }>;

/** How long a node's answer is given again. Milliseconds. */
const retentionMs = { peers: 30_000, anchor: 1_000, price: 2_000, wallet: 500 } as const;

/** What never changes may be kept as long as content. */
const finalCache = { "Cache-Control": "public, max-age=2592000, immutable" } as const;

/** Creates the routes. */
export function createChainRoutes(options: ChainRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true })
    .use(networkRoutes(options))
    .use(blockRoutes(options))
    .use(transactionRoutes(options))
    .use(walletRoutes(options))
    .use(postingRoutes(options));
}

/** The same, within the memory of responses: a node's bytes are shared by all who ask, and copied for each response. */
async function heldResponse(reply: ChainResponse, request: Request): Promise<Response> {
  const { body } = reply;
  if (body instanceof Uint8Array) await holdShared(body, contextOf(request).memory);
  return chainResponse(reply);
}

/** Bytes of nodes with which somebody waits for memory. */
const waitedWith = new WeakSet<Uint8Array>();

/** Takes memory for a copy. Of those that wait with the same bytes, the first is counted as holding them. */
async function holdShared(body: Uint8Array, memory: RequestMemory): Promise<void> {
  if (waitedWith.has(body)) return await memory.holdResponse(body.byteLength);
  waitedWith.add(body);
  try {
    await memory.holdComposed(body.byteLength);
  } finally {
    waitedWith.delete(body);
  }
}

/** A node's words as an answer: text stays bare. */
export function chainResponse({ status, form, body, isFinal, rejectReason }: ChainResponse): Response {
  const cache = isFinal ? finalCache : status === 200 ? {} : { "Cache-Control": "no-store" };
  // Some of it is a node's text: nobody may take it for anything but what it is called here.
  const reason = rejectReason === undefined ? {} : { "X-Reject-Reason": rejectReason };
  const headers = { "X-Content-Type-Options": "nosniff", ...cache, ...reason };
  if (form === "json") return jsonTextResponse(body, status, headers);
  const response = new Response(body, { status, headers: { "Content-Type": textType, ...headers } });
  return withBodySize(response, sizeOf(body));
}

function networkRoutes({ network, relay }: ChainRoutesOptions): AnyElysia {
  const relayTo =
    (path: string, stored: number, shape: RelayCheck) =>
    async ({ request }: { request: Request }) =>
      await heldResponse(relayed(await relay.get(path, stored, request.signal, shape)), request);
  return new Elysia({ strictPath: true })
    .get("/info", async ({ request }) => jsonTextResponse(await network.infoText(request.signal)))
    .get("/height", async ({ request }) => textResponse(String(await network.height(request.signal))))
    .get("/peers", relayTo("/peers", retentionMs.peers, relayedShapes.peers))
    .get("/tx_anchor", relayTo("/tx_anchor", retentionMs.anchor, relayedShapes.anchor));
}

function blockRoutes({ blocks }: ChainRoutesOptions): AnyElysia {
  const current = async ({ request }: { request: Request }) =>
    await heldResponse(await blocks.current(request.signal), request);
  return new Elysia({ strictPath: true })
    .get("/current_block", current)
    .get("/block/current", current)
    .get("/block/height/:height", async ({ params: { height }, request }) =>
      heldResponse(
        pathParameters.height.is(height)
          ? await blocks.byHeight(Number(height), request.signal)
          : nodeTexts.invalidHeight,
        request,
      ),
    )
    .get("/block/hash/:hash", async ({ params: { hash }, request }) =>
      heldResponse(
        pathParameters.blockHash.is(hash) ? await blocks.byHash(hash, request.signal) : nodeTexts.blockNotFound,
        request,
      ),
    );
}

function transactionRoutes({ transactions }: ChainRoutesOptions): AnyElysia {
  /** A question about one transaction, and what a node says where the id is none. */
  const about =
    (ask: (id: Id, composing: Composing, field: string) => Promise<ChainResponse>, noId: ChainResponse) =>
    async ({ params: { id, field = "" }, request }: Asked) =>
      heldResponse(pathParameters.transactionId.is(id) ? await ask(id, composingOf(request), field) : noId, request);

  const field = async (id: Id, composing: Composing, name: string) =>
    pathParameters.field.is(name) ? await transactions.field(id, name, composing) : nodeTexts.invalidField;
  const status = (id: Id, { signal }: Composing) => transactions.status(id, signal);
  const offset = (id: Id, { signal }: Composing) => transactions.offset(id, signal);
  return new Elysia({ strictPath: true })
    .get("/tx/pending", async ({ request }) => heldResponse(await transactions.pending(request.signal), request))
    .get("/tx/:id", about(transactions.record, nodeTexts.invalidHash))
    .get("/tx/:id/status", about(status, nodeTexts.invalidAddress))
    .get("/tx/:id/offset", about(offset, nodeTexts.invalidOffsetId))
    .get("/tx/:id/:field", about(field, nodeTexts.invalidHash))
    .get("/unconfirmed_tx/:id", about(transactions.unconfirmed, nodeTexts.invalidHash));
}

function walletRoutes({ relay }: ChainRoutesOptions): AnyElysia {
  const wallet = async (address: string, question: "balance" | "last_tx", signal: AbortSignal) => {
    if (!pathParameters.address.is(address)) return chainResponse(nodeTexts.invalidAddress);
    const shape = question === "balance" ? relayedShapes.amount : relayedShapes.idOrNothing;
    return bareText(relayed(await relay.get(`/wallet/${address}/${question}`, retentionMs.wallet, signal, shape)));
  };
  const price = async (size: string, target: string, signal: AbortSignal) => {
    if (!pathParameters.size.is(size)) return chainResponse(nodeTexts.sizeNotInteger);
    // The specification writes the parameter's name where the address stands; the word itself asks for no
    // address.
    const to = target === "target" ? "" : target;
    if (to !== "" && !pathParameters.target.is(to)) return chainResponse(nodeTexts.invalidAddress);
    const path = `/price/${size}${to === "" ? "" : `/${to}`}`;
    return bareText(relayed(await relay.get(path, retentionMs.price, signal, relayedShapes.amount)));
  };
  return new Elysia({ strictPath: true })
    .get("/wallet/:address/balance", ({ params, request }) => wallet(params.address, "balance", request.signal))
    .get("/wallet/:address/last_tx", ({ params, request }) => wallet(params.address, "last_tx", request.signal))
    .get("/price/:size", ({ params, request }) => price(params.size, "", request.signal))
    .get("/price/:size/:target", ({ params, request }) => price(params.size, params.target, request.signal));
}

function postingRoutes({ broadcast }: ChainRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true })
    .post(
      "/tx",
      async ({ request }) => {
        const body = await readBody(request, limits.transactionBytesMax);
        const accept = takesOnlyJson(request) ? "application/json" : undefined;
        return chainResponse(await broadcast.transaction(body, request.signal, accept));
      },
      { parse: "none" },
    )
    .post(
      "/chunk",
      async ({ request }) =>
        chainResponse(await broadcast.chunk(await readBody(request, limits.chunkBytesMax), request.signal)),
      { parse: "none" },
    );
}

/** Amounts and ids are text also where they look like JSON. */
function bareText(reply: ChainResponse): Response {
  return chainResponse(reply.status === 200 ? { ...reply, form: "text" } : reply);
}
