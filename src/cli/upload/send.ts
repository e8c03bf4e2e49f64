/**
 * Items sent to an upload service: not again what it has, small ones in one request, large ones in parts; and their
 * receipts checked.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { readWinc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { receiptFault } from "../receipt-fault.ts";
import { objectIn, type ServiceResponse } from "../service-client.ts";
import type { StoredReceipts } from "../stored-receipts.ts";
import type { LocalItem, WholeItem } from "./item.ts";
import { forgetParts, type PartsSender, sendInParts } from "./parts.ts";

/** What sends items, and keeps what was promised for them. */
export type ItemSender = PartsSender & Readonly<{ receipts: StoredReceipts }>;

/** What became of an item. */
export type SentItem = Readonly<{
  id: Id;
  /** Whether the service had it already: nothing was sent, and nothing charged. */
  wasThere: boolean;
  /** What was charged, now or then. */
  winc: bigint;
  /** Of what was there, the first one, as it was kept here or is given again. */
  receipt: JsonObject | undefined;
  /** What is wrong with the one that is kept here, or that was given again. */
  receiptFault?: string;
}>;

/** Sends an item, unless the service has it. @throws Failure {reason} when the service refuses it. */
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
    throw new Failure("source_failed", { reason: `the receipt of ${item.id} is not good: ${fault}` });
  sender.receipts.keep(receipt, sender.client.url);
  return { id: item.id, wasThere: false, winc: wincIn(receipt), receipt };
}

type ReceiptFound = Pick<SentItem, "receipt" | "receiptFault">;

/**
 * The receipt that an earlier run has kept; else the service gives it again: a run that ends between the service's
 * receipt and its own file has paid for it.
 */
async function receiptOfKnown(sender: ItemSender, id: Id, signal: AbortSignal): Promise<ReceiptFound> {
  const { receipts, client } = sender;
  const stored = receipts.find(id, client.url);
  if (stored?.kind === "receipt") return { receipt: stored.receipt };
  const again = await askAgain(sender, id, signal);
  if (again.receipt !== undefined) receipts.keep(again.receipt, client.url);
  else if (stored !== undefined) return { receipt: undefined, receiptFault: stored.fault };
  return again;
}

/** Asks for a receipt that was given before. A service that does not give it again has taken the item all the same. */
async function askAgain({ client, semaphore }: ItemSender, id: Id, signal: AbortSignal): Promise<ReceiptFound> {
  const release = await semaphore.take(signal);
  try {
    const { status, value } = await client.get(`/tx/${id}/receipt`, signal);
    if (status !== 200 || !isJsonObject(value)) return { receipt: undefined };
    const fault = value["id"] === id ? receiptFault(value) : "it is for another item";
    if (fault === undefined) return { receipt: value };
    return {
      receipt: undefined,
      receiptFault: `the receipt of ${id} that ${client.url} gave is not good: ${fault}`,
    };
  } finally {
    release?.();
  }
}

/** What the service says of an item that it has; an item that failed there is sent again. */
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
