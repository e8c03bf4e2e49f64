/**
 * Thread entry: verifies blocks with their transactions, or transactions alone, and converts them to rows of the index.
 *
 * A transaction is valid when its id is the hash of its signature and its owner made the signature; a block when
 * `verifyBlock` accepts it. Data inside a transaction's JSON is cut out of the text and returned separately, to be
 * stored as content.
 * Source: docs/reference/node-api.md#following; docs/reference/formats.md#blocks.
 * @module
 */
import { serialize } from "bun:jsc";
import { type Block, readBlock } from "../src/arweave/block.ts";
import { mainNetFault, verifyBlock } from "../src/arweave/block-check.ts";
import { isBundleTags } from "../src/arweave/bundle.ts";
import { checkItem as checkDataItem, readItemHeader, verifyItem } from "../src/arweave/data-item.ts";
import type { BlockHash, Id } from "../src/arweave/id.ts";
import { dataRootOf } from "../src/arweave/merkle.ts";
import { readTransaction, type Transaction, treeRootOf, verifyTransaction } from "../src/arweave/transaction.ts";
import type { BlockLayout, PlacedTransaction } from "../src/arweave/tx-root.ts";
import { Failure } from "../src/failures.ts";
import {
  type AnnouncementsJob,
  type AnnouncementsResponse,
  readAnnouncements,
} from "../src/gateway/administration/announcements.ts";
import { type RelayedJob, relayedFault } from "../src/gateway/relayed-check.ts";
import { encodeBase64url } from "../src/lib/base64url.ts";
import { isJsonObject, readJson } from "../src/lib/json.ts";
import { cutData } from "../src/store/index/chain/header-texts.ts";
import type { BlockRows, BundleRow, SerializedRows, TransactionRow } from "../src/store/index/index-types.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** A block with its transactions to verify. Texts are a node's JSON. */
export type CheckBlockJob = Readonly<{
  block: string;
  /** In the order of the block's `txs`; null for a missing transaction. */
  transactions: readonly (Uint8Array | null)[];
  /**
   * The previous block, verified or about to be; ignored when its hash is not the block's `previous_block`.
   */
  previous: string | undefined;
  /** Whether the chain's first block is the main network's, so that its fork heights apply. */
  isMainNet: boolean;
}>;

/** An invalid transaction of a job. */
export type FaultyTransaction = Readonly<{ txIndex: number; reason: string }>;

/** Data from a transaction's JSON: covered by its signature (format 1), or proven by its data root (format 2). */
export type CarriedData = Readonly<{ id: Id; bytes: Uint8Array }>;

/** The result of verifying a block. */
export type CheckBlockResult =
  | Readonly<{
      kind: "accepted";
      /** `bun:jsc`-serialized `BlockRows`, passed on unchanged. */
      rows: SerializedRows;
      bundleCount: number;
      checked: readonly string[];
      unchecked: readonly string[];
      data: readonly CarriedData[];
    }>
  /** The block itself is invalid. */
  | Readonly<{ kind: "rejected"; reason: string }>
  /** Invalid transactions; the block was not verified further. Other nodes may have valid ones. */
  | Readonly<{ kind: "faulty"; transactions: readonly FaultyTransaction[] }>;

/** Transactions without their block: missing or pending ones. */
export type CheckTransactionsJob = Readonly<{
  transactions: readonly Readonly<{ id: Id; text: Uint8Array }>[];
}>;

/** The result for one transaction, in the order of the job. */
export type CheckedTransaction =
  | Readonly<{
      kind: "valid";
      row: Omit<TransactionRow, "txIndex">;
      isBundle: boolean;
      data: CarriedData | undefined;
    }>
  | Readonly<{ kind: "invalid"; reason: string }>;

/** A block that should contain a transaction. */
export type CheckBlockNamesJob = Readonly<{
  /** A node's JSON. */
  block: string;
  id: Id;
  height: number;
  hash: BlockHash;
}>;

/** A complete data item. */
export type CheckItemJob = Readonly<{ id: Id; bytes: Uint8Array }>;

/** A data item without its payload: its header, and the message that its signature must sign. */
export type CheckItemMessageJob = Readonly<{ header: Uint8Array; message: Uint8Array }>;

/** Whether an item's signature is valid, and the payload's SHA-256. */
export type CheckedItemPayload =
  | Readonly<{ kind: "valid"; digest: Uint8Array }>
  | Readonly<{ kind: "invalid"; reason: string }>;

/** Verifies one block with the given transactions. */
export function checkBlock(job: CheckBlockJob): CheckBlockResult {
  const block = attempt(() => readBlock(job.block));
  if ("reason" in block) return { kind: "rejected", reason: block.reason };
  const fault = job.isMainNet ? mainNetFault(block) : undefined;
  if (fault !== undefined) return { kind: "rejected", reason: fault };

  const { slots, faulty } = checkAll(block, job);
  if (faulty.length > 0) return { kind: "faulty", transactions: faulty };
  const valid = slots.filter((slot) => slot !== null);
  const isWhole = valid.length === slots.length;
  const verdict = verifyBlock(block, isWhole ? valid.map(placedOf) : undefined, previousOf(job, block));
  if (verdict.kind === "rejected") return { kind: "rejected", reason: verdict.reason };
  const rows = rowsOf(block, slots, verdict);
  return {
    kind: "accepted",
    rows: serialize(rows),
    bundleCount: rows.bundles.length,
    checked: verdict.checked,
    unchecked: verdict.unchecked,
    data: valid.flatMap(carriedBy),
  };
}

/** Consecutive headers, verified without their transactions. Texts are a node's JSON. */
export type CheckHeadersJob = Readonly<{
  headers: readonly string[];
  /** The verified block before the first one; undefined when it is not at hand. */
  before: string | undefined;
}>;

/** Why headers are invalid, or do not follow one another; undefined when they are valid. */
export function checkHeaders({ headers, before }: CheckHeadersJob): string | undefined {
  let previous = before === undefined ? undefined : readBlock(before);
  for (const text of headers) {
    const block = attempt(() => readBlock(text));
    if ("reason" in block) return block.reason;
    if (previous !== undefined && block.previous !== previous.hash) return "a block does not follow the one before it";
    const verdict = verifyBlock(block, undefined, previous);
    if (verdict.kind === "rejected") return verdict.reason;
    previous = block;
  }
  return undefined;
}

/** Verifies transactions without their block. */
export function checkTransactions(job: CheckTransactionsJob): readonly CheckedTransaction[] {
  return job.transactions.map(({ id, text }): CheckedTransaction => {
    const checked = checkOne(id, text);
    if ("reason" in checked) return { kind: "invalid", reason: checked.reason };
    const { transaction, attached } = checked;
    const [data] = carriedBy(isDataOf(transaction, attached) ? { ...checked, data: attached } : checked);
    return { kind: "valid", row: rowOf(checked), isBundle: isBundle(transaction), data };
  });
}

type Reason = Readonly<{ reason: string }>;

/** A transaction that is valid, and its text without its data. */
type Valid = Readonly<{
  transaction: Transaction;
  text: string;
  dataAt: number | null;
  data: Uint8Array;
  /** The unverified data inside a transaction of format 2. */
  attached: Uint8Array;
}>;

/** The block's transactions by position; null for missing and invalid ones. */
function checkAll(block: Block, job: CheckBlockJob) {
  const faulty: FaultyTransaction[] = [];
  const slots = block.txs.map((id, txIndex): Valid | null => {
    const bytes = job.transactions[txIndex] ?? null;
    const checked = bytes === null ? null : checkOne(id, bytes);
    if (checked === null || !("reason" in checked)) return checked;
    faulty.push({ txIndex, reason: checked.reason });
    return null;
  });
  return { slots, faulty };
}

function checkOne(id: Id, bytes: Uint8Array): Valid | Reason {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  const transaction = attempt(() => readTransaction(text));
  if ("reason" in transaction) return transaction;
  if (transaction.id !== id) return { reason: "the id is not the requested one" };
  const verdict = verifyTransaction(transaction);
  if (!verdict.valid) return { reason: verdict.reason };
  const cut = cutData(text);
  if (hasRenamedKey(cut.text)) return { reason: "a field has an unknown name" };
  // Nodes omit the data of format 2 from this text; if a node does not, it is removed here. Chunks carry the data.
  return transaction.format === 1
    ? { transaction, ...cut, attached: noBytes }
    : { transaction, text: cut.text, dataAt: null, data: noBytes, attached: cut.data };
}

/** Whether bytes have the data root of a transaction of format 2, under either rule of splitting. */
function isDataOf({ format, dataSize, dataRoot }: Transaction, bytes: Uint8Array): boolean {
  if (format !== 2 || bytes.length === 0 || bytes.length !== dataSize) return false;
  return tailRules.some((rule) => encodeBase64url(dataRootOf(bytes, rule)) === dataRoot);
}

const tailRules = ["plain", "halved"] as const;

const noBytes = new Uint8Array(0);

/**
 * JSON keys of a transaction with signed values; a transaction without one of them is not valid.
 */
const signedKeys = ["id", "last_tx", "owner", "tags", "target", "quantity", "data", "reward", "signature"];

/** Optional keys; every transaction since 2.0 has all but the last. */
const freeKeys = ["format", "data_size", "data_root", "data_tree", "denomination"];

/**
 * Whether the JSON has an unknown key and lacks a known one: the name of an unsigned field was altered. A node that
 * adds keys, or one from before 2.0, does not do both.
 */
function hasRenamedKey(text: string): boolean {
  const fields = readJson(text);
  const keys = isJsonObject(fields) ? Object.keys(fields) : [];
  const isStrange = (key: string) => !signedKeys.includes(key) && !freeKeys.includes(key);
  return keys.some(isStrange) && freeKeys.slice(0, -1).some((key) => !keys.includes(key));
}

/** The previous block, if it is valid and the one that the block names. */
function previousOf(job: CheckBlockJob, block: Block): Block | undefined {
  if (job.previous === undefined) return undefined;
  const previous = attempt(() => readBlock(job.previous ?? ""));
  return "reason" in previous || previous.hash !== block.previous ? undefined : previous;
}

function placedOf({ transaction }: Valid): PlacedTransaction {
  const { id, format, dataSize } = transaction;
  return { id, format, dataSize, dataRoot: treeRootOf(transaction) };
}

function rowsOf(
  block: Block,
  slots: readonly (Valid | null)[],
  verdict: Readonly<{
    checked: readonly string[];
    unchecked: readonly string[];
    layout: BlockLayout | undefined;
  }>,
): BlockRows {
  const places = new Map(
    verdict.layout?.kind === "placed" ? verdict.layout.places.map((place) => [place.id, place]) : [],
  );
  const rows = slots.map((checked, txIndex): TransactionRow | null => {
    if (checked === null) return null;
    const place = places.get(checked.transaction.id);
    const hasData = place !== undefined && place.end > place.start;
    return { txIndex, ...rowOf(checked), ...(hasData && { weaveStart: place.start, weaveEnd: place.end }) };
  });
  const { height, hash, previous, timestamp, weaveSize, blockSize, text } = block;
  const { checked, unchecked } = verdict;
  return {
    block: {
      height,
      hash,
      previous,
      timestamp,
      txCount: block.txs.length,
      weaveSize,
      blockSize,
      text,
      checked,
      unchecked,
    },
    transactions: rows.filter((row) => row !== null),
    missing: block.txs.flatMap((id, txIndex) => (slots[txIndex] === null ? [{ txIndex, id }] : [])),
    bundles: slots.flatMap((checked, txIndex) =>
      checked !== null && isBundle(checked.transaction) ? [bundleOf(height, txIndex, checked.transaction)] : [],
    ),
  };
}

/** Only the fields of a row, so that others are not copied between threads. */
function rowOf({ transaction, text, dataAt }: Valid): Omit<TransactionRow, "txIndex"> {
  const { format, id, lastTx, owner, ownerAddress, signatureType, tags, target } = transaction;
  const { quantity, reward, dataSize, dataRoot } = transaction;
  return {
    format,
    id,
    lastTx,
    owner,
    ownerAddress,
    signatureType,
    tags,
    target,
    quantity,
    reward,
    dataSize,
    dataRoot,
    text,
    dataAt,
  };
}

function isBundle({ tags, dataSize }: Transaction): boolean {
  return dataSize > 0 && isBundleTags(tags);
}

function bundleOf(height: number, txIndex: number, { id, dataSize }: Transaction): BundleRow {
  return {
    id,
    place: { height, txIndex, offset: -1 },
    parentOffset: null,
    headerSize: 0,
    size: dataSize,
    depth: 0,
    bypassFilter: false,
  };
}

function carriedBy({ transaction, data }: Valid): CarriedData[] {
  if (data.length === 0) return [];
  // Shared memory reaches the main thread without a copy.
  const bytes = new Uint8Array(new SharedArrayBuffer(data.length));
  bytes.set(data);
  return [{ id: transaction.id, bytes }];
}

function attempt<Value extends object>(read: () => Value): Value | Reason {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { reason: String(error.context["reason"] ?? error.message) };
  }
}

/** Why a block has another hash or height, or does not list a transaction; undefined when it matches. */
export function checkBlockNames({ block: text, id, height, hash }: CheckBlockNamesJob): string | undefined {
  const block = attempt(() => readBlock(text));
  if ("reason" in block) return block.reason;
  if (block.hash !== hash || block.height !== height) return "the block is another one";
  if (!block.txs.includes(id)) return `the block does not name ${id}`;
  const verdict = verifyBlock(block, undefined, undefined);
  return verdict.kind === "rejected" ? verdict.reason : undefined;
}

/** Verifies a complete item in memory. */
export function checkItem({ id, bytes }: CheckItemJob): CheckedItemPayload {
  const checked = checkDataItem(bytes, "lenient");
  if (checked.kind === "invalid") return checked;
  if (checked.header.id !== id) return { kind: "invalid", reason: "the item has another id" };
  return { kind: "valid", digest: checked.digest };
}

/** Why the signature in a header does not sign a message; undefined when it does. */
export function checkItemMessage({ header, message }: CheckItemMessageJob): string | undefined {
  const read = readItemHeader(header, "lenient");
  if (read.kind !== "header") return "the header cannot be read";
  const verdict = verifyItem(read.header, message);
  return verdict.valid ? undefined : verdict.reason;
}

/** Parses headers of data items that an operator announces. */
export function checkAnnouncements(job: AnnouncementsJob): AnnouncementsResponse {
  return readAnnouncements(job);
}

/** Why a node's response does not match the request; undefined when it does. */
export function checkRelayed(job: RelayedJob): string | undefined {
  return relayedFault(job);
}
