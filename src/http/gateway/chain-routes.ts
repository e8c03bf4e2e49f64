/**
 * The node API at the gateway: network, blocks, transactions, wallets, prices, posting.
 *
 * server.ts converts failures to responses. An invalid request gets the response here that a node would send.
 * Source: docs/reference/node-api.md#routes; docs/reference/gateway.md#bare-text.
 * @module
 */
import { type AnyElysia, type DocumentDecoration, Elysia } from "elysia";
import type { Id } from "../../arweave/id.ts";
import type { Blocks } from "../../gateway/blocks.ts";
import type { Broadcast } from "../../gateway/broadcast.ts";
import { type ChainResponse, nodeTexts, relayed } from "../../gateway/chain-response.ts";
import type { Network } from "../../gateway/network.ts";
import type { Relay, RelayCheck } from "../../gateway/relay.ts";
import { relayedShapes } from "../../gateway/relayed-formats.ts";
import type { Transactions } from "../../gateway/transactions.ts";
import type { Composing } from "../../lib/event-loop.ts";
import type { RequestMemory } from "../body-memory.ts";
import { acceptsOnlyJson } from "../header-values.ts";
import type { Parameter } from "../parameter.ts";
import {
  empty,
  failureResponses,
  idSchema,
  json,
  patterns,
  type Result,
  ref,
  type Schema,
  sampleId,
  text,
  textSchema,
} from "../reference/openapi-types.ts";
import { readBody } from "../request-body.ts";
import { composingOf, contextOf } from "../request-context.ts";
import { limits } from "../request-limits.ts";
import { jsonTextResponse, jsonType, sizeOf, textResponse, textType, withBodySize } from "../responses.ts";
import { described } from "../route-schema.ts";
import { chainPost, chainRead } from "./chain-schemas.ts";
import { pathParameters } from "./parameters.ts";

export type ChainRoutesOptions = Readonly<{
  network: Network;
  blocks: Blocks;
  transactions: Transactions;
  broadcast: Broadcast;
  relay: Relay;
}>;

/** A request about a transaction, or about one of its fields. */
type Asked = Readonly<{ params: Readonly<{ id: string; field?: string }>; request: Request }>;

/** How long a node's response is cached. Milliseconds. */
const retentionMs = { peers: 30_000, anchor: 1_000, price: 2_000, wallet: 500 } as const;

/** Responses that never change are cached as long as content. */
const finalCache = { "Cache-Control": "public, max-age=2592000, immutable" } as const;

/** The media types of replies. */
const mediaTypes = { json: jsonType, text: textType } as const satisfies Record<ChainResponse["form"], string>;

/** The body may contain a node's text: browsers must not guess another type. */
const noSniff = { "X-Content-Type-Options": "nosniff" } as const;

/** Has the shape that nodes parse; nodes reject it, because it is not signed. */
const sampleTransaction = {
  format: 2,
  id: sampleId,
  last_tx: "",
  owner: "AQAB",
  tags: [],
  target: "",
  quantity: "0",
  data: "",
  data_size: "0",
  data_root: "",
  reward: "0",
  signature: "AQAB",
};

const sampleChunk = {
  data_root: sampleId,
  data_size: "1",
  data_path: "AQAB",
  offset: "0",
  chunk: "AQ",
};

const digits: Schema = { type: "string", pattern: patterns.digits };
const block = json("The block, as a node writes it.", ref("Block"));

function transactionRead(
  summary: string,
  found: Result,
  ...fields: readonly Parameter[]
): { detail: DocumentDecoration } {
  const read = chainRead("Transactions", summary, found, [pathParameters.transactionId, ...fields]);
  const more = {
    202: text("`Pending`: not in a block yet."),
    451: failureResponses("blocked")[451] ?? empty("Blocked."),
  };
  return { detail: described({ ...read, responses: { ...read.responses, ...more } }) };
}

/** The description of a read as the hook of its route. */
function readHook(...read: Parameters<typeof chainRead>): { detail: DocumentDecoration } {
  return { detail: described(chainRead(...read)) };
}

export function createChainRoutes(options: ChainRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true })
    .use(networkRoutes(options))
    .use(blockRoutes(options))
    .use(transactionRoutes(options))
    .use(walletRoutes(options))
    .use(postingRoutes(options));
}

/** Waits for memory for the body: requests share the bytes of a node, which are copied for each response. */
async function heldResponse(reply: ChainResponse, request: Request): Promise<Response> {
  const { body } = reply;
  if (body instanceof Uint8Array) await holdShared(body, contextOf(request).memory);
  return chainResponse(reply);
}

/** Bytes of nodes for which a request waits for memory. */
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

/** Text is sent as text, not as a JSON string. */
export function chainResponse(reply: ChainResponse): Response {
  const { status, body } = reply;
  return withBodySize(new Response(body, { status, headers: chainHeaders(reply) }), sizeOf(body));
}

/** The headers of a reply, without those that `server.ts` adds. */
export function chainHeaders({ status, form, isFinal, rejectReason }: Omit<ChainResponse, "body">) {
  const cache = isFinal ? finalCache : status === 200 ? {} : { "Cache-Control": "no-store" };
  const reason = rejectReason === undefined ? {} : { "X-Reject-Reason": rejectReason };
  return { "Content-Type": mediaTypes[form], ...noSniff, ...cache, ...reason };
}

function networkRoutes({ network, relay }: ChainRoutesOptions): AnyElysia {
  const relayTo =
    (path: string, stored: number, shape: RelayCheck) =>
    async ({ request }: { request: Request }) =>
      await heldResponse(relayed(await relay.get(path, stored, request.signal, shape)), request);
  return new Elysia({ strictPath: true })
    .get(
      "/info",
      async ({ request }) => jsonTextResponse(await network.infoText(request.signal)),
      readHook("Network", "State of the chain", json("The state.", ref("NodeStatus"))),
    )
    .get(
      "/height",
      async ({ request }) => textResponse(String(await network.height(request.signal))),
      readHook("Network", "Height of the chain", text("The height.", digits)),
    )
    .get(
      "/peers",
      relayTo("/peers", retentionMs.peers, relayedShapes.peers),
      readHook("Network", "Nodes of the chain", json("Addresses of nodes.", { type: "array", items: textSchema })),
    )
    .get(
      "/tx_anchor",
      relayTo("/tx_anchor", retentionMs.anchor, relayedShapes.anchor),
      readHook("Network", "Anchor for a new transaction", text("The anchor.")),
    );
}

function blockRoutes({ blocks }: ChainRoutesOptions): AnyElysia {
  const current = async ({ request }: { request: Request }) =>
    await heldResponse(await blocks.current(request.signal), request);
  return new Elysia({ strictPath: true })
    .get("/current_block", current, readHook("Blocks", "The newest block", block))
    .get("/block/current", current, readHook("Blocks", "The newest block, under its other path", block))
    .get(
      "/block/height/:height",
      async ({ params: { height }, request }) =>
        pathParameters.height.is(height)
          ? await heldResponse(await blocks.byHeight(Number(height), request.signal), request)
          : chainResponse(nodeTexts.invalidHeight),
      readHook("Blocks", "The block at a height", block, [pathParameters.height]),
    )
    .get(
      "/block/hash/:hash",
      async ({ params: { hash }, request }) =>
        pathParameters.blockHash.is(hash)
          ? await heldResponse(await blocks.byHash(hash, request.signal), request)
          : chainResponse(nodeTexts.blockNotFound),
      readHook("Blocks", "The block with a hash", block, [pathParameters.blockHash]),
    );
}

function transactionRoutes({ transactions }: ChainRoutesOptions): AnyElysia {
  /** A request about one transaction, and a node's response to an invalid id. */
  const about =
    (ask: (id: Id, composing: Composing, field: string) => Promise<ChainResponse>, noId: ChainResponse) =>
    async ({ params: { id, field = "" }, request }: Asked) =>
      heldResponse(pathParameters.transactionId.is(id) ? await ask(id, composingOf(request), field) : noId, request);

  const field = async (id: Id, composing: Composing, name: string) =>
    pathParameters.field.is(name) ? await transactions.field(id, name, composing) : nodeTexts.invalidField;
  const status = (id: Id, { signal }: Composing) => transactions.status(id, signal);
  const offset = (id: Id, { signal }: Composing) => transactions.offset(id, signal);
  return new Elysia({ strictPath: true })
    .get(
      "/tx/pending",
      async ({ request }) => heldResponse(await transactions.pending(request.signal), request),
      readHook(
        "Transactions",
        "Transactions that wait for a block",
        json("Their ids.", { type: "array", items: idSchema }),
      ),
    )
    .get(
      "/tx/:id",
      about(transactions.record, nodeTexts.invalidHash),
      transactionRead("A transaction", json("The transaction.", ref("Transaction"))),
    )
    .get(
      "/tx/:id/status",
      about(status, nodeTexts.invalidAddress),
      transactionRead(
        "The block of a transaction",
        json("The block, and the number of confirmations.", ref("TransactionStatus")),
      ),
    )
    .get(
      "/tx/:id/offset",
      about(offset, nodeTexts.invalidOffsetId),
      transactionRead(
        "Offset of a transaction's data in the weave",
        json("Its size, and the offset of its last byte in the weave.", ref("TransactionOffset")),
      ),
    )
    .get(
      "/tx/:id/:field",
      about(field, nodeTexts.invalidHash),
      transactionRead(
        "One field of a transaction",
        {
          description: "The field: bare text, tags as JSON, data in its own content type.",
          content: { "*/*": { schema: textSchema } },
        },
        pathParameters.field,
      ),
    )
    .get(
      "/unconfirmed_tx/:id",
      about(transactions.unconfirmed, nodeTexts.invalidHash),
      transactionRead("A transaction, also while it waits for a block", json("The transaction.", ref("Transaction"))),
    );
}

function walletRoutes({ relay }: ChainRoutesOptions): AnyElysia {
  const wallet = async (address: string, question: "balance" | "last_tx", signal: AbortSignal) => {
    if (!pathParameters.address.is(address)) return chainResponse(nodeTexts.invalidAddress);
    const shape = question === "balance" ? relayedShapes.amount : relayedShapes.idOrNothing;
    return bareText(relayed(await relay.get(`/wallet/${address}/${question}`, retentionMs.wallet, signal, shape)));
  };
  const price = async (size: string, target: string, signal: AbortSignal) => {
    if (!pathParameters.size.is(size)) return chainResponse(nodeTexts.sizeNotInteger);
    // The specification writes the parameter's name in place of the address; the word itself asks for no
    // address.
    const to = target === "target" ? "" : target;
    if (to !== "" && !pathParameters.target.is(to)) return chainResponse(nodeTexts.invalidAddress);
    const path = `/price/${size}${to === "" ? "" : `/${to}`}`;
    return bareText(relayed(await relay.get(path, retentionMs.price, signal, relayedShapes.amount)));
  };
  return new Elysia({ strictPath: true })
    .get(
      "/wallet/:address/balance",
      ({ params, request }) => wallet(params.address, "balance", request.signal),
      readHook("Wallets", "Balance of a wallet", text("Winston.", digits), [pathParameters.address]),
    )
    .get(
      "/wallet/:address/last_tx",
      ({ params, request }) => wallet(params.address, "last_tx", request.signal),
      readHook("Wallets", "The newest transaction of a wallet", text("Its id; empty for a wallet without one."), [
        pathParameters.address,
      ]),
    )
    .get(
      "/price/:size",
      ({ params, request }) => price(params.size, "", request.signal),
      readHook("Prices", "Price of storage", text("Winston.", digits), [pathParameters.size]),
    )
    .get(
      "/price/:size/:target",
      ({ params, request }) => price(params.size, params.target, request.signal),
      readHook("Prices", "Price of storage and of a transfer", text("Winston.", digits), [
        pathParameters.size,
        pathParameters.target,
      ]),
    );
}

function postingRoutes({ broadcast }: ChainRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true })
    .post(
      "/tx",
      async ({ request }) => {
        const body = await readBody(request, limits.transactionBytesMax);
        const accept = acceptsOnlyJson(request) ? "application/json" : undefined;
        return chainResponse(await broadcast.transaction(body, request.signal, accept));
      },
      {
        parse: "none",
        detail: described(
          chainPost("Transactions", "Post a transaction to the chain", "Transaction", sampleTransaction),
        ),
      },
    )
    .post(
      "/chunk",
      async ({ request }) =>
        chainResponse(await broadcast.chunk(await readBody(request, limits.chunkBytesMax), request.signal)),
      {
        parse: "none",
        detail: described(chainPost("Chunks", "Post a chunk to the chain", "PostedChunk", sampleChunk)),
      },
    );
}

/** Amounts and ids are text also where they look like JSON. */
function bareText(reply: ChainResponse): Response {
  return chainResponse(reply.status === 200 ? { ...reply, form: "text" } : reply);
}
