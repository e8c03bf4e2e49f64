/**
 * Node API routes that accept transactions and chunks.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware (handle_post_tx, handle_post_chunk).
 * @module
 */
import { Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { readBody } from "../../http/request-body.ts";
import { type ByteBudget, createByteBudget } from "../../lib/byte-budget.ts";
import type { Devnet } from "../devnet/devnet.ts";
import type { TransactionOutcome } from "../devnet/node-intake.ts";
import { nodeEmpty, nodeText, type Reason, rejection, rejectOtherNetwork } from "./node-responses.ts";

/** Maximum body of a transaction with its data. Bytes. */
const transactionBodyMax = 15 * 2 ** 20;

/** Maximum body of a chunk with its path. Bytes. */
const chunkBodyMax = 750_000;

/** Budget of concurrent bodies; each is in memory up to three times until its response is sent. Bytes. */
const bodiesBytesMax = 64 * 2 ** 20;

/** Maximum wait for memory: longer than a local transfer, shorter than the timeout of clients. Milliseconds. */
const bodyWaitMsMax = 3_000;

/** The runtime reads this much of a body ahead (docs/decisions/091-body-memory.md). Bytes. */
const aheadBytesMax = 2 * 2 ** 20;

const anchorTexts = {
  last_tx_in_mempool: "Invalid anchor (last_tx from mempool).",
  tx_bad_anchor: "Invalid anchor (last_tx).",
  tx_already_in_weave: "Transaction is already on the weave.",
  tx_already_in_mempool: "Transaction is already in the mempool.",
} as const;

const anchorDetails = {
  last_tx_in_mempool: "the anchor is a pending transaction; use a block as the anchor until it is mined",
  tx_bad_anchor: "the anchor is neither the wallet's last transaction nor one of the last 50 blocks",
  tx_already_in_weave: "one of the last 50 blocks has it",
  tx_already_in_mempool: "it is pending already",
} as const;

export function postRoutes(devnet: Devnet) {
  const bodies = createByteBudget({
    bytesMax: bodiesBytesMax,
    clientBytesMax: bodiesBytesMax,
    waitMsMax: bodyWaitMsMax,
  });
  return new Elysia()
    .onBeforeHandle(rejectOtherNetwork)
    .post("/tx", ({ request }) => postTransaction(devnet, request, bodies), { parse: "none" })
    .post("/chunk", ({ request }) => postChunk(devnet, request, bodies), { parse: "none" })
    .post("/peers", () => nodeEmpty(200), { parse: "none" })
    .post("/wallet", internalOnly, { parse: "none" })
    .post("/unsigned_tx", internalOnly, { parse: "none" });
}

async function postTransaction(devnet: Devnet, request: Request, bodies: ByteBudget): Promise<Response> {
  const announced = request.headers.get("arweave-tx-id");
  if (announced !== null && !/^[A-Za-z0-9_-]{1,43}$/.test(announced)) return nodeText("Invalid hash.", 400);
  if (announced !== null && devnet.isProcessed(announced)) return nodeText("Transaction already processed.", 208);
  return await responseBody(request, bodies, transactionBodyMax, async (text) =>
    transactionResponse(await devnet.postTransaction(text), request),
  );
}

function transactionResponse(outcome: TransactionOutcome, request: Request): Response {
  switch (outcome.kind) {
    case "accepted":
      return nodeText("OK");
    case "already_processed":
      return nodeText("Transaction already processed.", 208);
    case "invalid_hash":
      return rejection(request, "Invalid hash.", [{ code: outcome.kind, detail: "an id has 32 bytes" }]);
    case "invalid_json":
      return rejection(request, "Invalid JSON.", [{ code: outcome.kind, detail: outcome.reason }]);
    case "invalid_signature_type":
      return rejection(request, "Invalid signature type.", [{ code: outcome.kind, detail: outcome.reason }]);
    case "faulty":
      return rejection(request, "Transaction verification failed.", outcome.faults);
    case "bad_anchor":
      return rejection(request, anchorTexts[outcome.fault], [
        { code: outcome.fault, detail: anchorDetails[outcome.fault] },
      ]);
    case "unknown_split":
      return rejection(request, "The attached data is split in an unknown way.", [unknownSplit]);
    case "full":
      return rejection(request, "Mempool is full.", [{ code: outcome.kind, detail: "mine some blocks" }], 503);
  }
}

const unknownSplit: Reason = {
  code: "invalid_data_root_size",
  detail:
    "data_root or data_size is not that of the data split at every 256 KiB; " +
    "data of more than one chunk can be posted by POST /chunk",
};

async function postChunk(devnet: Devnet, request: Request, bodies: ByteBudget): Promise<Response> {
  return await responseBody(request, bodies, chunkBodyMax, (text) => {
    const outcome = devnet.postChunk(text);
    if (outcome.kind === "stored") return nodeEmpty(200);
    const { fault, reason } = outcome;
    return rejection(request, JSON.stringify({ error: fault }), [{ code: fault, detail: reason }]);
  });
}

/** Reads a body and responds, within the memory budget of all bodies; 503 when the budget stays in use. */
async function responseBody(
  request: Request,
  bodies: ByteBudget,
  bytesMax: number,
  response: (text: string) => Response | Promise<Response>,
): Promise<Response> {
  const announced = Number(request.headers.get("content-length") ?? bytesMax);
  if (announced > bytesMax) return nodeText("Payload too large", 413);
  // One budget for all clients: they are all on this machine.
  if (!(await bodies.takeSoon("", announced, Math.min(announced, aheadBytesMax), request.signal)))
    return nodeText("Too many bodies at once", 503, { "Retry-After": "1", Connection: "close" });
  try {
    const text = await bodyText(request, bytesMax);
    return text === undefined ? nodeText("Payload too large", 413) : await response(text);
  } finally {
    bodies.release("", announced);
  }
}

/** @returns `undefined` when the body is too large. */
async function bodyText(request: Request, bytesMax: number): Promise<string | undefined> {
  try {
    return Buffer.from((await readBody(request, bytesMax)).buffer).toString("latin1");
  } catch (error) {
    if (error instanceof Failure && error.code === "too_large") return undefined;
    throw error;
  }
}

function internalOnly(): Response {
  return nodeText("Internal API disabled or invalid internal API secret in request.", 421);
}
