/**
 * Payments in KYVE.
 *
 * Blocks are final at once, so a credited payment is not watched. Unreported payments are found by the node's index of
 * recipients. The index follows blocks with a delay, so the newest heights are searched again.
 * Source: docs/decisions/074-token-payments.md.
 * @module
 */
import { type Fault, fault, type HttpTimeouts, openHttp } from "../../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson, writeJson } from "../../../lib/json.ts";
import { readCount } from "../../../store/ledger/ledger-database.ts";
import { readAddress, type UserAddress } from "../../addresses.ts";
import type { Asked } from "../../evm/json-rpc.ts";
import {
  beginningOf,
  bySender,
  type Depths,
  destinationInText,
  type Found,
  listOf,
  type MinedObservation,
  type Observation,
  type Outline,
  objectOf,
  type TokenChain,
  textOf,
} from "../token-chain.ts";

type KyveChainOptions = Depths &
  Readonly<{
    address: UserAddress;
    /** Name of the coin's smallest unit. */
    denom: string;
    server: KyveServer;
  }>;

/** Heights searched again: a node's index is some blocks behind, and one of several nodes may be further behind. */
const blocksRepeated = 32;

/** Heights searched in one step. */
const blocksSearchedMax = 50_000;

export function createKyveChain({ address, denom, server, ...depths }: KyveChainOptions): TokenChain {
  return {
    token: "kyve",
    addressType: "kyve",
    address,
    ...depths,
    look: (id, signal) => look(server, { address, denom }, id, signal),
    // Final blocks are not replaced.
    status: () => Promise.resolve({ kind: "unchanged", confirmations: depths.finalConfirmations }),
    beginsAt: beginningOf,
    scan: (cursor, signal) => scan(server, address, cursor, signal),
  };
}

async function look(
  server: KyveServer,
  { address, denom }: Pick<KyveChainOptions, "address" | "denom">,
  id: string,
  signal: AbortSignal,
): Promise<Observation | Fault> {
  const found = await server.transaction(id, signal);
  if (found.kind === "fault") return found;
  if (found.value === undefined) return { kind: "absent" };
  const latest = await server.height(signal);
  if (latest.kind === "fault") return latest;
  const { height, succeeded } = found.value;
  return {
    kind: "mined",
    block: { height, hash: "" },
    // The next of several nodes behind an address may be behind.
    confirmations: Math.max(latest.value - height + 1, 1),
    succeeded,
    ...kyvePaid(found.value, address, denom),
  };
}

/** Heights up to `height` are done. `page`, if present, is the next page of the heights up to `last`. */
type Mark = Readonly<{ from: number; height: number; last?: number; page?: number }>;

async function scan(
  server: KyveServer,
  recipient: UserAddress,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const latest = await server.height(signal);
  if (latest.kind === "fault") return latest;
  const mark = readMark(cursor);
  if (cursor === undefined || mark === undefined) {
    const begun: Mark = { from: latest.value + 1, height: latest.value };
    return { kind: "found", ids: [], cursor: writeJson(begun), hasMore: false };
  }
  const { from, height, page = 1 } = mark;
  const last = mark.last ?? Math.min(latest.value, height + blocksSearchedMax);
  const first = Math.max(height + 1 - blocksRepeated, from);
  if (last < first) return { kind: "found", ids: [], cursor, hasMore: false };
  const found = await server.search({ recipient, first, last, page }, signal);
  if (found.kind === "fault") return found;
  const { ids, hasMore: hasPage } = found.value;
  const next: Mark = hasPage ? { from, height, last, page: page + 1 } : { from, height: Math.max(last, height) };
  return {
    kind: "found",
    ids: [...new Set(ids)],
    cursor: writeJson(next),
    hasMore: hasPage || last < latest.value,
  };
}

function readMark(cursor: string | undefined): Mark | undefined {
  const mark = cursor === undefined ? undefined : readJson(cursor);
  if (!isJsonObject(mark)) return undefined;
  const { from, height, last, page } = mark;
  if (typeof from !== "number" || typeof height !== "number") return undefined;
  return typeof last === "number" && typeof page === "number" ? { from, height, last, page } : { from, height };
}

// The REST API of a KYVE node: transactions by id, transactions that pay an address, and the newest height.
//
// No response is used before the node has proven its chain: coins of a test network look the same.
// Source: the Cosmos SDK's REST API (cosmos.tx.v1beta1, cosmos.base.tendermint.v1beta1).

/** One page of transactions that pay an address. */
type KyvePage = Readonly<{
  /** Ids of successful transactions. */
  ids: readonly string[];
  /** Whether another page follows. */
  hasMore: boolean;
}>;

/** Heights are inclusive; pages are counted from 1. */
type KyveSearch = Readonly<{ recipient: string; first: number; last: number; page: number }>;

/** A node. Calls reject only with the signal's reason. */
export type KyveServer = Readonly<{
  height: (signal: AbortSignal) => Promise<Asked<number>>;
  /** `undefined` for a transaction in no block. */
  transaction: (id: string, signal: AbortSignal) => Promise<Asked<KyveTransaction | undefined>>;
  /** The oldest transactions first. */
  search: (search: KyveSearch, signal: AbortSignal) => Promise<Asked<KyvePage>>;
  /** Aborts all running calls. */
  close: () => void;
}>;

/** Transactions of one page: nodes give at most 100, and a transaction may have many messages. */
const pageSize = 30;

const timeouts: HttpTimeouts = { firstByteMs: 10_000, stallMs: 5_000, totalMs: 20_000 };

/** KYVE's own transactions have some KiB; a page has at most `pageSize` of them. Bytes. */
const responseBytesMax = 8 * 2 ** 20;

/** gRPC's code `NOT_FOUND`. */
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
    if (reply.kind === "fault") return reply;
    return { kind: "response", status: reply.status, body: readJson(decoder.decode(reply.body)) };
  }

  async function ask<Value>(
    path: string,
    read: (response: Response) => Value | undefined,
    signal: AbortSignal,
  ): Promise<Asked<Value>> {
    const response = await get(path, signal);
    if (response.kind === "fault") return response;
    const value = read(response);
    if (value !== undefined) return { kind: "ok", value };
    const { status } = response;
    if (status !== 200) return fault("status", `${host}: status ${status}`, status);
    return fault("malformed", `${host}: invalid response`, status);
  }

  async function prove(signal: AbortSignal): Promise<Fault | undefined> {
    if (isProven) return undefined;
    const found = await ask("/cosmos/base/tendermint/v1beta1/node_info", readNetwork, signal);
    if (found.kind === "fault") return found;
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
      return found.kind === "fault" ? found : { kind: "ok", value: found.value.transaction };
    },
    search: (search, signal) =>
      askProven(`/cosmos/tx/v1beta1/txs?${queryOf(search)}`, (response) => readPage(response, search.page), signal),
    close: http.close,
  };
}

type Response = Readonly<{ kind: "response"; status: number; body: JsonValue | undefined }>;

/** Nodes from version 0.50 read `query`, earlier ones `events`; each ignores the other parameter. */
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
  // Since 0.47 a block is in `sdk_block`; `block` is still written.
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

/** A node rejects a page after the last one, so the total decides whether there is another. */
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

// A KYVE transaction from a node's REST API: the transfers of its messages, their senders, and its memo.
//
// Only the messages of the transaction itself count (`MsgSend`, and `MsgMultiSend` with one input). A transfer of a
// module or an authorization within another message is not a payment of the signer.
// Source: the Cosmos SDK's cosmos.bank.v1beta1 and cosmos.tx.v1beta1.

/** A transaction in a block. */
type KyveTransaction = Readonly<{
  /** Upper case. */
  id: string;
  height: number;
  succeeded: boolean;
  moves: readonly KyveMove[];
  memo: string;
}>;

/** Coins of one denomination from one account to another. */
type KyveMove = Readonly<{ from: string; to: string; denom: string; amount: bigint }>;

/** Messages of one transaction; a block's gas admits fewer. */
const messagesMax = 1_000;

/** Parses a transaction; `undefined` for an invalid one. */
function readKyveTransaction(tx: JsonValue | undefined, response: JsonValue | undefined): KyveTransaction | undefined {
  const { txhash, height: heightText, code } = objectOf(response);
  const { messages, memo } = objectOf(objectOf(tx)["body"]);
  const height = heightOf(heightText);
  if (typeof txhash !== "string" || height === undefined || typeof code !== "number") return undefined;
  if (!isJsonArray(messages) || messages.length > messagesMax) return undefined;
  return {
    id: txhash.toUpperCase(),
    height,
    succeeded: code === 0,
    moves: messages.flatMap(movesOf),
    memo: textOf(memo),
  };
}

/** Parses a height or a count, which are decimal text. */
function heightOf(value: JsonValue | undefined): number | undefined {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? readCount(BigInt(value)) : undefined;
}

/** The payments of a transaction to an address. @param denom - Name of the coin's smallest unit. */
function kyvePaid(
  { moves, memo }: KyveTransaction,
  address: UserAddress,
  denom: string,
): Pick<MinedObservation, "transfers" | "outline"> {
  const received = moves.filter((move) => move.denom === denom && accountOf(move.to) === address);
  const shown = received[0] ?? moves.find((move) => move.denom === denom);
  const outline: Outline = { target: shown?.to ?? "", amount: shown?.amount ?? 0n };
  const sent = received.flatMap(({ from, amount }) => {
    const sender = accountOf(from);
    return sender === undefined ? [] : { sender, amount };
  });
  return { transfers: bySender(sent, destinationInText(memo)), outline };
}

function accountOf(text: string): UserAddress | undefined {
  return readAddress(text, "kyve")?.address;
}

function movesOf(message: JsonValue): readonly KyveMove[] {
  const { "@type": type, from_address, to_address, amount, inputs, outputs } = objectOf(message);
  if (type === "/cosmos.bank.v1beta1.MsgSend") return coinsOf(textOf(from_address), textOf(to_address), amount);
  if (type !== "/cosmos.bank.v1beta1.MsgMultiSend") return [];
  const senders = listOf(inputs).map((input) => textOf(objectOf(input)["address"]));
  const [sender] = senders;
  if (sender === undefined || senders.length > 1) return [];
  return listOf(outputs).flatMap((output) => {
    const { address, coins } = objectOf(output);
    return coinsOf(sender, textOf(address), coins);
  });
}

function coinsOf(from: string, to: string, coins: JsonValue | undefined): readonly KyveMove[] {
  return listOf(coins).map((coin) => {
    const { denom, amount } = objectOf(coin);
    return { from, to, denom: textOf(denom), amount: amountOf(amount) };
  });
}

/** Amounts are decimal text of at most 256 bits. */
function amountOf(value: JsonValue | undefined): bigint {
  return typeof value === "string" && /^\d{1,78}$/.test(value) ? BigInt(value) : 0n;
}
