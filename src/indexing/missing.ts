/**
 * Transactions that a block names and that no node would give: asked for again, later and later, until they
 * are there.
 *
 * The list is rows of the index, so a restart forgets none.
 * @module
 */
import { deserialize } from "bun:jsc";
import type { CheckedTransaction } from "../../workers/verify.ts";
import { type Block, readBlock } from "../arweave/block.ts";
import type { Id } from "../arweave/id.ts";
import type { Node } from "../chain/node.ts";
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
import { type FetchParts, fetchBlock } from "./fetch-block.ts";
import { type AskedTransaction, askTransaction, checkTransactions } from "./fetch-transaction.ts";

/** What the search is made of. */
export type MissingOptions = Readonly<{
  fetch: FetchParts;
  index: Pick<IndexWriterCalls, "addMissingTransaction" | "postponeMissing" | "setWeaveLayout">;
  reader: Pick<IndexReader, "dueMissing" | "blockText" | "transactionsOfBlock">;
  content: Pick<Content, "keep">;
  /** How often the list is looked at, milliseconds. */
  intervalMs: number;
  /** Called with what was found; `hasBundle` when one of them is a bundle that is now queued. */
  onFound: (ids: readonly Id[], hasBundle: boolean) => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/**
 * Asked for at once, so that a block whose thousand transactions are missing does not take the node for
 * itself.
 */
const askedAtOnce = 32;

/**
 * A block that stays incomplete for so long gets its last transaction without the position of its data.
 */
const layoutAttemptsMax = 10;

/**
 * A node that has just joined the fork may lack a transaction for seconds; one that was never seeded, for
 * ever.
 */
const waits: Omit<RetryPlan, "attempts"> = { firstMs: 1_000, longestMs: 60 * 60_000 };

/** Starts searching for what is missing. */
export function openMissing(options: MissingOptions): Loop {
  const { intervalMs, clock, random, log } = options;
  return openLoop({
    name: "missing transactions",
    step: (signal) => search(options, signal),
    intervalMs,
    backoff: { firstMs: 1_000, longestMs: 60_000 },
    stepTimeoutMs: 10 * 60_000,
    clock,
    random,
    log,
  });
}

type ValidTransaction = Extract<CheckedTransaction, { kind: "valid" }>;

/** A missing transaction that is there and valid, not yet in the index. */
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

/** Asks for transactions and verifies what came. */
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
 * Adds transactions to their block. The position of a block's data in the weave follows from all of its
 * transactions, so with the last of them the block is fetched and verified again as a whole; what that says
 * is written before the last is, so that a crash in between leaves it missing and the step is made again.
 */
async function addToBlock(
  height: number,
  found: readonly Found[],
  options: MissingOptions,
  signal: AbortSignal,
): Promise<void> {
  const text = options.reader.blockText(height)?.text;
  if (text === undefined) return; // Removed meanwhile, and its missing transactions with it.
  const block = readBlock(text);
  const isLast = options.reader.transactionsOfBlock(height).length + found.length >= block.txs.length;
  const layout = isLast ? await layOut(block, options, signal) : undefined;
  const isPatient = found.some(({ missing }) => missing.attempts < layoutAttemptsMax);
  if (isLast && layout === undefined && isPatient) {
    for (const { missing } of found) await postpone(missing, options);
    return;
  }
  // A fork that came meanwhile has missing transactions of its own.
  const ref = { height, hash: block.hash };
  if (layout !== undefined && !(await options.index.setWeaveLayout(ref, layout.spans, layout.checks))) return;
  const added: Found[] = [];
  for (const one of found) if (await add(one, ref, layout?.spans ?? [], options)) added.push(one);
  if (added.length === 0) return;
  options.onFound(
    added.map(({ missing }) => missing.id),
    added.some(({ valid }) => valid.isBundle),
  );
}

/** The position of a block's data, and what was checked of it; undefined when the block is incomplete. */
async function layOut(block: Block, { reader, fetch, log }: MissingOptions, signal: AbortSignal) {
  const { height, hash } = block;
  const question = {
    height,
    previous: async () => reader.blockText(height - 1)?.text,
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
    log.warn("a block that has missing transactions could not be laid out", { height, error });
    return undefined;
  }
}

function spanOf({ txIndex, weaveStart: start, weaveEnd: end }: TransactionRow): WeaveLayout {
  return start === undefined || end === undefined ? [] : [{ txIndex, start, end }];
}

const nobody: ReadonlySet<Node> = new Set();

/** A node that gave wrong bytes is distrusted and so asked last; none is left out for good. */
function ask({ id }: MissingRow, { fetch }: MissingOptions, signal: AbortSignal): Promise<AskedTransaction> {
  return askTransaction({ id, route: "tx", wrong: nobody }, fetch, signal);
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
  await index.postponeMissing(row.place, clock() + waitMs);
}
