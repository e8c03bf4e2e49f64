/**
 * Transactions, their status, place, fields and data: from the index where it has them, else from nodes.
 *
 * Only transactions of blocks are here: a data item is none on a node either, and what waits in the mempool
 * is a node's to tell.
 * Source: reference/chain.md §1; contract.md §3.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Content } from "../content/content.ts";
import { isJsonObject, readJson, writeJson } from "../lib/json.ts";
import type { IndexReader } from "../store/index/types.ts";
import { type ChainAnswer, jsonOf, nodeTexts, relayed, textAnswerOf } from "./chain-answer.ts";
import { encodedBody } from "./encoded-data.ts";
import type { Relay } from "./relay.ts";
import type { RelayedData } from "./relayed-data.ts";

/** Transactions in a node's words. */
export type Transactions = Readonly<{
  record: (id: Id, signal: AbortSignal) => Promise<ChainAnswer>;
  unconfirmed: (id: Id, signal: AbortSignal) => Promise<ChainAnswer>;
  status: (id: Id, signal: AbortSignal) => Promise<ChainAnswer>;
  offset: (id: Id, signal: AbortSignal) => Promise<ChainAnswer>;
  /** @param field - Its name; "data" gives the data. */
  field: (id: Id, field: string, signal: AbortSignal) => Promise<ChainAnswer>;
  data: (id: Id, signal: AbortSignal) => Promise<ChainAnswer>;
  pending: (signal: AbortSignal) => Promise<ChainAnswer>;
}>;

/** What transactions are read from. */
export type TransactionsOptions = Readonly<{
  reader: Pick<IndexReader, "transactionStatus" | "transactionText" | "weaveSpan">;
  content: Pick<Content, "open">;
  relay: Relay;
  relayedData: RelayedData;
}>;

/** Largest data that `/tx/{id}/data` gives, as a node does. Bytes. */
const dataSizeMax = 12 * 2 ** 20;

/** How long a node's answer about something that can change soon is given again. Milliseconds. */
const keptMs = 500;

/** Creates the reader of transactions. */
export function createTransactions(options: TransactionsOptions): Transactions {
  const { reader, content, relay, relayedData } = options;
  const ask = async (path: string, signal: AbortSignal) => relayed(await relay.get(path, keptMs, signal));

  /** A transaction as a node has it, unless it would carry what is refused. */
  const askRecord = async (route: string, id: Id, signal: AbortSignal): Promise<ChainAnswer> => {
    relayedData.checkId(id);
    const answer = await relay.get(`/${route}/${id}`, keptMs, signal);
    relayedData.checkRecord(id, answer);
    return relayed(answer);
  };

  const askData = async (id: Id, signal: AbortSignal): Promise<ChainAnswer> => {
    relayedData.checkId(id);
    const answer = await relay.get(`/tx/${id}/data`, keptMs, signal);
    relayedData.checkData(id, answer);
    return relayed(answer);
  };

  /**
   * The JSON as the node wrote it, its data put back; `undefined` for what is in no block that was followed.
   */
  const indexed = async (id: Id, signal: AbortSignal): Promise<ChainAnswer | undefined> => {
    if (reader.transactionStatus(id) === undefined) return undefined;
    const stored = reader.transactionText(id);
    if (stored === undefined) return undefined;
    const { text, dataAt } = stored;
    if (dataAt === null) return jsonOf(text);
    const data = await content.open(id, signal);
    return jsonOf(await encodedBody(text.slice(0, dataAt), data, text.slice(dataAt), signal));
  };

  const data = async (id: Id, signal: AbortSignal): Promise<ChainAnswer> => {
    if (reader.transactionStatus(id) === undefined) return await askData(id, signal);
    const found = await content.open(id, signal);
    if (found.size > dataSizeMax) return nodeTexts.dataTooBig;
    return textAnswerOf(200, await encodedBody("", found, "", signal));
  };

  return {
    record: async (id, signal) => {
      return (await indexed(id, signal)) ?? (await askRecord("tx", id, signal));
    },
    unconfirmed: async (id, signal) => {
      return (await indexed(id, signal)) ?? (await askRecord("unconfirmed_tx", id, signal));
    },
    status: async (id, signal) => {
      const status = reader.transactionStatus(id);
      if (status === undefined) return await ask(`/tx/${id}/status`, signal);
      return jsonOf(
        writeJson({
          block_height: status.height,
          block_indep_hash: status.hash,
          number_of_confirmations: status.confirmations,
        }),
      );
    },
    offset: async (id, signal) => {
      const span = reader.weaveSpan(id);
      if (span === undefined) return await ask(`/tx/${id}/offset`, signal);
      // The wire's offset counts from one: it is that of the last byte.
      return jsonOf(writeJson({ size: (span.end - span.start).toString(), offset: span.end.toString() }));
    },
    field: async (id, field, signal) => {
      if (field === "data") return await data(id, signal);
      const stored = reader.transactionStatus(id) === undefined ? undefined : reader.transactionText(id);
      return stored === undefined ? await ask(`/tx/${id}/${field}`, signal) : fieldOf(stored.text, field);
    },
    data,
    pending: async (signal) => await ask("/tx/pending", signal),
  };
}

/** One field of a transaction's JSON: tags as JSON, everything else as bare text. */
function fieldOf(text: string, field: string): ChainAnswer {
  const record = readJson(text);
  const value = isJsonObject(record) && Object.hasOwn(record, field) ? record[field] : undefined;
  if (value === undefined) return nodeTexts.invalidField;
  if (typeof value === "object" && value !== null) return jsonOf(writeJson(value));
  return textAnswerOf(200, typeof value === "string" ? value : writeJson(value));
}
