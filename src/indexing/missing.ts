/**
 * Missing transactions: a block lists them, but no node returned them. They are requested again with backoff.
 *
 * The list is a table of the index, so it survives a restart.
 * @module
 */
import { deserialize } from "bun:jsc";
import type { CheckedTransaction } from "../../workers/verify.ts";
import { type Block, readBlock } from "../arweave/block.ts";
import type { Id } from "../arweave/id.ts";
import type { Content } from "../content/content.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop, type StepOutcome } from "../lib/loop.ts";
import { type RetryPlan, retryWaitMs } from "../lib/retry.ts";
import type {
  BlockRows,
  BundleRow,
  IndexReader,
  MissingRow,
  TransactionRow,
  WeaveLayout,
} from "../store/index/index-types.ts";
import type { BlockRef } from "../store/index/index-writer.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import { type FetchParts, fetchBlock, indexedPrevious } from "./fetch-block.ts";
import { type AskedTransaction, askTransaction, checkTransactions } from "./fetch-transaction.ts";

export type MissingOptions = Readonly<{
  fetch: FetchParts;
  index: Pick<IndexWriterCalls, "addMissingTransaction" | "postponeMissing" | "setWeaveLayout">;
  reader: Pick<IndexReader, "block" | "dueMissing" | "blockText" | "transactionsOfBlock">;
  content: Pick<Content, "keep">;
  /** Interval between two polls of the list, milliseconds. */
  intervalMs: number;
  /** Called with the found transactions; `hasBundle` when one of them is a bundle, which is now queued. */
  onFound: (ids: readonly Id[], hasBundle: boolean) => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/**
 * Requests at once, so that a block with a thousand missing transactions does not occupy the node.
 */
const askedAtOnce = 32;

/**
 * After so many attempts, the last transaction of an incomplete block is added without the position of its data.
 */
const layoutAttemptsMax = 10;

/**
 * A node that has just joined the fork may lack a transaction for seconds. A transaction that was never seeded stays
 * missing.
 */
const waits: Omit<RetryPlan, "attempts"> = { firstMs: 1_000, longestMs: 60 * 60_000 };

/** Starts the search for missing transactions. */
export function openMissing(options: MissingOptions): Loop {
  const { intervalMs, clock, random, log } = options;
  return openLoop({
    name: "missing transactions",
    step: (signal) => search(options, signal),
    intervalMs,
    clock,
    random,
    log,
  });
}

type ValidTransaction = Extract<CheckedTransaction, { kind: "valid" }>;

/** A missing transaction that was found and verified, not yet in the index. */
type Found = Readonly<{ missing: MissingRow; valid: ValidTransaction }>;

async function search(options: MissingOptions, signal: AbortSignal): Promise<StepOutcome> {
  const due = options.reader.dueMissing(options.clock(), askedAtOnce);
  if (due.length === 0) return "rest";
  const found = await find(due, options, signal);
  const isFound = new Set(found.map(({ missing }) => missing));
  for (const row of due) if (!isFound.has(row)) await postpone(row, options);
  for (const [height, ofBlock] of Map.groupBy(found, ({ missing }) => missing.place.height))
    await addToBlock(height, ofBlock, options, signal);
  return "again";
}

/** Requests and verifies transactions. */
async function find(
  due: readonly MissingRow[],
  options: MissingOptions,
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const { fetch, log } = options;
  const asked = await Promise.all(due.map((row) => ask(row, options, signal)));
  const given = due.flatMap((missing, index) => {
    const response = asked[index];
    return response?.kind === "ok" ? [{ missing, response }] : [];
  });
  const transactions = given.map(({ missing, response }) => ({ id: missing.id, text: response.bytes }));
  const outcomes = await checkTransactions(transactions, fetch.pool, signal);
  return given.flatMap(({ missing, response }, index) => {
    const outcome = outcomes[index];
    if (outcome?.kind === "valid") return [{ missing, valid: outcome }];
    const reason = outcome?.reason ?? "it was not checked";
    log.error("transaction rejected", { id: missing.id, node: response.node.url, reason });
    fetch.nodes.distrust(response.node, `transaction ${missing.id}: ${reason}`);
    return [];
  });
}

/**
 * Adds transactions to their block. All transactions of a block determine the position of its data in the weave. With
 * the last of them the complete block is therefore fetched and verified again. Its layout is stored before the last
 * transaction, so that a crash in between repeats the step.
 */
async function addToBlock(
  height: number,
  found: readonly Found[],
  options: MissingOptions,
  signal: AbortSignal,
): Promise<void> {
  const stored = options.reader.block(height);
  if (stored === undefined) return; // Removed meanwhile, and its missing transactions with it.
  // Imported blocks have no text. Nodes return the positions of their data.
  const text = options.reader.blockText(height)?.text;
  const block = text === undefined ? undefined : readBlock(text);
  const known = options.reader.transactionsOfBlock(height).length + found.length;
  const isLast = block !== undefined && known >= block.txs.length;
  const layout = isLast ? await findLayout(block, options, signal) : undefined;
  const isPatient = found.some(({ missing }) => missing.attempts < layoutAttemptsMax);
  if (isLast && layout === undefined && isPatient) {
    for (const { missing } of found) await postpone(missing, options);
    return;
  }
  // After a reorg meanwhile, the other block has its own list.
  const ref = { height, hash: stored.hash };
  if (layout !== undefined && !(await options.index.setWeaveLayout(ref, layout.spans, layout.checks))) return;
  const added: Found[] = [];
  for (const one of found) if (await add(one, ref, layout?.spans ?? [], options)) added.push(one);
  if (added.length === 0) return;
  options.onFound(
    added.map(({ missing }) => missing.id),
    added.some(({ valid }) => valid.isBundle),
  );
}

/** The position of a block's data and the block's checks; undefined when the block is incomplete. */
async function findLayout(block: Block, { reader, fetch, log }: MissingOptions, signal: AbortSignal) {
  const { height, hash } = block;
  const question = {
    height,
    previous: indexedPrevious(reader.blockText(height - 1)?.text),
    follows: undefined,
    onText: () => undefined,
    isMainNet: false,
    isPatienceOver: true,
  };
  try {
    const { rows, ...fetched } = await fetchBlock(question, fetch, signal);
    if (fetched.hash !== hash || fetched.missing.length > 0) return undefined;
    const { transactions }: BlockRows = deserialize(rows);
    const checks = { checked: fetched.checked, unchecked: fetched.unchecked };
    return { spans: transactions.flatMap(spanOf), checks };
  } catch (error) {
    signal.throwIfAborted();
    log.warn("the layout of a block with missing transactions could not be computed", { height, error });
    return undefined;
  }
}

function spanOf({ txIndex, weaveStart: start, weaveEnd: end }: TransactionRow): WeaveLayout {
  return start === undefined || end === undefined ? [] : [{ txIndex, start, end }];
}

/** A node that returned wrong bytes is distrusted and so asked last; no node is excluded for good. */
function ask({ id }: MissingRow, { fetch }: MissingOptions, signal: AbortSignal): Promise<AskedTransaction> {
  return askTransaction({ id, route: "tx" }, fetch, signal);
}

async function add(
  { missing: { place, id }, valid: { row, isBundle, data } }: Found,
  block: BlockRef,
  spans: WeaveLayout,
  { index, content, log }: MissingOptions,
): Promise<boolean> {
  if (data !== undefined) await content.keep({ id, dataRoot: row.dataRoot, size: row.dataSize }, data.bytes);
  const { txIndex } = place;
  const span = spans.find((one) => one.txIndex === txIndex);
  const bundle: BundleRow = {
    id,
    place,
    parentOffset: null,
    headerSize: 0,
    size: row.dataSize,
    depth: 0,
    bypassFilter: false,
  };
  const isAdded = await index.addMissingTransaction(
    block,
    { txIndex, ...row, ...(span !== undefined && { weaveStart: span.start, weaveEnd: span.end }) },
    isBundle ? [bundle] : [],
  );
  if (isAdded) log.info("missing transaction found", { id, height: place.height });
  return isAdded;
}

async function postpone(row: MissingRow, { index, clock, random }: MissingOptions): Promise<void> {
  const waitMs = retryWaitMs({ ...waits, attempts: 1 }, row.attempts + 1, random);
  await index.postponeMissing(row.place, row.id, clock() + waitMs);
}
