/**
 * Node API routes for transactions and their data.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware (handle_get_tx and the clauses of "tx"), ar_http_util.
 * @module
 */
import { Elysia } from "elysia";
import { tagValue } from "../../arweave/tags.ts";
import { readTransactionHeader } from "../../arweave/transaction.ts";
import { withCharset } from "../../http/header-values.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import type { MinedTransaction } from "../devnet/chain-history.ts";
import { joinData, writeData } from "../devnet/chunk-store.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { nodeBytes, nodeEmpty, nodeError, nodeJson, nodeText } from "./node-responses.ts";

/** Most data that a node serves in one response. */
const servedDataMax = 12 * 2 ** 20;

/** Content types that a header can carry. */
const contentTypePattern = /^[\x20-\x7e]{1,255}$/;

/** Routes of transactions. */
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

/** A root path is a transaction's data when it begins with 43 characters of an id; an extension may follow. */
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
  // Nothing that is stored on the chain may act on the chain's controls, which share this origin.
  const guards = { "Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff" };
  return nodeBytes(await joinData(chunks, size), withCharset(contentType), guards);
}

function missingPage(): Response {
  const page = "<!doctype html><title>Not found</title><p>This data is not here.</p>\n";
  return new Response(page, {
    status: 404,
    headers: { "Content-Type": "text/html; charset=utf-8", "Access-Control-Allow-Origin": "*" },
  });
}

/** Whether a text can be decoded at all; what it names is another question. */
function isHash(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text) && text.length % 4 !== 1;
}
