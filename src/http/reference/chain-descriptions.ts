/**
 * What the API reference says of the chain's part: network, blocks, transactions, chunks, wallets, prices.
 * Source: docs/reference/node-api.md#routes.
 * @module
 */
import { pathParameters } from "../gateway/parameters.ts";
import {
  bytes,
  type Description,
  empty,
  idSchema,
  inHeader,
  json,
  type Parameter,
  patterns,
  type Responses,
  type Result,
  ref,
  refusals,
  type Schema,
  sampleId,
  sourceFault,
  text,
  textSchema,
} from "./words.ts";

/** Of the shape that nodes read; nodes refuse it, for nobody signed it. */
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

/** What a node says to a wrong or unknown question: bare text, or an object. */
function nodeSays(description: string): Result {
  return {
    description,
    content: { "text/plain": { schema: textSchema }, "application/json": { schema: ref("NodeError") } },
  };
}

/** What every question answers that a node may have to be asked. */
const asked: Responses = {
  400: nodeSays("The question is wrong; a node's own words."),
  404: nodeSays("`Not Found.`, `Block not found.`"),
  ...sourceFault,
};

function question(
  tag: string,
  path: string,
  summary: string,
  found: Result,
  parameters: readonly Parameter[] = [],
): Description {
  const responses = { 200: found, ...(parameters.length === 0 ? sourceFault : asked) };
  return { method: "GET", path, tag, summary, responses, ...(parameters.length === 0 ? {} : { parameters }) };
}

const block = json("The block, as a node words it.", ref("Block"));

const network: readonly Description[] = [
  question("Network", "/info", "State of the chain", json("The state.", ref("NodeStatus"))),
  question("Network", "/peers", "Nodes of the chain", {
    ...json("Addresses of nodes.", { type: "array", items: textSchema }),
  }),
  question("Network", "/height", "Height of the chain", text("The height.", digits)),
  question("Network", "/tx_anchor", "Anchor for a new transaction", text("The anchor.")),
];

const blocks: readonly Description[] = [
  question("Blocks", "/current_block", "The newest block", block),
  question("Blocks", "/block/current", "The newest block, under its other address", block),
  question("Blocks", "/block/height/:height", "The block at a height", block, [pathParameters.height]),
  question("Blocks", "/block/hash/:hash", "The block with a hash", block, [pathParameters.blockHash]),
];

const pendingToo = { 202: text("`Pending`: not in a block yet.") };

function ofTransaction(path: string, summary: string, found: Result): Description {
  const asksFor = question("Transactions", path, summary, found, [pathParameters.transactionId]);
  const refused = { 451: refusals("blocked")[451] ?? empty("Refused.") };
  return { ...asksFor, responses: { ...asksFor.responses, ...pendingToo, ...refused } };
}

const transactions: readonly Description[] = [
  question(
    "Transactions",
    "/tx/pending",
    "Transactions that wait for a block",
    json("Their ids.", { type: "array", items: idSchema }),
  ),
  ofTransaction("/tx/:id", "A transaction", json("The transaction.", ref("Transaction"))),
  ofTransaction(
    "/tx/:id/offset",
    "Where a transaction's data lies",
    json("Its size and its last byte's place in the weave.", ref("TransactionOffset")),
  ),
  ofTransaction(
    "/tx/:id/status",
    "Which block a transaction is in",
    json("The block, and how many follow.", ref("TransactionStatus")),
  ),
  {
    ...ofTransaction("/tx/:id/:field", "One field of a transaction", {
      description: "The field: bare text, tags as JSON, data in the type that its name says.",
      content: { "*/*": { schema: textSchema } },
    }),
    parameters: [pathParameters.transactionId, pathParameters.field],
  },
  ofTransaction("/unconfirmed_tx/:id", "A transaction, also while it waits for a block", {
    ...json("The transaction.", ref("Transaction")),
  }),
  posting("/tx", "Post a transaction to the chain", "Transaction", sampleTransaction),
];

const chunkResponses: Responses = {
  304: empty("`If-None-Match` names this chunk."),
  ...refusals("invalid_offset", "not_found", "blocked"),
  ...sourceFault,
};
const chunkParameters = [
  pathParameters.offset,
  inHeader("If-None-Match", textSchema, "Entity tag of a chunk that the client has."),
];

function ofChunk(method: "GET" | "HEAD", path: string, summary: string, found: Result): Description {
  return {
    method,
    path,
    tag: "Chunks",
    summary,
    parameters: chunkParameters,
    responses: { 200: found, ...chunkResponses },
  };
}

const chunks: readonly Description[] = [
  ofChunk("GET", "/chunk/:offset", "The chunk at an offset, with its proof", json("The chunk.", ref("Chunk"))),
  ofChunk("HEAD", "/chunk/:offset", "Whether there is a chunk at an offset", empty("There is.")),
  ofChunk("GET", "/chunk/:offset/data", "The chunk's bytes alone", bytes("The bytes; the proof is in headers.")),
  posting("/chunk", "Post a chunk to the chain", "PostedChunk", sampleChunk),
];

function posting(path: string, summary: string, schema: string, example: unknown): Description {
  const tag = path === "/tx" ? "Transactions" : "Chunks";
  return {
    method: "POST",
    path,
    tag,
    summary,
    description:
      "Sent to several nodes; the response is what most of them respond. `X-Reject-Reason` says why they refuse it, " +
      "where they say so; clients that accept only JSON get it as `reasons`.",
    body: { type: "application/json", schema: ref(schema), example },
    responses: {
      200: { ...nodeSays("Nodes took it."), description: "Nodes took it." },
      208: nodeSays("Nodes have it already."),
      400: nodeSays("Nodes refuse it."),
      ...refusals("too_large"),
      429: nodeSays("Nodes are asked too much."),
      ...sourceFault,
    },
  };
}

const { address, size, target } = pathParameters;

const money: readonly Description[] = [
  question("Wallets", "/wallet/:address/balance", "What a wallet holds", text("Winston.", digits), [address]),
  question(
    "Wallets",
    "/wallet/:address/last_tx",
    "A wallet's newest transaction",
    {
      ...text("Its id; nothing for a wallet that has none."),
    },
    [address],
  ),
  question("Prices", "/price/:size", "Price of storing", text("Winston.", digits), [size]),
  question("Prices", "/price/:size/:target", "Price of storing and of a transfer", text("Winston.", digits), [
    size,
    target,
  ]),
];

/** Every route of the chain. */
export const chainDescriptions: readonly Description[] = [...network, ...blocks, ...transactions, ...chunks, ...money];
