/**
 * The REST API of a KYVE node: transactions by id, transactions that pay an address, and the newest height.
 *
 * No response is used before the node has shown that it follows the expected chain: coins of a test network look like
 * any others.
 * Source: the Cosmos SDK's REST API (cosmos.tx.v1beta1, cosmos.base.tendermint.v1beta1).
 * @module
 */
import { type Fault, fault, type HttpTimeouts, openHttp } from "../../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../../../lib/json.ts";
import type { Asked } from "../../evm/json-rpc.ts";
import { heightOf, type KyveTransaction, readKyveTransaction } from "./kyve-transaction.ts";

/** One page of transactions that pay an address. */
export type KyvePage = Readonly<{
  /** Ids of transactions that the chain carried out. */
  ids: readonly string[];
  /** Whether another page follows. */
  hasMore: boolean;
}>;

/** Heights are inclusive; pages are counted from 1. */
export type KyveSearch = Readonly<{ recipient: string; first: number; last: number; page: number }>;

/** A node. Calls reject with the signal's reason when aborted, with nothing else. */
export type KyveServer = Readonly<{
  height: (signal: AbortSignal) => Promise<Asked<number>>;
  /** `undefined` for a transaction in no block. */
  transaction: (id: string, signal: AbortSignal) => Promise<Asked<KyveTransaction | undefined>>;
  /** The oldest transactions first. */
  search: (search: KyveSearch, signal: AbortSignal) => Promise<Asked<KyvePage>>;
  /** Ends every call under way. */
  close: () => void;
}>;

/** Transactions of one page: nodes give at most 100, and a transaction may have many messages. */
const pageSize = 30;

const timeouts: HttpTimeouts = { firstByteMs: 10_000, stallMs: 5_000, totalMs: 20_000 };

/** KYVE's own transactions have some KiB; a page has at most `pageSize` of them. Bytes. */
const responseBytesMax = 8 * 2 ** 20;

/** gRPC's code for what is not there. */
const notFoundCode = 5;

const decoder = new TextDecoder();

/** Opens a client. @param url - Of the REST API. @param chainId - Name of the expected chain. */
export function openKyveServer(url: string, chainId: string): KyveServer {
  const http = openHttp(timeouts);
  const base = url.replace(/\/+$/, "");
  const { host } = new URL(url);
  let isProven = false;

  async function get(path: string, signal: AbortSignal): Promise<Response | Fault> {
    const headers = { accept: "application/json" };
    const reply = await http.whole({ method: "GET", url: `${base}${path}`, headers }, responseBytesMax, signal);
    if (reply.kind === "trouble") return reply;
    return { kind: "response", status: reply.status, body: readJson(decoder.decode(reply.body)) };
  }

  async function ask<Value>(
    path: string,
    read: (response: Response) => Value | undefined,
    signal: AbortSignal,
  ): Promise<Asked<Value>> {
    const response = await get(path, signal);
    if (response.kind === "trouble") return response;
    const value = read(response);
    if (value !== undefined) return { kind: "ok", value };
    const { status } = response;
    if (status !== 200) return fault("status", `${host}: status ${status}`, status);
    return fault("malformed", `${host}: the response cannot be read`, status);
  }

  async function prove(signal: AbortSignal): Promise<Fault | undefined> {
    if (isProven) return undefined;
    const found = await ask("/cosmos/base/tendermint/v1beta1/node_info", readNetwork, signal);
    if (found.kind === "trouble") return found;
    if (found.value !== chainId) return fault("wrong", `${host} follows the chain ${found.value}, expected ${chainId}`);
    isProven = true;
    return undefined;
  }

  const askProven: typeof ask = async (path, read, signal) => (await prove(signal)) ?? (await ask(path, read, signal));

  return {
    height: (signal) => askProven("/cosmos/base/tendermint/v1beta1/blocks/latest", readHeight, signal),
    transaction: async (id, signal) => {
      const read = (response: Response) => readTransactionOrNone(response, id);
      const found = await askProven(`/cosmos/tx/v1beta1/txs/${id}`, read, signal);
      return found.kind === "trouble" ? found : { kind: "ok", value: found.value.transaction };
    },
    search: (search, signal) =>
      askProven(`/cosmos/tx/v1beta1/txs?${queryOf(search)}`, (response) => readPage(response, search.page), signal),
    close: http.close,
  };
}

type Response = Readonly<{ kind: "response"; status: number; body: JsonValue | undefined }>;

/** Nodes from version 0.50 on read `query`, those before it `events`; each ignores the other one. */
function queryOf({ recipient, first, last, page }: KyveSearch): string {
  const conditions = [`transfer.recipient='${recipient}'`, `tx.height>=${first}`, `tx.height<=${last}`];
  const parameters = new URLSearchParams({ query: conditions.join(" AND ") });
  for (const condition of conditions) parameters.append("events", condition);
  parameters.append("order_by", "ORDER_BY_ASC");
  parameters.append("page", `${page}`);
  parameters.append("limit", `${pageSize}`);
  return parameters.toString();
}

function readNetwork({ body }: Response): string | undefined {
  const network = field(field(body, "default_node_info"), "network");
  return typeof network === "string" ? network : undefined;
}

function readHeight({ body }: Response): number | undefined {
  // Since 0.47 a block stands in `sdk_block`; `block` is still written.
  const block = field(body, "sdk_block") ?? field(body, "block");
  return heightOf(field(field(block, "header"), "height"));
}

function readTransactionOrNone(
  { status, body }: Response,
  id: string,
): Readonly<{ transaction: KyveTransaction | undefined }> | undefined {
  if (status === 404 && field(body, "code") === notFoundCode) return { transaction: undefined };
  const transaction = readKyveTransaction(field(body, "tx"), field(body, "tx_response"));
  return transaction?.id === id ? { transaction } : undefined;
}

/** A node refuses a page behind the last one, so the total decides whether there is another. */
function readPage({ body }: Response, page: number): KyvePage | undefined {
  const list = field(body, "tx_responses");
  if (!isJsonArray(list)) return undefined;
  const ids = list.filter((each) => field(each, "code") === 0).map((each) => field(each, "txhash"));
  const texts = ids.flatMap((id) => (typeof id === "string" && /^[0-9A-Fa-f]{64}$/.test(id) ? id.toUpperCase() : []));
  const total = heightOf(field(body, "total") ?? field(field(body, "pagination"), "total"));
  const hasMore = total === undefined ? list.length >= pageSize : page * pageSize < total;
  return texts.length === ids.length ? { ids: texts, hasMore } : undefined;
}

function field(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? value[name] : undefined;
}
