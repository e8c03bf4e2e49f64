/**
 * Items sent to an upload service: not again what it has, small ones in one request, large ones in parts; and their
 * receipts checked.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { readWinc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import type { KeptReceipts } from "../kept-receipts.ts";
import { receiptFault } from "../receipt-fault.ts";
import { objectIn, type ServiceAnswer } from "../service-client.ts";
import type { LocalItem, WholeItem } from "./item.ts";
import { type PartsSender, sendInParts } from "./parts.ts";

/** What sends items, and keeps what was promised for them. */
export type ItemSender = PartsSender & Readonly<{ receipts: KeptReceipts }>;

/** What became of an item. */
export type SentItem = Readonly<{
  id: Id;
  /** Whether the service had it already: nothing was sent, and nothing charged. */
  wasThere: boolean;
  /** What was charged, now or then. */
  winc: bigint;
  /** Of what was there, the one that an earlier run was given, if it was given here. */
  receipt: JsonObject | undefined;
  /** What is wrong with the one that is kept here. */
  receiptFault?: string;
}>;

/** Sends an item, unless the service has it. @throws Failure {reason} when the service refuses it. */
export async function sendItem(sender: ItemSender, item: LocalItem, signal: AbortSignal): Promise<SentItem> {
  const known = await findItem(sender, item.id, signal);
  if (known !== undefined) {
    sender.onThere(item.size);
    return { id: item.id, wasThere: true, winc: wincIn(known), ...keptFor(sender, item.id) };
  }
  const receipt =
    item.kind === "whole" ? await sendWhole(sender, item, signal) : await sendInParts(sender, item, signal);
  const fault = receipt["id"] === item.id ? receiptFault(receipt) : "it is for another item";
  if (fault !== undefined)
    throw new Failure("source_failed", { reason: `the receipt of ${item.id} is not good: ${fault}` });
  sender.receipts.keep(receipt, sender.client.url);
  return { id: item.id, wasThere: false, winc: wincIn(receipt), receipt };
}

/** What an earlier run has kept. */
function keptFor({ receipts, client }: ItemSender, id: Id): Pick<SentItem, "receipt" | "receiptFault"> {
  const kept = receipts.find(id, client.url);
  if (kept?.kind === "damaged") return { receipt: undefined, receiptFault: kept.fault };
  return { receipt: kept?.receipt };
}

/** What the service says of an item that it has; an item that failed there is sent again. */
async function findItem(
  { client, turns }: PartsSender,
  id: Id,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const endTurn = await turns.take(signal);
  try {
    const { status, value }: ServiceAnswer = await client.get(`/tx/${id}/status`, signal);
    return status === 200 && isJsonObject(value) && value["status"] !== "FAILED" ? value : undefined;
  } finally {
    endTurn?.();
  }
}

async function sendWhole(
  { client, turns, onSent }: PartsSender,
  { bytes, size }: WholeItem,
  signal: AbortSignal,
): Promise<JsonObject> {
  const endTurn = await turns.take(signal);
  try {
    const headers = { "content-type": "application/octet-stream" };
    const receipt = objectIn(await client.post("/tx", bytes, headers, signal), client.url);
    onSent(size);
    return receipt;
  } finally {
    endTurn?.();
  }
}

function wincIn({ winc }: JsonObject): bigint {
  return (typeof winc === "string" ? readWinc(winc) : undefined) ?? 0n;
}
