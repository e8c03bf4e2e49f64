/**
 * Transactions with their status, place, fields and data, from the index or else from nodes.
 *
 * The index serves only transactions of blocks: nodes do not have data items, and the mempool is read from nodes.
 * Source: docs/reference/node-api.md#routes; docs/reference/relayed-routes.md.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { readTransaction } from "../arweave/transaction.ts";
import type { Content } from "../content/content.ts";
import type { Composing } from "../lib/event-loop.ts";
import { isJsonObject, readJson, writeJson } from "../lib/json.ts";
import { type IndexReader, stableDepth } from "../store/index/index-types.ts";
import { type ChainResponse, jsonOf, nodeTexts, relayed, textResponseOf } from "./chain-response.ts";
import { encodedBody } from "./encoded-data.ts";
import type { Relay, RelayCheck, RelayResponse } from "./relay.ts";
import type { RelayGuard } from "./relayed-block-list.ts";
import type { CheckRelayed } from "./relayed-check.ts";
import { relayedShapes } from "./relayed-formats.ts";

export type Transactions = Readonly<{
  record: (id: Id, composing: Composing) => Promise<ChainResponse>;
  unconfirmed: (id: Id, composing: Composing) => Promise<ChainResponse>;
  status: (id: Id, signal: AbortSignal) => Promise<ChainResponse>;
  offset: (id: Id, signal: AbortSignal) => Promise<ChainResponse>;
  /** @param field - Its name; "data" returns the data. */
  field: (id: Id, field: string, composing: Composing) => Promise<ChainResponse>;
  pending: (signal: AbortSignal) => Promise<ChainResponse>;
}>;

export type TransactionsOptions = Readonly<{
  reader: Pick<IndexReader, "transactionRecord" | "transactionStatus" | "weaveSpan">;
  content: Pick<Content, "open">;
  relay: Relay;
  relayedData: RelayGuard;
  /** Runs `checkRelayed` (workers/verify.ts) in a thread. */
  checkRelayed: CheckRelayed;
}>;

/** Largest data that `/tx/{id}/data` returns, as on a node. Bytes. */
const dataSizeMax = 12 * 2 ** 20;

/** Time to live of a node's response that may change soon. Milliseconds. */
const retentionMs = 500;

export function createTransactions(options: TransactionsOptions): Transactions {
  const { reader, content } = options;
  const { ask, askRecord, askData, askField } = createAsking(options);

  /**
   * The node's own JSON with its data; `undefined` for a transaction in no followed block.
   */
  const indexed = async (id: Id, composing: Composing): Promise<ChainResponse | undefined> => {
    const stored = reader.transactionRecord(id);
    if (stored === undefined) return undefined;
    const { text, dataAt, confirmations } = stored;
    if (dataAt === null) return jsonOf(text, 200, confirmations > stableDepth);
    const data = await content.open(id, composing.signal);
    return jsonOf(await encodedBody(text.slice(0, dataAt), data, text.slice(dataAt), composing));
  };

  const data = async (id: Id, composing: Composing): Promise<ChainResponse> => {
    if (reader.transactionStatus(id) === undefined) return await askData(id, composing);
    const found = await content.open(id, composing.signal);
    if (found.size > dataSizeMax) return nodeTexts.dataTooBig;
    return textResponseOf(200, await encodedBody("", found, "", composing));
  };

  return {
    record: async (id, composing) => {
      return (await indexed(id, composing)) ?? (await askRecord("tx", id, composing.signal));
    },
    unconfirmed: async (id, composing) => {
      return (await indexed(id, composing)) ?? (await askRecord("unconfirmed_tx", id, composing.signal));
    },
    status: async (id, signal) => {
      const status = reader.transactionStatus(id);
      if (status === undefined) return await ask(`/tx/${id}/status`, relayedShapes.status, signal);
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
      if (span === undefined) return await ask(`/tx/${id}/offset`, relayedShapes.offset, signal);
      // The offset in the API counts from one: it is that of the last byte.
      return jsonOf(writeJson({ size: (span.end - span.start).toString(), offset: span.end.toString() }));
    },
    field: async (id, field, composing) => {
      if (field === "data") return await data(id, composing);
      const stored = reader.transactionRecord(id);
      return stored === undefined ? await askField(id, field, composing) : fieldOf(stored.text, field);
    },
    pending: async (signal) => await ask("/tx/pending", relayedShapes.ids, signal),
  };
}

/** Requests a transaction in no followed block from nodes, and verifies the response as far as possible. */
function createAsking({ relay, relayedData, checkRelayed }: TransactionsOptions) {
  const ask = async (path: string, shape: RelayCheck, signal: AbortSignal) =>
    relayed(await relay.get(path, retentionMs, signal, shape));

  /** A node's transaction with a verified id and signature. */
  const relayRecord = (route: string, id: Id, signal: AbortSignal): Promise<RelayResponse> =>
    relay.get(`/${route}/${id}`, retentionMs, signal, (body, own) =>
      checkRelayed({ kind: "transaction", id, body }, own),
    );

  /** The same, unless it would contain blocked data. */
  const askRecord = async (route: string, id: Id, signal: AbortSignal): Promise<ChainResponse> => {
    relayedData.checkId(id);
    const response = await relayRecord(route, id, signal);
    relayedData.checkRecord(id, response);
    return relayed(response);
  };

  /** The data that a record's signature covers; for a transaction in no block, as the node sent it. */
  const askData = async (id: Id, { signal, hold }: Composing): Promise<ChainResponse> => {
    relayedData.checkId(id);
    const response = await relayRecord("tx", id, signal);
    if (response.status !== 200) return relayed(response);
    await hold(response.body.byteLength); // each request has its own text
    const { format, data, dataRoot, dataSize } = readTransaction(textOf(response));
    if (dataSize > dataSizeMax) return nodeTexts.dataTooBig;
    if (format === 1 || dataSize === 0) {
      relayedData.checkRecord(id, response);
      return textResponseOf(200, data);
    }
    const found = await relay.get(`/tx/${id}/data`, retentionMs, signal, (body, own) =>
      checkRelayed({ kind: "data", dataRoot, dataSize, body }, own),
    );
    relayedData.checkData(id, found);
    return found.status === 200 ? textResponseOf(200, found.body) : relayed(found);
  };

  const askField = async (id: Id, field: string, { signal, hold }: Composing): Promise<ChainResponse> => {
    const response = await relayRecord("tx", id, signal);
    if (response.status !== 200) return relayed(response);
    await hold(response.body.byteLength); // as above
    return fieldOf(textOf(response), field);
  };

  return { ask, askRecord, askData, askField };
}

function textOf({ body }: RelayResponse): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
}

/** One field of a transaction's JSON: tags as JSON, everything else as bare text. */
function fieldOf(text: string, field: string): ChainResponse {
  const record = readJson(text);
  const value = isJsonObject(record) && Object.hasOwn(record, field) ? record[field] : undefined;
  if (value === undefined) return nodeTexts.invalidField;
  if (typeof value === "object" && value !== null) return jsonOf(writeJson(value));
  return textResponseOf(200, typeof value === "string" ? value : writeJson(value));
}
