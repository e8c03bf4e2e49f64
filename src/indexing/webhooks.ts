/**
 * Webhooks: report additions to the index to the operator's servers, at least once and in order for each server.
 *
 * The key of an event is stored at once. A loop applies the filters to small batches of events and stores a delivery
 * for each target. A loop for each target sends its deliveries one after the other, so a failing target delays only its
 * own. Targets may be on this machine or network, because the operator chose them; redirects are not followed.
 * Source: docs/decisions/041-webhooks.md; Standard Webhooks 1.0 (headers, signature).
 * @module
 */
import { setImmediate } from "node:timers/promises";
import { type Filter, type FilterSubject, matches } from "../arweave/filter.ts";
import { type Id, readId } from "../arweave/id.ts";
import { tagValue } from "../arweave/tags.ts";
import { Failure } from "../failures.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { failureOf, type Http } from "../lib/http-client.ts";
import { isJsonObject, readJson, writeJson } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop } from "../lib/loop.ts";
import type { IndexReader, PageRow } from "../store/index/index-types.ts";
import { pendingHeight } from "../store/index/place.ts";
import type { AnnouncedRow, Announcement, Delivery, Outbox, OutboxRow } from "../store/outbox.ts";
import { itemAttribute } from "./bundle-filter.ts";
import { blocksPerWriteMax } from "./follow.ts";

export type WebhooksOptions = Readonly<{
  targets: readonly string[];
  /** Which transactions, data items and blocks are reported. */
  indexFilter: Filter;
  blockFilter: Filter;
  /** The key that signs deliveries: text, or `whsec_` and base64. Undefined leaves them unsigned. */
  secret: string | undefined;
  outbox: Outbox;
  reader: Pick<IndexReader, "row" | "locate" | "blockText" | "tip" | "transactionsOfBlock">;
  http: Http;
  clock: Clock;
  random: () => number;
  log: Log;
  times?: Partial<WebhookTimes>;
}>;

/** Intervals, milliseconds. */
export type WebhookTimes = Readonly<{
  /** The first wait after a delivery failed; later ones double. */
  retryMs: number;
  longestMs: number;
  /** Between two polls without a wake-up. */
  restMs: number;
}>;

const timesDefault: WebhookTimes = { retryMs: 1_000, longestMs: 5 * 60_000, restMs: 30_000 };

/** Running webhooks. The functions that begin with `on` are called when the index changes. */
export type Webhooks = Readonly<{
  onBlock: (block: Readonly<{ height: number; ids: readonly Id[] }>) => void;
  onItems: (ids: readonly Id[]) => void;
  /** A transaction that an operator requested is announced once: its block does not announce it again. */
  onQueuedTransaction: (id: Id) => void;
  onRollback: (fromHeight: number) => void;
  /** Pending deliveries, for metrics. */
  waiting: () => number;
  close: () => Promise<void>;
}>;

/** An event that could not be delivered for so long is dropped. Seconds. */
export const deliveryAgeMax = 24 * 60 * 60;

/** A delivery that its target has rejected this often is dropped, because the deliveries after it wait. */
export const rejectionsMax = 5;

/**
 * Announcements per iteration of the event loop; each is one look-up in the index. Fewer where bodies are large: items
 * may have a megabyte of tags. Characters.
 */
const portion = 25;
const portionCharacters = 256 * 2 ** 10;

/** Announcements in memory that the disk did not take. */
const unstoredMax = 20_000;

const sendTimeoutMs = 30_000;

/** Statuses of 400 to 499 that may pass: they concern the time or the address, not the delivery. */
const passing: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 408, 421, 423, 425, 429]);

/** Starts webhooks, and announces blocks that were not announced when the process ended. */
export function openWebhooks(options: WebhooksOptions): Webhooks {
  const { outbox, log } = options;
  const times = { ...timesDefault, ...options.times };
  if (options.secret === undefined) log.warn("webhooks are not signed: WEBHOOK_SECRET is unset");
  const senders = options.targets.map((target) => openSender(target, options, times));
  // A sender whose target fails keeps its backoff: new deliveries come after the one that failed anyway.
  const wakeSenders = () => {
    for (const sender of senders) if (sender.status().failures === 0) sender.wake();
  };
  const chooser = loopOf("webhooks", options, times, () => chooseSome(options, wakeSenders));

  let unstored: readonly Announcement[] = [];
  // Never throws: the follower must still drop the cached responses of all other blocks.
  const announce = (rows: readonly Announcement[], height?: number) => {
    const all = [...unstored, ...rows];
    try {
      const lost = outbox.announce(all, height);
      if (lost > 0) log.error("webhooks: too many announcements, the oldest were dropped", { count: lost });
      unstored = [];
      chooser.wake();
    } catch (error) {
      unstored = all.slice(-unstoredMax);
      const counts = { count: unstored.length, dropped: all.length - unstored.length };
      log.error("webhooks: announcements cannot be stored, and wait for the next ones", { ...counts, error });
    }
  };
  // Events that no delivery would report are not announced.
  const reported = (ids: readonly Id[]) => (options.indexFilter.kind === "never" ? [] : ids);
  const onBlock: Webhooks["onBlock"] = ({ height, ids }) => {
    const transactions = reported(ids).map((id) => ({ kind: "block transaction", key: id }) as const);
    announce([{ kind: "block", key: String(height) }, ...transactions], height);
  };
  for (const block of missedBlocks(options)) onBlock(block);
  return {
    onBlock,
    onItems: (ids) => {
      const items = reported(ids).map((id) => ({ kind: "item", key: id }) as const);
      if (items.length > 0) announce(items);
    },
    onQueuedTransaction: (id) => {
      const announced = reported([id]).map((key) => ({ kind: "queued transaction", key }) as const);
      if (announced.length > 0) announce(announced);
    },
    onRollback: outbox.rollback,
    waiting: () => outbox.counts().deliveries,
    close: async () => {
      await Promise.all([chooser, ...senders].map((loop) => loop.close()));
    },
  };
}

/** Blocks since the last announced one: at most those of one write. */
function missedBlocks({ outbox, reader }: WebhooksOptions): { height: number; ids: Id[] }[] {
  const known = outbox.height();
  const tip = reader.tip()?.height;
  if (known === undefined || tip === undefined) return [];
  const first = Math.max(known + 1, tip - blocksPerWriteMax + 1);
  return Array.from({ length: Math.max(0, tip - first + 1) }, (_, index) => ({
    height: first + index,
    ids: reader.transactionsOfBlock(first + index).map(({ id }) => id),
  }));
}

async function chooseSome(options: WebhooksOptions, wakeSenders: () => void): Promise<"again" | "rest"> {
  const { outbox, reader, log } = options;
  const rows = outbox.announced(portion);
  if (rows.length === 0) return "rest";
  const filters = { index: options.indexFilter, block: options.blockFilter };
  const deliveries: Delivery[] = [];
  let [upTo, characters] = [0, 0];
  for (const row of rows) {
    const delivery = deliveryOf(row, filters, reader);
    if (delivery !== undefined) deliveries.push(delivery);
    upTo = row.number;
    characters += delivery?.body.length ?? 0;
    if (characters >= portionCharacters) break;
  }
  const lost = outbox.choose(upTo, deliveries);
  if (lost > 0) log.error("webhooks: the outbox is full, the oldest deliveries were dropped", { count: lost });
  if (deliveries.length > 0) wakeSenders();
  await setImmediate();
  return "again";
}

function openSender(target: string, options: WebhooksOptions, times: WebhookTimes): Loop {
  const { outbox, log } = options;
  const name = `webhook ${new URL(target).origin}`; // a path may hold a secret
  return loopOf(name, options, times, async (signal) => {
    const late = outbox.expire(deliveryAgeMax);
    if (late > 0) log.error("webhooks: deliveries expired and were dropped", { count: late });
    const delivery = outbox.first(target);
    if (delivery === undefined) return "rest";
    const outcome = await send(target, delivery, options, signal);
    if (outcome === "rejected" && delivery.rejections + 1 < rejectionsMax) {
      outbox.rejected(delivery.number);
      throw new Failure("source_failed", { target: name, reason: "rejected", number: delivery.number });
    }
    if (outcome === "rejected")
      log.error(`${name} rejected a delivery repeatedly; it was dropped`, { event: delivery.event });
    outbox.remove(delivery.number);
    return "again";
  });
}

/** Sends a delivery. @throws Failure when it did not arrive, or when the target may accept it later. */
async function send(
  target: string,
  delivery: OutboxRow,
  { http, secret, clock }: WebhooksOptions,
  signal: AbortSignal,
): Promise<"taken" | "rejected"> {
  const headers = deliveryHeaders(delivery, unixSeconds(clock), secret);
  const body = new Uint8Array(new TextEncoder().encode(delivery.body));
  const response = await http.stream({ method: "POST", url: target, headers, body }, signal);
  if (response.kind === "fault") throw failureOf(response);
  response.cancel(); // the body is not read
  const { status } = response;
  if (status >= 200 && status < 300) return "taken";
  if (status >= 400 && status < 500 && !passing.has(status)) return "rejected";
  throw new Failure("source_failed", { reason: "status", status });
}

/**
 * The headers of a delivery, after Standard Webhooks: the signature covers id, time and body.
 *
 * @param at - Unix seconds.
 */
export function deliveryHeaders(
  { number, createdAt, body }: Pick<OutboxRow, "number" | "createdAt" | "body">,
  at: number,
  secret: string | undefined,
): Readonly<Record<string, string>> {
  const id = `msg_${createdAt}_${number}`; // the same however often it is sent
  const headers = { "content-type": "application/json", "webhook-id": id, "webhook-timestamp": String(at) };
  if (secret === undefined) return headers;
  const signature = new Bun.CryptoHasher("sha256", keyOf(secret)).update(`${id}.${at}.${body}`).digest("base64");
  return { ...headers, "webhook-signature": `v1,${signature}` };
}

function keyOf(secret: string): Buffer {
  return secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
}

function loopOf(
  name: string,
  { clock, random, log }: WebhooksOptions,
  { retryMs, longestMs, restMs }: WebhookTimes,
  step: Parameters<typeof openLoop>[0]["step"],
): Loop {
  const backoff = { firstMs: retryMs, longestMs };
  return openLoop({
    name,
    step,
    intervalMs: restMs,
    backoff,
    stepTimeoutMs: sendTimeoutMs,
    clock,
    random,
    log,
  });
}

/** The filters of events. */
export type DeliveryFilters = Readonly<{ index: Filter; block: Filter }>;

export type DeliveryReader = Pick<IndexReader, "row" | "locate" | "blockText">;

/**
 * The delivery for an announcement.
 *
 * @returns Undefined when no filter chooses it, or when the index no longer has it.
 */
export function deliveryOf(
  { kind, key }: AnnouncedRow,
  filters: DeliveryFilters,
  reader: DeliveryReader,
): Delivery | undefined {
  if (kind === "block") return blockDelivery(Number(key), filters.block, reader);
  const id = filters.index.kind === "never" ? undefined : readId(key);
  const row = id === undefined ? undefined : reader.row(id);
  // A pending transaction is reported when it is in a block.
  if (row === undefined || (row.kind === "transaction" && row.place.height === pendingHeight)) return undefined;
  return matches(filters.index, subjectOf(row, reader)) ? rowDelivery(row) : undefined;
}

function rowDelivery(row: PageRow): Delivery {
  const event = row.kind === "item" ? "ans104-data-item-indexed" : "tx-indexed";
  const { id, ownerAddress, target, tags, size, place } = row;
  const data = {
    id,
    owner_address: ownerAddress,
    target,
    data_size: size,
    height: place.height === pendingHeight ? null : place.height,
    content_type: tagValue(tags, "Content-Type") ?? null,
    tags: tags.map(({ name, value }) => ({ name, value })),
    ...(row.kind === "item" ? itemData(row) : transactionData(row)),
  };
  return { event, body: writeJson({ event, data }) };
}

function itemData({ parentId, anchor, signatureType }: PageRow) {
  return { parent_id: parentId ?? null, anchor, signature_type: signatureType };
}

function transactionData({ anchor, quantity, reward, format }: PageRow) {
  return { last_tx: anchor, quantity: String(quantity), reward: String(reward), format };
}

function blockDelivery(height: number, filter: Filter, reader: DeliveryReader): Delivery | undefined {
  if (filter.kind === "never") return undefined;
  const stored = reader.blockText(height);
  const fields = stored === undefined ? undefined : readJson(stored.text);
  if (fields === undefined || !isJsonObject(fields)) return undefined;
  const subject: FilterSubject = { tags: [], hasParent: false, attribute: (name) => fields[name] };
  if (!matches(filter, subject)) return undefined;
  const { indep_hash = null, previous_block = null, timestamp = null, txs = [] } = fields;
  const event = "block-indexed";
  return { event, body: writeJson({ event, data: { height, indep_hash, previous_block, timestamp, txs } }) };
}

function subjectOf(row: PageRow, reader: DeliveryReader): FilterSubject {
  const { tags, kind } = row;
  return { tags, hasParent: kind === "item", attribute: (name) => attributeOf(row, name, reader) };
}

/** The attributes of index filters: amounts of a transaction are decimal text. */
function attributeOf(row: PageRow, name: string, reader: DeliveryReader): unknown {
  if (row.kind === "item") return itemAttribute(row, name, () => reader.locate(row.id)?.rootId);
  switch (name) {
    case "id":
    case "owner":
    case "owner_address":
    case "target":
    case "content_type":
      return itemAttribute(row, name, () => undefined);
    case "data_size":
      return String(row.size);
    case "last_tx":
    case "quantity":
    case "reward":
    case "format":
      return transactionData({ ...row })[name];
    default:
      return undefined;
  }
}
