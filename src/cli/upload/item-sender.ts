/**
 * Sends items to an upload service: small items in one request, large items in parts, and items that the service has
 * not at all. Verifies and stores the receipts.
 *
 * The id of an upload in parts is stored in a small file until the item is accepted, so a later run can continue it.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Id } from "../../arweave/id.ts";
import { readWinc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { isJsonArray, isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import { sleep } from "../../lib/stop.ts";
import { receiptFault, type StoredReceipts } from "../receipts.ts";
import {
  creditsHint,
  failedResponse,
  objectIn,
  type ServiceClient,
  type ServiceResponse,
  shown,
} from "../service-client.ts";
import type { WalletToken } from "../wallet-file.ts";
import type { FileItem, LocalItem, WholeItem } from "./local-item.ts";

export type ItemSender = PartsSender & Readonly<{ receipts: StoredReceipts }>;

export type SentItem = Readonly<{
  id: Id;
  /** Whether the service had the item already: nothing was sent or charged. */
  wasThere: boolean;
  /** The charge of this run or of the earlier one. */
  winc: bigint;
  /** For an existing item: the first receipt, from the local file or from the service. */
  receipt: JsonObject | undefined;
  /** The fault of the stored receipt, or of the one from the service. */
  receiptFault?: string;
}>;

/** Sends an item unless the service has it. @throws Failure {reason} when the service rejects the item. */
export async function sendItem(sender: ItemSender, item: LocalItem, signal: AbortSignal): Promise<SentItem> {
  const known = await findItem(sender, item.id, signal);
  if (known !== undefined) {
    sender.onThere(item.size);
    if (item.kind === "file") forgetParts(sender, item.id);
    const receipt = await receiptOfKnown(sender, item.id, signal);
    return { id: item.id, wasThere: true, winc: wincIn(known), ...receipt };
  }
  const receipt =
    item.kind === "whole" ? await sendWhole(sender, item, signal) : await sendInParts(sender, item, signal);
  const fault = receipt["id"] === item.id ? receiptFault(receipt) : "it is for another item";
  if (fault !== undefined)
    throw new Failure("source_failed", { reason: `the receipt of ${item.id} is not valid: ${fault}` });
  sender.receipts.save(receipt, sender.client.url);
  return { id: item.id, wasThere: false, winc: wincIn(receipt), receipt };
}

type ReceiptFound = Pick<SentItem, "receipt" | "receiptFault">;

/**
 * The stored receipt, else the service's copy: an earlier run may have ended after the payment, before it stored the
 * receipt.
 */
async function receiptOfKnown(sender: ItemSender, id: Id, signal: AbortSignal): Promise<ReceiptFound> {
  const { receipts, client } = sender;
  const stored = receipts.find(id, client.url);
  if (stored?.kind === "receipt") return { receipt: stored.receipt };
  const requested = await requestReceipt(sender, id, signal);
  if (requested.receipt !== undefined) receipts.save(requested.receipt, client.url);
  else if (stored !== undefined) return { receipt: undefined, receiptFault: stored.fault };
  return requested;
}

/** Requests the receipt of an accepted item; a service need not have this route. */
async function requestReceipt({ client, semaphore }: ItemSender, id: Id, signal: AbortSignal): Promise<ReceiptFound> {
  const release = await semaphore.take(signal);
  try {
    const { status, value } = await client.get(`/tx/${id}/receipt`, signal);
    if (status !== 200 || !isJsonObject(value)) return { receipt: undefined };
    const fault = value["id"] === id ? receiptFault(value) : "it is for another item";
    if (fault === undefined) return { receipt: value };
    return {
      receipt: undefined,
      receiptFault: `the receipt of ${id} from ${client.url} is not valid: ${fault}`,
    };
  } finally {
    release?.();
  }
}

/** The status of an item that the service has; a failed item is sent again. */
async function findItem(
  { client, semaphore }: PartsSender,
  id: Id,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const release = await semaphore.take(signal);
  try {
    const { status, value }: ServiceResponse = await client.get(`/tx/${id}/status`, signal);
    return status === 200 && isJsonObject(value) && value["status"] !== "FAILED" ? value : undefined;
  } finally {
    release?.();
  }
}

async function sendWhole(
  { client, semaphore, onSent }: PartsSender,
  { bytes, size }: WholeItem,
  signal: AbortSignal,
): Promise<JsonObject> {
  const release = await semaphore.take(signal);
  try {
    const headers = { "content-type": "application/octet-stream" };
    const receipt = objectIn(await client.post("/tx", bytes, headers, signal), client.url);
    onSent(size);
    return receipt;
  } finally {
    release?.();
  }
}

function wincIn({ winc }: JsonObject): bigint {
  return (typeof winc === "string" ? readWinc(winc) : undefined) ?? 0n;
}

export type PartsSender = Readonly<{
  client: ServiceClient;
  token: WalletToken;
  /** Limits concurrent requests of all items together. */
  semaphore: Semaphore;
  /** Folder of the ids of uploads in parts. */
  stateFolder: string;
  /** Called for bytes that are sent, and for bytes that an earlier run sent. */
  onSent: (bytes: number) => void;
  onThere: (bytes: number) => void;
}>;

/** Large enough for a small overhead per part, small enough for a fast retry. Bytes. */
const partBytes = 8 * 2 ** 20;

/** Maximum number of parts of an upload. */
const partsMax = 10_000;

/** Interval between requests for the status after the last part; it doubles up to the maximum. Milliseconds. */
const pollMsFirst = 200;
const pollMsMax = 5_000;

/** The service needs minutes to assemble and verify a hundred gigabytes. */
const finishMsMax = 30 * 60_000;

const underfunded = "UNDERFUNDED";

const binary = { "content-type": "application/octet-stream" } as const;

type PartUpload = Readonly<{ id: string; partBytes: number }>;

/**
 * Sends an item in parts, and continues an earlier run's upload.
 *
 * @returns The service's receipt.
 * @throws Failure {reason} when the service rejects the item.
 */
export async function sendInParts(sender: PartsSender, item: FileItem, signal: AbortSignal): Promise<JsonObject> {
  const stored = await resumed(sender, item, signal);
  const upload = stored?.upload ?? (await begin(sender, item, signal));
  await sendMissing(sender, item, upload, stored?.there ?? [], signal);
  const receipt = await finish(sender, upload, signal);
  forgetParts(sender, item.id);
  return receipt;
}

/** Removes the stored upload id of an accepted item. */
export function forgetParts(sender: Pick<PartsSender, "stateFolder">, id: Id): void {
  rmSync(stateFile(sender, id), { force: true });
}

/** Bytes [start, end) of an item. */
type Span = Readonly<{ start: number; end: number }>;

/** The upload of an earlier run and the parts that the service has; `undefined` when the service does not know it. */
async function resumed(
  sender: PartsSender,
  item: FileItem,
  signal: AbortSignal,
): Promise<Readonly<{ upload: PartUpload; there: Span[] }> | undefined> {
  const upload = readState(sender, item.id);
  if (upload === undefined) return undefined;
  const response = await sender.client.get(`/chunks/${sender.token}/${upload.id}/-1`, signal);
  if (response.status !== 200 || !isJsonObject(response.value)) return undefined;
  const { chunks, failedReason } = response.value;
  // An underfunded upload is complete: with credits it only needs to be finalized.
  if ((failedReason ?? underfunded) !== underfunded || !isJsonArray(chunks)) return undefined;
  const there = chunks.flatMap((chunk) => {
    const [start, size] = isJsonArray(chunk) ? chunk.map(Number) : [];
    return start === undefined || size === undefined ? [] : [{ start, end: start + size }];
  });
  return { upload, there };
}

async function begin(sender: PartsSender, item: FileItem, signal: AbortSignal): Promise<PartUpload> {
  const { client, token } = sender;
  const wanted = Math.max(partBytes, Math.ceil(item.size / partsMax));
  const response = objectIn(await client.get(`/chunks/${token}/-1/-1?chunkSize=${wanted}`, signal), client.url);
  const { id, chunkSize } = response;
  if (typeof id !== "string" || !/^[\w-]{1,128}$/.test(id))
    throw new Failure("source_failed", { reason: `${client.url} created an upload without an id` });
  const isSize = typeof chunkSize === "number" && Number.isSafeInteger(chunkSize) && chunkSize > 0;
  const upload = { id, partBytes: isSize ? Math.min(chunkSize, wanted) : wanted };
  if (item.size > upload.partBytes * partsMax)
    throw new Failure("source_failed", { reason: `${client.url} wants more than ${partsMax} parts for one item` });
  writeState(sender, item.id, upload);
  return upload;
}

async function sendMissing(
  sender: PartsSender,
  item: FileItem,
  upload: PartUpload,
  there: readonly Span[],
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const own = AbortSignal.any([signal, stop.signal]);
  const parts = partsOf(item.size, upload.partBytes);
  const missing = parts.filter((part) => !there.some(({ start, end }) => start <= part.start && part.end <= end));
  for (const part of parts) if (!missing.includes(part)) sender.onThere(part.end - part.start);
  // Used again for later parts: new ones would be collected late, and memory would grow with the file.
  const buffers: Uint8Array<ArrayBuffer>[] = [];
  // The semaphore limits concurrent requests; more workers than slots would be idle.
  await eachAtOnce(missing.values(), workersMax, stop, async (part) => {
    const release = await sender.semaphore.take(own);
    const buffer = buffers.pop() ?? new Uint8Array(upload.partBytes);
    try {
      await sendPart(sender, item, upload, part, buffer, own);
    } finally {
      buffers.push(buffer);
      release?.();
    }
  });
}

const workersMax = 6;

async function sendPart(
  { client, token, onSent }: PartsSender,
  item: FileItem,
  upload: PartUpload,
  { start, end }: Span,
  buffer: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<void> {
  const bytes = buffer.subarray(0, end - start);
  await item.read(start, bytes);
  const response = await client.post(`/chunks/${token}/${upload.id}/${start}`, bytes, binary, signal);
  if (response.status !== 200) throw failedResponse(response, client.url);
  onSent(bytes.length);
}

/** Finalizes the upload, and waits for the receipt. */
async function finish({ client, token }: PartsSender, { id }: PartUpload, signal: AbortSignal): Promise<JsonObject> {
  const own = AbortSignal.any([signal, AbortSignal.timeout(finishMsMax)]);
  const response = await client.post(`/chunks/${token}/${id}/finalize`, new Uint8Array(0), {}, own);
  if (response.status !== 200 && response.status !== 202) throw failedResponse(response, client.url);
  for (let waitMs = pollMsFirst; ; waitMs = Math.min(waitMs * 2, pollMsMax)) {
    const state = objectIn(await client.get(`/chunks/${token}/${id}/status`, own), client.url);
    const { status, receipt } = state;
    if (status === "FINALIZED" && isJsonObject(receipt)) return receipt;
    if (typeof status !== "string" || !isRunning(status)) throw failed(state, client.url);
    await sleep(waitMs, own);
  }
}

function isRunning(status: string): boolean {
  return ["ASSEMBLING", "VALIDATING", "FINALIZING"].includes(status);
}

function failed(state: JsonObject, url: string): Failure {
  const words: Readonly<Record<string, string>> = {
    [underfunded]: "not enough credits",
    INVALID: "the service rejects the item as invalid",
  };
  const { status, needed, available, reason } = state;
  const amounts = needed === undefined ? "" : `: ${shown(needed)} winc are needed, ${shown(available)} are available`;
  const why = typeof reason === "string" ? `: ${shown(reason)}` : "";
  const hint = status === underfunded ? `; ${creditsHint}` : "";
  const said = `${words[String(status)] ?? `${url} reports ${shown(status)}`}${amounts}${why}${hint}`;
  return new Failure(status === underfunded ? "insufficient_balance" : "source_failed", { reason: said });
}

function partsOf(size: number, bytes: number): Span[] {
  const parts: Span[] = [];
  for (let start = 0; start < size; start += bytes) parts.push({ start, end: Math.min(size, start + bytes) });
  return parts;
}

function stateFile({ stateFolder }: Pick<PartsSender, "stateFolder">, id: Id): string {
  return join(stateFolder, `${id}.json`);
}

/** The stored upload id, if the upload is at this service. */
function readState(sender: PartsSender, id: Id): PartUpload | undefined {
  const file = stateFile(sender, id);
  const stored = existsSync(file) ? readJson(readFileSync(file, "utf8")) : undefined;
  if (!isJsonObject(stored) || stored["url"] !== sender.client.url) return undefined;
  const { uploadId, partBytes: bytes } = stored;
  const isKnown = typeof uploadId === "string" && typeof bytes === "number" && bytes > 0;
  return isKnown ? { id: uploadId, partBytes: bytes } : undefined;
}

function writeState(sender: PartsSender, id: Id, upload: PartUpload): void {
  mkdirSync(sender.stateFolder, { recursive: true, mode: 0o700 });
  const file = stateFile(sender, id);
  const text = JSON.stringify({ url: sender.client.url, uploadId: upload.id, partBytes: upload.partBytes });
  writeFileSync(`${file}.part`, text);
  renameSync(`${file}.part`, file);
}

/**
 * Processes all things in order, `most` at a time.
 *
 * @param stop - Aborted with the first failure; later failures are ignored.
 * @throws The first failure, when no work is running any more.
 */
export async function eachAtOnce<Thing>(
  things: ArrayIterator<Thing>,
  most: number,
  stop: AbortController,
  work: (thing: Thing) => Promise<void>,
): Promise<void> {
  const worker = async () => {
    for (const thing of things) await work(thing);
  };
  const workers = Array.from({ length: most }, worker);
  try {
    await Promise.all(workers);
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(workers);
    throw error;
  }
}
