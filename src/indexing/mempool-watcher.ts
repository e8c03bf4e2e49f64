/**
 * Pending transactions: transactions in the nodes' mempool are rows of the index at the pending height.
 *
 * A block with the transaction replaces the row. A transaction that left the mempool without a block is removed after a
 * grace period.
 * @module
 */
import type { CheckedTransaction } from "../../workers/verify.ts";
import { type Id, isId } from "../arweave/id.ts";
import type { Content } from "../content/content.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop, type StepOutcome } from "../lib/loop.ts";
import { type IndexReader, noColumns, type PendingRow, transactionSignatureTypes } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import { type Place, pendingHeight } from "../store/index/place.ts";
import type { FetchParts } from "./fetch-block.ts";
import { askTransaction, checkTransactions, describeResponse } from "./fetch-transaction.ts";

export type MempoolOptions = Readonly<{
  fetch: Omit<FetchParts, "bytes">;
  index: Pick<IndexWriterCalls, "addPending" | "removePending">;
  reader: Pick<IndexReader, "placeOf" | "page">;
  content: Pick<Content, "keep">;
  /** Interval between two polls of the mempool, milliseconds. */
  intervalMs: number;
  /** Time after which a transaction in no mempool and no block is removed, milliseconds. */
  goneGraceMs: number;
  onPending: (ids: readonly Id[]) => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** Pending transactions that are stored; of a larger mempool, the first ones. */
const pendingMax = 10_000;

/** Requested and not yet verified: with its data a transaction of format 1 takes up to 16 MiB, and is copied once. */
export const heldTransactionsMax = 8;

/** Fetched and verified in one step. */
const perStepMax = 200;

/** Rows per page when pending rows of an earlier run are loaded. */
const pageRows = 1_000;

type Watched = {
  /** Pending transactions of the index, and since when each is absent from the mempool. */
  readonly held: Map<Id, { goneSince: number | undefined }>;
  /** Invalid transactions: not requested again while they are in the mempool. */
  readonly rejected: Set<Id>;
  /** Transactions that a mempool lists and no node returned; those that were requested last at the end. */
  readonly lacking: Set<Id>;
  isLoaded: boolean;
};

export type Mempool = Loop &
  Readonly<{
    /** Loads the pending rows again. Call it after a rollback, which removes rows. */
    reload: () => void;
    /** Removes pending transactions that are not among the ids at once. Returns their number. */
    removeAllBut: (ids: ReadonlySet<string>) => Promise<number>;
  }>;

/** Starts watching the mempool. */
export function openMempool(options: MempoolOptions): Mempool {
  const { intervalMs, clock, random, log } = options;
  const watched: Watched = { held: new Map(), rejected: new Set(), lacking: new Set(), isLoaded: false };
  const loop = openLoop({
    name: "mempool",
    step: (signal) => watch(options, watched, signal),
    intervalMs,
    stepTimeoutMs: 5 * 60_000,
    clock,
    random,
    log,
  });
  return {
    ...loop,
    reload: () => {
      watched.held.clear();
      watched.isLoaded = false;
    },
    removeAllBut: async (ids) => {
      const gone = pendingOf(options).filter((id) => !ids.has(id));
      if (gone.length === 0) return 0;
      for (const id of gone) watched.held.delete(id);
      return await options.index.removePending(gone);
    },
  };
}

async function watch(options: MempoolOptions, watched: Watched, signal: AbortSignal): Promise<StepOutcome> {
  if (!watched.isLoaded) loadHeld(options, watched);
  const listed = await listPending(options, signal);
  if (listed === undefined) return "rest";
  for (const id of watched.lacking) if (!listed.has(id) || !isNew(id, options, watched)) watched.lacking.delete(id);
  const unasked = firstUnasked(listed, options, watched);
  // Those that no node returned are requested again, but only once a round, and after the others.
  const fresh = [...unasked, ...watched.lacking].slice(0, perStepMax);
  for (let at = 0; at < fresh.length; at += heldTransactionsMax)
    await addFresh(fresh.slice(at, at + heldTransactionsMax), options, watched, signal);
  await removeGone(listed, options, watched);
  for (const id of watched.rejected) if (!listed.has(id)) watched.rejected.delete(id);
  return unasked.length > perStepMax ? "again" : "rest";
}

/** Those to request in this step, and one more if there are more: each takes a look-up in the index. */
function firstUnasked(listed: ReadonlySet<Id>, options: MempoolOptions, watched: Watched): readonly Id[] {
  const unasked: Id[] = [];
  for (const id of listed) {
    if (!watched.lacking.has(id) && isNew(id, options, watched)) unasked.push(id);
    if (unasked.length > perStepMax) break;
  }
  return unasked;
}

/** Watches pending rows of an earlier run or a rollback too, so that they are removed in the end. */
function loadHeld(options: MempoolOptions, watched: Watched): void {
  for (const id of pendingOf(options)) watched.held.set(id, { goneSince: undefined });
  watched.isLoaded = true;
}

/** All pending transactions of the index. */
function pendingOf({ reader }: MempoolOptions): Id[] {
  const ids: Id[] = [];
  for (let after: Place | undefined; ; ) {
    const plan = { order: "desc", bundledIn: null, limit: pageRows, columns: noColumns } as const;
    const { rows } = reader.page(after === undefined ? plan : { ...plan, after });
    const pending = rows.filter(({ place }) => place.height === pendingHeight);
    for (const { id } of pending) ids.push(id);
    if (pending.length < pageRows) return ids;
    after = pending.at(-1)?.place;
  }
}

async function listPending({ fetch, log }: MempoolOptions, signal: AbortSignal): Promise<ReadonlySet<Id> | undefined> {
  const response = await fetch.nodes.ask((node, own) => node.pendingIds(own), signal);
  if (response.kind === "ok") return new Set(response.value.filter(isId).slice(0, pendingMax));
  log.debug("no node returned its mempool", { reason: describeResponse(response) });
  return undefined;
}

function isNew(id: Id, { reader }: MempoolOptions, { held, rejected }: Watched): boolean {
  return !held.has(id) && !rejected.has(id) && held.size < pendingMax && reader.placeOf(id) === undefined;
}

async function addFresh(
  ids: readonly Id[],
  options: MempoolOptions,
  watched: Watched,
  signal: AbortSignal,
): Promise<void> {
  const { fetch, index, content, log } = options;
  const asked = await Promise.all(ids.map((id) => askTransaction({ id, route: "unconfirmed_tx" }, fetch, signal)));
  const transactions = ids.flatMap((id, at) => {
    const response = asked[at];
    watched.lacking.delete(id);
    if (response?.kind !== "ok") watched.lacking.add(id);
    return response?.kind === "ok" ? [{ id, text: response.bytes }] : [];
  });
  if (transactions.length === 0) return;
  const outcomes = await checkTransactions(transactions, fetch.pool, signal);
  const rows: PendingRow[] = [];
  for (const [at, { id }] of transactions.entries()) {
    const outcome = outcomes[at];
    if (outcome?.kind !== "valid") {
      log.warn("pending transaction rejected", { id, reason: outcome?.reason });
      watched.rejected.add(id);
      continue;
    }
    const { row, data } = outcome;
    if (data !== undefined) await content.keep({ id, dataRoot: row.dataRoot, size: row.dataSize }, data.bytes);
    rows.push(pendingRowOf(row));
  }
  await index.addPending(rows);
  for (const { id } of rows) watched.held.set(id, { goneSince: undefined });
  if (rows.length > 0) options.onPending(rows.map(({ id }) => id));
}

function pendingRowOf(row: Extract<CheckedTransaction, { kind: "valid" }>["row"]): PendingRow {
  const { format, quantity, reward, dataRoot, text, dataAt } = row;
  return {
    kind: "transaction",
    id: row.id,
    signatureType: transactionSignatureTypes[row.signatureType],
    owner: decodeBase64url(row.owner) ?? new Uint8Array(0),
    ownerAddress: row.ownerAddress,
    target: row.target,
    anchor: row.lastTx,
    tags: row.tags,
    headerSize: 0,
    size: row.dataSize,
    digest: null,
    verified: true,
    transaction: { format, quantity, reward, dataRoot, text, ...(dataAt !== undefined && { dataAt }) },
  };
}

/**
 * Removes the pending rows of transactions that left the mempool, after a grace period. Either a block contains the
 * transaction, and its pending row was left for a reorg, or the transaction was dropped.
 */
async function removeGone(
  listed: ReadonlySet<Id>,
  { index, reader, clock, goneGraceMs, log }: MempoolOptions,
  { held }: Watched,
): Promise<void> {
  const now = clock();
  const gone: Id[] = [];
  for (const [id, watch] of held) {
    if (listed.has(id)) {
      watch.goneSince = undefined;
      continue;
    }
    watch.goneSince ??= now;
    if (now - watch.goneSince >= goneGraceMs) gone.push(id);
  }
  if (gone.length === 0) return;
  const given = gone.filter((id) => reader.placeOf(id)?.height === pendingHeight);
  await index.removePending(gone);
  for (const id of gone) held.delete(id);
  if (given.length > 0)
    log.info("pending transactions left the mempool without a block", {
      count: given.length,
      first: given[0],
    });
}
