/**
 * Pending transactions: those of the nodes' mempool are rows of the index at the pending height until a block
 * has them.
 *
 * A block that names one replaces its row; one that has left the mempool without a block is removed after a
 * while.
 * @module
 */

import type { CheckedTransaction } from "../../workers/verify.ts";
import { type Id, isId } from "../arweave/id.ts";
import type { Node } from "../chain/node.ts";
import type { Content } from "../content/content.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop, type StepOutcome } from "../lib/loop.ts";
import { type IndexReader, type PendingRow, transactionSignatureTypes } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import { pendingHeight } from "../store/index/place.ts";
import type { FetchParts } from "./fetch-block.ts";
import { askTransaction, checkTransactions, describeResponse } from "./fetch-transaction.ts";

/** What the watcher is made of. */
export type MempoolOptions = Readonly<{
  fetch: FetchParts;
  index: Pick<IndexWriterCalls, "addPending" | "removePending">;
  reader: Pick<IndexReader, "placeOf" | "page">;
  content: Pick<Content, "keep">;
  /** How often the mempool is looked at, milliseconds. */
  intervalMs: number;
  /** How long a transaction may be out of the mempool and of every block, milliseconds. */
  goneGraceMs: number;
  onPending: (ids: readonly Id[]) => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** Pending transactions that are stored; of a larger mempool, the first ones. */
const pendingMax = 10_000;

/** Fetched and verified in one step. */
const perStepMax = 200;

/** Rows of one page when what an earlier run left is looked up. */
const pageRows = 1_000;

type Watched = {
  /** Pending in the index, and since when they are not in the mempool. */
  readonly held: Map<Id, { goneSince: number | undefined }>;
  /** What was asked for and is no valid transaction: not asked for again while it stays in the mempool. */
  readonly rejected: Set<Id>;
  isLoaded: boolean;
};

/** The watcher at work. */
export type Mempool = Loop &
  Readonly<{
    /** To be called after a rollback: rows have gone. */
    reload: () => void;
    /** Removes pending transactions that are not among the ids, without the usual grace. Returns how many. */
    removeAllBut: (ids: ReadonlySet<string>) => Promise<number>;
  }>;

/** Starts watching the mempool. */
export function openMempool(options: MempoolOptions): Mempool {
  const { intervalMs, clock, random, log } = options;
  const watched: Watched = { held: new Map(), rejected: new Set(), isLoaded: false };
  const loop = openLoop({
    name: "mempool",
    step: (signal) => watch(options, watched, signal),
    intervalMs,
    backoff: { firstMs: 1_000, longestMs: 60_000 },
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
  const fresh = [...listed].filter((id) => isNew(id, options, watched)).slice(0, perStepMax);
  await addFresh(fresh, options, watched, signal);
  await removeGone(listed, options, watched);
  for (const id of watched.rejected) if (!listed.has(id)) watched.rejected.delete(id);
  return fresh.length === perStepMax ? "again" : "rest";
}

/** What an earlier run, or a rollback, left pending is watched as well, or nobody would ever remove it. */
function loadHeld(options: MempoolOptions, watched: Watched): void {
  for (const id of pendingOf(options)) watched.held.set(id, { goneSince: undefined });
  watched.isLoaded = true;
}

/** The newest pending transactions of the index, at most a page. */
function pendingOf({ reader }: MempoolOptions): Id[] {
  const columns = { tags: false, ownerKey: false, parent: false, block: false };
  const page = reader.page({ order: "desc", bundledIn: null, limit: pageRows, columns });
  return page.rows.filter(({ place }) => place.height === pendingHeight).map(({ id }) => id);
}

async function listPending({ fetch, log }: MempoolOptions, signal: AbortSignal): Promise<ReadonlySet<Id> | undefined> {
  const response = await fetch.nodes.ask((node, own) => node.pendingIds(own), signal);
  if (response.kind === "ok") return new Set(response.value.filter(isId).slice(0, pendingMax));
  log.debug("no node shows its mempool", { reason: describeResponse(response) });
  return undefined;
}

function isNew(id: Id, { reader }: MempoolOptions, { held, rejected }: Watched): boolean {
  return !held.has(id) && !rejected.has(id) && held.size < pendingMax && reader.placeOf(id) === undefined;
}

const nobody: ReadonlySet<Node> = new Set();

async function addFresh(
  ids: readonly Id[],
  options: MempoolOptions,
  watched: Watched,
  signal: AbortSignal,
): Promise<void> {
  const { fetch, index, content, log } = options;
  const asked = await Promise.all(
    ids.map((id) => askTransaction({ id, route: "unconfirmed_tx", wrong: nobody }, fetch, signal)),
  );
  const transactions = ids.flatMap((id, at) => {
    const response = asked[at];
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
 * Removes the pending rows of what has left the mempool, a while after it did: a block has taken it, and the
 * row waited beside the block's own for a reorganisation; or it was given up.
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
