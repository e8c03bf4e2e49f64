/**
 * Accepts transactions and chunks from clients: validates them, and stores them before it acknowledges them.
 *
 * The JSON of a transaction is parsed as a node parses it, with the node's error codes. The data is cut out of a long
 * text before the rest is parsed, so that 15 MiB are never parsed as one JSON text.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware (post_tx_parse_id), ar_serialize (json_struct_to_tx).
 * @module
 */
import { SQLiteError } from "bun:sqlite";
import { checkChunk } from "../../arweave/chunk.ts";
import { readId } from "../../arweave/id.ts";
import { chunkSize, pathSizeMax } from "../../arweave/merkle.ts";
import {
  createSignatureCheck,
  isNamedByItsSignature,
  readTransactionHeader,
  type SignatureCheck,
  type Transaction,
} from "../../arweave/transaction.ts";
import { opensMoreThan } from "../../arweave/wire.ts";
import { Failure } from "../../failures.ts";
import { decodeBase64url, decodedSize, encodeBase64url } from "../../lib/base64url.ts";
import { readUnsigned } from "../../lib/bytes.ts";
import { yieldToEventLoop } from "../../lib/event-loop.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";
import {
  type AnchorFault,
  anchorFault,
  type Fault,
  type FaultCode,
  type Finding,
  inlineDataBytesMax,
  tagsBytesMax,
  tagsCountMax,
  transactionFaults,
} from "./chain-rules.ts";
import { type DataKey, type SplitData, type StoredChunk, splitData } from "./chunk-store.ts";
import { type ChainState, change, rulesView } from "./state.ts";

export type TransactionOutcome =
  | Readonly<{ kind: "accepted"; id: string }>
  | Readonly<{ kind: "already_processed" }>
  | Readonly<{ kind: "invalid_json"; reason: string }>
  | Readonly<{ kind: "invalid_hash" }>
  | Readonly<{ kind: "invalid_signature_type"; reason: string }>
  | Readonly<{ kind: "faulty"; faults: readonly Fault[] }>
  | Readonly<{ kind: "bad_anchor"; fault: AnchorFault }>
  | Readonly<{ kind: "unknown_split" }>
  | Readonly<{ kind: "full" }>;

/** The node's error codes of a posted chunk. */
export type ChunkFault =
  | "invalid_json"
  | "data_size_too_big"
  | "chunk_too_big"
  | "data_path_too_big"
  | "offset_field_required"
  | "offset_too_big"
  | "chunk_proof_ratio_not_attractive"
  | "data_root_not_found"
  | "invalid_proof"
  | "disk_full";

export type ChunkOutcome =
  | Readonly<{ kind: "stored" }>
  | Readonly<{ kind: "rejected"; fault: ChunkFault; reason: string }>;

/** An accepted transaction is not validated again for this time, as on a node. Milliseconds. */
const processedMs = 600_000;

/** Maximum number of remembered transactions. */
const processedCountMax = 100_000;

/** The largest offset of a data path. */
const noteMax = 2n ** 256n - 1n;

/** Validates posted transactions and chunks. */
export type Intake = Readonly<{
  /** Whether a transaction was accepted recently or is pending. */
  isProcessed: (id: string) => boolean;
  /** @param text - The body of the post. Never throws for invalid input. */
  takeTransaction: (text: string) => Promise<TransactionOutcome>;
  /** @param text - The body of the post. Never throws for invalid input. */
  takeChunk: (text: string) => ChunkOutcome;
  /** Forgets the accepted transactions. */
  clear: () => void;
}>;

export function createIntake(state: ChainState): Intake {
  const processed = new Map<string, number>(); // id to milliseconds, oldest first
  const isProcessed = (id: string) => {
    if (state.mempool.get(id) !== undefined) return true;
    const at = processed.get(id);
    return at !== undefined && at + processedMs > state.clock();
  };
  return {
    isProcessed,
    takeTransaction: async (text) => {
      const posted = readPosted(text);
      if (posted.kind === "faulty") return rejected(state, posted.id, posted.faults);
      if (posted.kind !== "read") return posted;
      const { transaction, data } = posted;
      if (isProcessed(transaction.id)) return { kind: "already_processed" };
      // A second post of the same transaction gets the first one's response, which may still wait for its data.
      processed.set(transaction.id, state.clock());
      let isAccepted = false;
      try {
        const outcome = await admit(state, transaction, data);
        isAccepted = outcome.kind === "accepted";
        return outcome;
      } finally {
        if (!isAccepted) processed.delete(transaction.id);
        forgetOldest(processed);
      }
    },
    takeChunk: (text) => takeChunk(state, text),
    clear: () => processed.clear(),
  };
}

function forgetOldest(processed: Map<string, number>): void {
  for (const [id] of processed) {
    if (processed.size <= processedCountMax) return;
    processed.delete(id);
  }
}

async function admit(state: ChainState, transaction: Transaction, data: string): Promise<TransactionOutcome> {
  const check = createSignatureCheck(transaction);
  const isSigned = transaction.format === 1 && data !== "";
  const signed = isSigned ? await splitData(data, check.update) : undefined;
  if (isSigned && signed === undefined) return notBase64url;
  const faults = transactionFaults(transaction, findingOf(transaction, check, signed), state.accounts);
  if (faults.length > 0) return rejected(state, transaction.id, faults);
  const anchor = anchorFault(transaction, rulesView(state));
  if (anchor !== undefined) return { kind: "bad_anchor", fault: anchor };
  if (state.mempool.isFull()) return { kind: "full" };

  const split = signed ?? (data === "" ? statedData(transaction) : await splitData(data));
  if (transaction.format === 2 && data !== "" && !states(transaction, split)) return { kind: "unknown_split" };
  return await store(state, transaction, split);
}

const notBase64url = { kind: "invalid_json", reason: "data is not canonical base64url" } as const;

function findingOf(transaction: Transaction, check: SignatureCheck, signed: SplitData | undefined): Finding {
  const last = signed?.chunks.at(-1)?.chunk.at(-1) ?? 0;
  return {
    idIsHash: isNamedByItsSignature(transaction),
    signatureIsValid: check.finish().valid,
    endsWithDigit: last >= 0x30 && last <= 0x39,
  };
}

/** The data of a transaction that was posted without it; its chunks follow. */
function statedData({ dataRoot: root, dataSize: size }: Transaction): SplitData | undefined {
  return size > 0 ? { key: { root, size }, chunks: [] } : undefined;
}

function states({ dataRoot, dataSize }: Transaction, split: SplitData | undefined): boolean {
  return split?.key.root === dataRoot && split.key.size === dataSize;
}

/** Stores a valid transaction: first its chunks, with yields to the event loop, then the transaction. */
async function store(
  state: ChainState,
  transaction: Transaction,
  split: SplitData | undefined,
): Promise<TransactionOutcome> {
  // A transaction with the same data that is dropped meanwhile would remove the chunks.
  const isHere = split === undefined ? undefined : state.mempool.expect(split.key);
  try {
    for (const [index, chunk] of (split?.chunks ?? []).entries()) {
      if (index > 0) await yieldToEventLoop();
      if (split !== undefined) state.chunks.put(split.key, chunk);
    }
    change(state, () => state.mempool.add(transaction, split?.key));
    return { kind: "accepted", id: transaction.id };
  } catch (error) {
    if (error instanceof Failure && error.code === "busy") return { kind: "full" };
    throw error;
  } finally {
    isHere?.();
  }
}

function rejected(state: ChainState, id: string, faults: readonly Fault[]): TransactionOutcome {
  const known = readId(id);
  if (known !== undefined && state.history.heightOf(known) === undefined) {
    state.mempool.reject(
      known,
      faults.map(({ code }) => code),
    );
  }
  return { kind: "faulty", faults };
}

function takeChunk(state: ChainState, text: string): ChunkOutcome {
  const fields = readJson(text);
  const claim = isJsonObject(fields) ? readClaim(fields) : undefined;
  if (claim === undefined)
    return rejectedChunk("invalid_json", "the fields of a chunk must be strings of base64url and decimals");
  const limit = claimFault(claim);
  if (limit !== undefined) return limit;
  const key = { root: encodeBase64url(claim.dataRoot), size: Number(claim.dataSize) };
  if (claim.dataRoot.length !== 32 || !(state.mempool.hasData(key) || state.history.hasData(key))) {
    return rejectedChunk("data_root_not_found", `no transaction with data_root ${key.root} and data_size ${key.size}`);
  }
  const offset = Number(claim.offset ?? 0n);
  const { dataRoot, dataPath, chunk } = claim;
  // The rules of every offset of this weave: a chunk that only older rules allow could never be served.
  const verdict = checkChunk({ dataRoot, dataSize: key.size, dataPath, offset, chunk, ruleset: "relaxed" });
  if (verdict.kind === "rejected") return rejectedChunk("invalid_proof", verdict.reason);
  return storeChunk(state, key, { start: verdict.start, end: verdict.end, dataPath, chunk });
}

function storeChunk(state: ChainState, key: DataKey, chunk: StoredChunk): ChunkOutcome {
  try {
    state.chunks.put(key, chunk);
    return { kind: "stored" };
  } catch (error) {
    if (error instanceof SQLiteError && error.code === "SQLITE_FULL") return rejectedChunk("disk_full", error.message);
    throw error;
  }
}

type ChunkClaim = Readonly<{
  dataRoot: Uint8Array;
  dataSize: bigint;
  dataPath: Uint8Array;
  chunk: Uint8Array;
  offset: bigint | undefined;
}>;

function readClaim(fields: JsonObject): ChunkClaim | undefined {
  const bytes = (key: string) => decodeBase64url(typeof fields[key] === "string" ? fields[key] : "=");
  const integer = (key: string, fallback: string) => {
    const value = fields[key] ?? fallback;
    return typeof value === "string" && /^[+-]?\d{1,100}$/.test(value) ? BigInt(value) : undefined;
  };
  const dataRoot = bytes("data_root");
  const dataPath = bytes("data_path");
  const chunk = bytes("chunk");
  const dataSize = integer("data_size", "0");
  const offset = fields["offset"] === undefined ? undefined : integer("offset", "");
  if (dataRoot === undefined || dataPath === undefined || chunk === undefined || dataSize === undefined)
    return undefined;
  if (fields["offset"] !== undefined && offset === undefined) return undefined;
  return { dataRoot, dataSize, dataPath, chunk, offset };
}

/** The node's limits, in its order. */
function claimFault({ dataSize, dataPath, chunk, offset }: ChunkClaim): ChunkOutcome | undefined {
  if (dataSize > noteMax) return rejectedChunk("data_size_too_big", "data_size is above 2^256 - 1");
  if (chunk.length > chunkSize) return rejectedChunk("chunk_too_big", `${chunk.length} bytes, at most ${chunkSize}`);
  if (dataPath.length > pathSizeMax) {
    return rejectedChunk("data_path_too_big", `${dataPath.length} bytes, at most ${pathSizeMax}`);
  }
  if (offset === undefined) return rejectedChunk("offset_field_required", "offset is missing");
  if (offset > noteMax) return rejectedChunk("offset_too_big", "offset is above 2^256 - 1");
  const leafEnd = readUnsigned(dataPath.subarray(-32));
  const isAttractive = dataPath.length > 0 && (leafEnd === dataSize || dataPath.length <= chunk.length);
  if (isAttractive) return undefined;
  return rejectedChunk("chunk_proof_ratio_not_attractive", "the proof is longer than the chunk, which is not the last");
}

function rejectedChunk(fault: ChunkFault, reason: string): ChunkOutcome {
  return { kind: "rejected", fault, reason };
}

export type PostedTransaction =
  | Readonly<{
      kind: "read";
      transaction: Transaction /* without its data, but with its size, also in format 1 */;
      data: string /* the posted data as unchecked base64url; may be empty */;
    }>
  | Readonly<{ kind: "invalid_json"; reason: string }>
  | Readonly<{ kind: "invalid_hash" }>
  | Readonly<{ kind: "invalid_signature_type"; reason: string }>
  | Readonly<{ kind: "faulty"; id: string; faults: readonly Fault[] }>;

/** The data is cut out of texts above this size; the rest of a transaction is smaller. */
const parsedWholeMax = 2 ** 20;

/** Maximum number of lists, and of objects, in a post: twice the maximum number of tags. */
const openingsMax = 4_096;

const idCharacters = 43;

/** Base64url fields with their maximum size in bytes, and the node's error code for more. */
const byteFields: readonly (readonly [key: string, max: number, code: FaultCode])[] = [
  ["last_tx", 48, "tx_fields_too_large"],
  ["owner", 512, "tx_fields_too_large"],
  ["signature", 512, "tx_fields_too_large"],
  ["data_root", 32, "tx_fields_too_large"],
  ["target", 32, "invalid_target_length"],
];

const amountFields: readonly (readonly [key: string, code: FaultCode])[] = [
  ["quantity", "quantity_negative"],
  ["data_size", "tx_data_size_negative"],
];

/** Parses a posted text. Never throws for invalid input. */
export function readPosted(text: string): PostedTransaction {
  const [shell, cutData] = text.length > parsedWholeMax ? cutOutData(text) : [text, undefined];
  if (shell.length > parsedWholeMax || opensMoreThan(shell, openingsMax))
    return { kind: "invalid_json", reason: "the body without its data is too large" };
  const json = readJson(shell);
  if (!isJsonObject(json)) return { kind: "invalid_json", reason: "the body is not a JSON object" };
  const data = cutData ?? json["data"] ?? "";
  if (typeof data !== "string") return { kind: "invalid_json", reason: "data is not a string" };
  const fields = normalised(json, data);
  const wrong = ["id", ...byteFields.map(([key]) => key)].find((key) => typeof fields[key] !== "string");
  if (wrong !== undefined) return { kind: "invalid_json", reason: `${wrong} is not a string` };
  const id = `${fields["id"]}`;
  if (id.length > idCharacters) return { kind: "invalid_hash" };
  const faults = earlyFaults(fields, data);
  return faults.length > 0 ? { kind: "faulty", id, faults } : readNormalised(fields, data);
}

/** The known fields as a node writes them, in its order and without the data. */
function normalised(json: JsonObject, data: string): JsonObject {
  const isFirst = isFirstFormat(json);
  return {
    format: isFirst ? 1 : json["format"] === "2" ? 2 : (json["format"] ?? 1),
    id: json["id"] ?? null,
    last_tx: json["last_tx"] ?? null,
    owner: json["owner"] ?? null,
    tags: namedTags(json["tags"]),
    target: json["target"] ?? null,
    quantity: decimalText(json["quantity"]),
    data: "",
    data_size: isFirst ? `${decodedSize(data)}` : decimalText(json["data_size"]),
    data_tree: [],
    data_root: isFirst ? "" : (json["data_root"] ?? ""),
    reward: decimalText(json["reward"]),
    signature: json["signature"] ?? null,
    ...(json["denomination"] === undefined ? {} : { denomination: decimalText(json["denomination"]) }),
  };
}

function readNormalised(fields: JsonObject, data: string): PostedTransaction {
  try {
    return { kind: "read", transaction: readTransactionHeader(writeJson(fields)), data };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const reason = `${error.context["reason"]}`;
    const kind = reason.startsWith("owner is empty") ? "invalid_signature_type" : "invalid_json";
    return { kind, reason };
  }
}

/** Faults with a node's error code, which a strict parser would report only as malformed. */
function earlyFaults(fields: JsonObject, data: string): Fault[] {
  const negative = amountFields
    .filter(([key]) => /^-\d+$/.test(`${fields[key]}`))
    .map(([key, code]) => ({ code, detail: `${key} is ${fields[key]}` }));
  const large = byteFields
    .filter(([key, max]) => sizeOf(fields[key]) > max)
    .map(([key, max, code]) => ({
      code,
      detail: `${sizeOf(fields[key])} bytes of ${key}, at most ${max}`,
    }));
  return [...negative, ...large, ...tagFaults(fields["tags"]), ...dataFaults(fields, data)];
}

function tagFaults(tags: JsonValue | undefined): Fault[] {
  if (!isJsonArray(tags)) return [];
  const parts = tags.flatMap((tag) => (isJsonObject(tag) ? [tag["name"], tag["value"]] : []));
  const size = parts.reduce<number>((sum, part) => sum + sizeOf(part), 0);
  if (size <= tagsBytesMax && tags.length <= tagsCountMax) return [];
  return [{ code: "tx_fields_too_large", detail: `${tags.length} tags of ${size} bytes, at most ${tagsBytesMax}` }];
}

function dataFaults(fields: JsonObject, data: string): Fault[] {
  const size = decodedSize(data);
  if (!isFirstFormat(fields) || size <= inlineDataBytesMax) return [];
  return [{ code: "tx_fields_too_large", detail: `${size} bytes of data, at most ${inlineDataBytesMax}` }];
}

/** A node ignores tags that are not a name and a value. */
function namedTags(tags: JsonValue | undefined): readonly JsonValue[] {
  if (!isJsonArray(tags)) return [];
  return tags.filter((tag) => isJsonObject(tag) && Object.keys(tag).join() === "name,value");
}

function isFirstFormat(fields: JsonObject): boolean {
  const { format } = fields;
  return format === undefined || format === 1 || format === "1";
}

function decimalText(value: JsonValue | undefined): JsonValue {
  return typeof value === "number" || typeof value === "bigint" ? `${value}` : (value ?? "0");
}

function sizeOf(value: JsonValue | undefined): number {
  return typeof value === "string" ? decodedSize(value) : 0;
}

/** Splits a long text into the JSON without its data, and the data. */
function cutOutData(text: string): [shell: string, data: string | undefined] {
  const key = text.indexOf('"data"');
  const opening = key === -1 ? -1 : text.indexOf('"', key + 6);
  const closing = opening === -1 ? -1 : text.indexOf('"', opening + 1);
  if (closing === -1 || text.slice(key + 6, opening).trim() !== ":") return [text, undefined];
  return [text.slice(0, opening + 1) + text.slice(closing), text.slice(opening + 1, closing)];
}
