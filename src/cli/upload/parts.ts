/**
 * A large item sent in parts, several at once, and gone on with where an earlier run left off.
 *
 * The upload's id at the service is kept in a small file, named after the item, until the item is taken.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Id } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import { isJsonArray, isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import { sleep } from "../../lib/stop.ts";
import { creditsHint, objectIn, refusal, type ServiceClient, shown } from "../service-client.ts";
import type { WalletToken } from "../wallet-file.ts";
import { eachAtOnce } from "./at-once.ts";
import type { FileItem } from "./item.ts";

/** What sends parts. */
export type PartsSender = Readonly<{
  client: ServiceClient;
  token: WalletToken;
  /** Requests at once, of all items together. */
  semaphore: Semaphore;
  /** Where ids of uploads are kept. */
  stateFolder: string;
  /** Told of bytes that are sent, and of those that an earlier run had sent. */
  onSent: (bytes: number) => void;
  onThere: (bytes: number) => void;
}>;

/** Large enough that a part's own costs vanish, small enough that a lost one is sent again soon. Bytes. */
const partBytes = 8 * 2 ** 20;

/** No upload has more parts. */
const partsMax = 10_000;

/** Between two looks whether all is put together. Milliseconds; it grows with the waiting. */
const lookMsFirst = 200;
const lookMsLongest = 5_000;

/** Putting together and checking a hundred gigabytes takes minutes. */
const finishMsMax = 30 * 60_000;

const underfunded = "UNDERFUNDED";

const binary = { "content-type": "application/octet-stream" } as const;

type PartUpload = Readonly<{ id: string; partBytes: number }>;

/**
 * Sends an item.
 *
 * @returns Its receipt, as the service answered it.
 * @throws Failure with the reason when the service refuses it.
 */
export async function sendInParts(sender: PartsSender, item: FileItem, signal: AbortSignal): Promise<JsonObject> {
  const stored = await resumed(sender, item, signal);
  const upload = stored?.upload ?? (await begin(sender, item, signal));
  await sendMissing(sender, item, upload, stored?.there ?? [], signal);
  const receipt = await finish(sender, upload, signal);
  forgetParts(sender, item.id);
  return receipt;
}

/** Forgets the upload that an earlier run began of an item that is taken by now. */
export function forgetParts(sender: Pick<PartsSender, "stateFolder">, id: Id): void {
  rmSync(stateFile(sender, id), { force: true });
}

/** Bytes [start, end) of an item. */
type Span = Readonly<{ start: number; end: number }>;

/** The upload that an earlier run began, with the parts that are there; `undefined` when the service knows of none. */
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
  // What failed for want of credits is whole: once there are some, it need only be finished.
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
    throw new Failure("source_failed", { reason: `${client.url} began an upload without an id` });
  const isSize = typeof chunkSize === "number" && Number.isSafeInteger(chunkSize) && chunkSize > 0;
  const upload = { id, partBytes: isSize ? Math.min(chunkSize, wanted) : wanted };
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
  // Turns bound what is really sent at once; no more workers than could get one.
  await eachAtOnce(missing.values(), workersMax, stop, (part) => sendPart(sender, item, upload, part, own));
}

const workersMax = 6;

async function sendPart(
  { client, token, semaphore, onSent }: PartsSender,
  item: FileItem,
  upload: PartUpload,
  { start, end }: Span,
  signal: AbortSignal,
): Promise<void> {
  const release = await semaphore.take(signal);
  try {
    const bytes = await item.read(start, end);
    const response = await client.post(`/chunks/${token}/${upload.id}/${start}`, bytes, binary, signal);
    if (response.status !== 200) throw refusal(response, client.url);
    onSent(bytes.length);
  } finally {
    release?.();
  }
}

/** Has the parts put together, and waits until that is done. */
async function finish({ client, token }: PartsSender, { id }: PartUpload, signal: AbortSignal): Promise<JsonObject> {
  const own = AbortSignal.any([signal, AbortSignal.timeout(finishMsMax)]);
  const response = await client.post(`/chunks/${token}/${id}/finalize`, new Uint8Array(0), {}, own);
  if (response.status !== 200 && response.status !== 202) throw refusal(response, client.url);
  for (let waitMs = lookMsFirst; ; waitMs = Math.min(waitMs * 2, lookMsLongest)) {
    const state = objectIn(await client.get(`/chunks/${token}/${id}/status`, own), client.url);
    const { status, receipt } = state;
    if (status === "FINALIZED" && isJsonObject(receipt)) return receipt;
    if (typeof status !== "string" || !isUnderWay(status)) throw failed(state, client.url);
    await sleep(waitMs, own);
  }
}

function isUnderWay(status: string): boolean {
  return ["ASSEMBLING", "VALIDATING", "FINALIZING"].includes(status);
}

function failed(state: JsonObject, url: string): Failure {
  const words: Readonly<Record<string, string>> = {
    [underfunded]: "not enough credits",
    INVALID: "the service takes it for no valid item",
  };
  const { status, needed, available, reason } = state;
  const amounts = needed === undefined ? "" : `: ${shown(needed)} winc are needed, ${shown(available)} are there`;
  const why = typeof reason === "string" ? `: ${shown(reason)}` : "";
  const hint = status === underfunded ? `; ${creditsHint}` : "";
  const said = `${words[String(status)] ?? `${url} says ${shown(status)}`}${amounts}${why}${hint}`;
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

/** An upload is gone on with at the service where it was begun. */
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
