/**
 * Requests of the upload page: prices, uploads with their progress, and the state of an item.
 * @module
 */
import { fetchRoute, objectOf, routeUrl } from "../route-client.ts";

/** What the page needs of the service's information. Bytes. */
export type UploadLimits = Readonly<{ freeBytesMax: number; itemBytesMax: number }>;

export async function readLimits(signal: AbortSignal): Promise<UploadLimits> {
  const info = await readObject("upload/info", signal);
  return { freeBytesMax: Number(info["freeUploadLimitBytes"] ?? 0), itemBytesMax: Number(info["uploadLimitBytes"]) };
}

/** The price of bytes, winc. */
export async function readPrice(bytes: number, signal: AbortSignal): Promise<bigint> {
  if (bytes === 0) return 0n;
  const response = await fetchRoute(`upload/price/arweave/${bytes}`, signal);
  const text = await response.text();
  if (!response.ok || !/^\d+$/.test(text)) throw new Error("The price is not known now. Try again in a minute.");
  return BigInt(text);
}

/** The receipt of an upload; its fields are those of the upload service. */
export type Receipt = Readonly<{ id: string }> & Readonly<Record<string, unknown>>;

/**
 * Sends an item. Rejects with the service's reason.
 *
 * @param onProgress - Called with the number of bytes that were sent.
 */
export function sendItem(bytes: Blob, onProgress: (sent: number) => void, signal: AbortSignal): Promise<Receipt> {
  const { promise, resolve, reject } = Promise.withResolvers<Receipt>();
  // `fetch` has no progress of what it sends.
  const request = new XMLHttpRequest();
  request.open("POST", routeUrl("upload/v1/tx"));
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.upload.addEventListener("progress", ({ loaded }) => onProgress(loaded));
  request.addEventListener("load", () => {
    const record = objectOf(request.responseText);
    const id = record["id"];
    // An item that the service has already gets its first receipt again.
    if (request.status === 200 && typeof id === "string") resolve({ ...record, id });
    else reject(new Error(reasonOf(request.status, request.responseText)));
  });
  request.addEventListener("error", () => reject(new Error("The connection was lost. Upload again: it continues.")));
  request.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
  signal.addEventListener("abort", () => request.abort(), { once: true });
  request.send(bytes);
  return promise;
}

/** How far an item is. */
export type ItemState = Readonly<{ status: string; info: string; reason?: string }>;

export async function readState(id: string, signal: AbortSignal): Promise<ItemState> {
  const { status, info, reason } = await readObject(`upload/v1/tx/${id}/status`, signal);
  return { status: String(status), info: String(info), ...(typeof reason === "string" ? { reason } : {}) };
}

async function readObject(path: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetchRoute(path, signal);
  const text = await response.text();
  if (!response.ok) throw new Error(reasonOf(response.status, text));
  return objectOf(text);
}

function reasonOf(status: number, text: string): string {
  if (status === 402) return "There are not enough credits for this upload.";
  const { message, error } = objectOf(text);
  const said = [message, error, text].find((each) => typeof each === "string" && each !== "");
  return `The upload service responded with status ${status}: ${String(said ?? "no reason").slice(0, 300)}`;
}
