/**
 * Payments on the native chain, from the index, else from nodes.
 *
 * This process verified the index, block by block. A node's response counts only where the index cannot have data yet,
 * and never against the index. Unreported payments are found in the index, by their recipient.
 * Source: docs/reference/payment.md#sources-of-payments; docs/reference/node-api.md#routes.
 * @module
 */
import { type Id, isId } from "../../../arweave/id.ts";
import { type Tag, tagValue } from "../../../arweave/tags.ts";
import { readTransaction, type Transaction, verifyTransaction } from "../../../arweave/transaction.ts";
import type { Node, NodeResponse } from "../../../chain/node.ts";
import type { Nodes } from "../../../chain/nodes.ts";
import { Failure } from "../../../failures.ts";
import { type Clock, unixSeconds } from "../../../lib/clock.ts";
import { type Fault, fault } from "../../../lib/http-client.ts";
import { isJsonObject, readJson, writeJson } from "../../../lib/json.ts";
import { type IndexReader, noColumns } from "../../../store/index/index-types.ts";
import { readAddress } from "../../addresses.ts";
import {
  beginningOf,
  destinationTag,
  type Found,
  type MinedObservation,
  type Observation,
  type TokenChain,
  type TransferStatus,
} from "../token-chain.ts";

export type NativeChainOptions = Readonly<{
  /** Canonical. */
  address: string;
  confirmations: number;
  finalConfirmations: number;
  reader: Pick<IndexReader, "block" | "page" | "row" | "tip" | "transactionStatus">;
  nodes: Pick<Nodes, "all" | "ask">;
  /** The index's own. */
  clock: Clock;
}>;

/** Payments are small; larger transactions are read from the index later. Bytes. */
const jsonBytesMax = 256 * 1_024;

/** Payments found in one step: more than the transactions of a block, so that each step passes a block. */
const foundMax = 1_001;

/** Blocks below the mark in which a transaction may still appear, after a late source or a reorg. */
const lateBlocks = 50;

/** Seconds by which the index's time of a row may be early. */
const slackSeconds = 5;

const base64urlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** The content of a payment. */
type Statement = Readonly<{
  ownerAddress: string;
  target: string;
  quantity: bigint;
  tags: readonly Tag[];
}>;

export function createNativeChain(options: NativeChainOptions): TokenChain {
  const { address, reader, nodes } = options;
  return {
    token: "native",
    addressType: "native",
    address,
    confirmations: options.confirmations,
    finalConfirmations: options.finalConfirmations,
    look: async (text, signal) => {
      const id = isId(text) ? text : undefined;
      if (id === undefined) return { kind: "absent" };
      return indexedObservation(reader, id, address) ?? (await requestedObservation(options, id, signal));
    },
    status: async (block, signal) => {
      const tip = reader.tip();
      if (tip === undefined || tip.height < block.height) return { kind: "unknown" };
      const stored = reader.block(block.height)?.hash ?? (await askHash(nodes, block.height, signal));
      if (typeof stored !== "string") return stored;
      const confirmations = tip.height - block.height + 1;
      return { kind: stored === block.hash ? "unchanged" : "replaced", confirmations };
    },
    scan: async (cursor, signal) => {
      signal.throwIfAborted();
      const height = await chainHeight(options, readMark(cursor), signal);
      return typeof height === "object" ? height : scanIndex(options, height, readMark(cursor));
    },
    beginsAt: beginningOf,
  };
}

function indexedObservation(reader: NativeChainOptions["reader"], id: Id, address: string): Observation | undefined {
  const row = reader.row(id);
  if (row?.kind !== "transaction") return undefined;
  const status = reader.transactionStatus(id);
  if (status === undefined) return row.block === undefined ? { kind: "waiting", ...paidBy(row, address) } : undefined;
  const block = { height: status.height, hash: status.hash };
  return {
    kind: "mined",
    block,
    ...carriedOut,
    confirmations: status.confirmations,
    ...paidBy(row, address),
  };
}

/** Blocks of the native chain contain only successful transactions. */
const carriedOut = { succeeded: true } as const;

function paidBy(
  { ownerAddress, target, quantity, tags }: Statement,
  address: string,
): Pick<MinedObservation, "transfers" | "outline"> {
  const outline = { target, amount: quantity };
  const sender = readAddress(ownerAddress, "native")?.address;
  if (!addressSpellings(address).includes(target) || sender === undefined) return { transfers: [], outline };
  return {
    transfers: [{ sender, amount: quantity, destination: tagValue(tags, destinationTag) }],
    outline,
  };
}

/**
 * Every base64url text with the bytes of an address. The chain pays to bytes, and nodes may spell the last character
 * differently.
 */
function addressSpellings(address: string): readonly string[] {
  const bytes = Buffer.from(address, "base64url");
  const head = address.slice(0, -1);
  return [...base64urlAlphabet]
    .map((last) => `${head}${last}`)
    .filter((text) => bytes.equals(Buffer.from(text, "base64url")));
}

async function requestedObservation(
  { reader, nodes, address }: NativeChainOptions,
  id: Id,
  signal: AbortSignal,
): Promise<Observation | Fault> {
  const asked = await nodes.ask((node, own) => askTransaction(node, id, own), signal);
  if (asked.kind === "fault") return asked;
  if (asked.kind !== "ok") return { kind: "absent" };
  const payment = paidBy(asked.value, address);
  const status = await askOwn(nodes, (node, own) => node.txStatus(id, own), signal);
  if (status.kind === "fault") return status;
  if (status.kind !== "ok") return { kind: "waiting", ...payment };
  const { height, blockHash: hash, confirmations } = status.value;
  const stored = reader.block(height);
  if (stored !== undefined && stored.hash !== hash) return { kind: "waiting", ...payment };
  return { kind: "mined", block: { height, hash }, ...carriedOut, confirmations, ...payment };
}

async function askTransaction(node: Node, id: Id, signal: AbortSignal): Promise<NodeResponse<Transaction>> {
  const response = await node.relay(
    { method: "GET", path: `/unconfirmed_tx/${id}`, bodyBytesMax: jsonBytesMax },
    signal,
  );
  if (response.kind === "fault") return response;
  const { status, body } = response.value;
  if (status === 202) return { kind: "pending" };
  if (status === 400 || status === 404 || status === 410) return { kind: "absent" };
  if (status !== 200) return fault("status", `status ${status}`, status);
  return readProven(new TextDecoder().decode(body), id);
}

function readProven(text: string, id: Id): NodeResponse<Transaction> {
  try {
    const transaction = readTransaction(text);
    if (transaction.id !== id) return fault("wrong", "the response has another transaction");
    const verdict = verifyTransaction(transaction);
    return verdict.valid ? { kind: "ok", value: transaction } : fault("wrong", verdict.reason);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return fault("malformed", String(error.context["reason"]));
  }
}

async function askHash(
  nodes: NativeChainOptions["nodes"],
  height: number,
  signal: AbortSignal,
): Promise<string | Fault | Extract<TransferStatus, { kind: "unknown" }>> {
  const response = await askOwn(nodes, (node, own) => node.blockText(height, own), signal);
  if (response.kind === "fault") return response;
  const block = response.kind === "ok" ? readJson(response.value) : undefined;
  const hash = isJsonObject(block) ? block["indep_hash"] : undefined;
  return typeof hash === "string" ? hash : { kind: "unknown" };
}

/** Requests from the operator's nodes: a response cannot prove that its block is on the chain. */
function askOwn<Value>(
  nodes: NativeChainOptions["nodes"],
  call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
  signal: AbortSignal,
): Promise<NodeResponse<Value>> {
  return nodes.ask(call, signal, undefined, (node) => nodes.all.includes(node));
}

/** The cursor of the scan through the index. */
type Mark = Readonly<{
  /** Blocks below are not scanned: they precede the first accepted payment. */
  from: number;
  /** The last scanned block. */
  height: number;
  /** Time of the scan, Unix seconds. */
  at: number;
}>;

function readMark(cursor: string | undefined): Mark | undefined {
  const mark = cursor === undefined ? undefined : readJson(cursor);
  if (!isJsonObject(mark)) return undefined;
  const { from, height, at } = mark;
  return typeof from === "number" && typeof height === "number" && typeof at === "number"
    ? { from, height, at }
    : undefined;
}

/**
 * The height of the chain, which may be far above the index: payments that are indexed while it catches up are not
 * credited, and a chain below the start of the scan is another chain.
 *
 * @returns `undefined` without a tip.
 */
async function chainHeight(
  { reader, nodes }: NativeChainOptions,
  mark: Mark | undefined,
  signal: AbortSignal,
): Promise<number | Fault | undefined> {
  const tipHeight = reader.tip()?.height;
  if (tipHeight === undefined || (mark !== undefined && tipHeight >= mark.from - 1)) return tipHeight;
  const asked = await askOwn(nodes, (node, own) => node.height(own), signal);
  if (asked.kind === "fault") return asked;
  return asked.kind === "ok" ? Math.max(asked.value, tipHeight) : tipHeight;
}

function scanIndex(options: NativeChainOptions, chainTip: number | undefined, mark: Mark | undefined): Found {
  const { reader, address, confirmations, clock } = options;
  const at = unixSeconds(clock);
  const tipHeight = reader.tip()?.height;
  // Without a tip the scan cannot begin.
  if (tipHeight === undefined || chainTip === undefined)
    return { kind: "found", ids: [], cursor: writeJson(mark ?? {}), hasMore: false };
  if (mark === undefined) return found([], { from: chainTip + 1, height: tipHeight, at }, false);

  const recipients = addressSpellings(address);
  const plan = { recipients, bundledIn: null, order: "asc", limit: foundMax, columns: noColumns } as const;
  const confirmed = tipHeight - confirmations + 1;
  // On a chain below the start of the scan everything is new.
  const from = Math.min(mark.from, chainTip + 1);
  const fresh = reader.page({ ...plan, block: { min: Math.max(mark.height + 1, from), max: confirmed } });
  const late = reader.page({
    ...plan,
    block: { min: Math.max(mark.height - lateBlocks, from), max: Math.min(mark.height, confirmed) },
    ingestedAt: { min: mark.at - slackSeconds },
  });
  const ids = [...new Set([...late.rows, ...fresh.rows].map((row) => row.id))];
  // The last block of a page may have more payments.
  const reached = fresh.hasNextPage ? (fresh.rows.at(-1)?.place.height ?? 0) - 1 : confirmed;
  return found(ids, { from, height: reached, at }, fresh.hasNextPage);
}

function found(ids: readonly string[], mark: Mark, hasMore: boolean): Found {
  return { kind: "found", ids, cursor: writeJson(mark), hasMore };
}
