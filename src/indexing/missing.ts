/**
 * Transactions that a block names and that no node would give: asked for again, later and later, until they are there.
 *
 * The list is rows of the index, so a restart forgets none.
 * @module
 */
import { deserialize } from "bun:jsc";
import { readBlock } from "../arweave/block.ts";
import type { Id } from "../arweave/id.ts";
import type { Node } from "../chain/node.ts";
import type { Content } from "../content/content.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type RetryPlan, retryWaitMs } from "../lib/retry.ts";
import type { IndexReader } from "../store/index-reader.ts";
import type { IndexWriterCalls } from "../store/index-thread.ts";
import type { BlockRows, BundleRow, MissingRow, TransactionRow, WeaveLayout } from "../store/rows.ts";
import type { CheckedTransaction, CheckTransactionsJob } from "../store/thread-jobs.ts";
import { type FetchParts, fetchBlock } from "./fetch-block.ts";
import { type AskedTransaction, askTransaction } from "./fetch-transaction.ts";
import { type Loop, openLoop, type StepOutcome } from "./supervise.ts";

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

/** Asked for at once, so that a block whose thousand transactions are missing does not take the node for itself. */
const askedAtOnce = 32;

/** A node that has just joined the fork may lack a transaction for seconds; one that was never seeded, for ever. */
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

async function search(options: MissingOptions, signal: AbortSignal): Promise<StepOutcome> {
  const due = options.reader.dueMissing(options.clock(), askedAtOnce);
  if (due.length === 0) return "rest";
  const asked = await Promise.all(due.map((row) => ask(row, options, signal)));
  const found = due.flatMap((row, index) => {
    const answer = asked[index];
    return answer?.kind === "ok" ? [{ row, answer }] : [];
  });
  const outcomes = await check(
    found.map(({ row, answer }) => ({ id: row.id, text: answer.bytes })),
    options,
    signal,
  );
  const added: CheckedTransaction[] = [];
  for (const [index, { row, answer }] of found.entries()) {
    const outcome = outcomes[index];
    if (outcome?.kind === "valid" && (await add(row, outcome, options))) added.push(outcome);
    if (outcome?.kind === "invalid") {
      options.log.error("transaction refused", { id: row.id, node: answer.node.url, reason: outcome.reason });
      options.fetch.nodes.distrust(answer.node, `transaction ${row.id}: ${outcome.reason}`);
      await postpone(row, options);
    }
  }
  for (const [index, row] of due.entries()) if (asked[index]?.kind !== "ok") await postpone(row, options);
  tell(added, options);
  const heights = new Set(found.map(({ row }) => row.place.height));
  for (const height of heights) await layOut(height, options, signal);
  return "again";
}

/**
 * Where a block's data lies in the weave follows from all of its transactions: once the last is there, the block is fetched
 * and verified again as a whole. When that fails the rows are right all the same; where the data lies is then asked of nodes.
 */
async function layOut(height: number, options: MissingOptions, signal: AbortSignal): Promise<void> {
  const { reader, index, fetch, log } = options;
  const text = reader.blockText(height)?.text;
  if (text === undefined || reader.transactionsOfBlock(height).length < readBlock(text).txs.length) return;
  const question = {
    height,
    previous: async () => reader.blockText(height - 1)?.text,
    follows: undefined,
    onText: () => undefined,
    isMainNet: false,
    isPatienceOver: true,
  };
  try {
    const block = await fetchBlock(question, fetch, signal);
    if (block.hash !== readBlock(text).hash || block.missing.length > 0) return;
    const rows: BlockRows = deserialize(block.rows);
    const { checked, unchecked } = block;
    await index.setWeaveLayout(height, rows.transactions.flatMap(spanOf), { checked, unchecked });
  } catch (error) {
    signal.throwIfAborted();
    log.warn("a block that had missing transactions could not be laid out", { height, error });
  }
}

function spanOf({ txIndex, weaveStart: start, weaveEnd: end }: TransactionRow): WeaveLayout {
  return start === undefined || end === undefined ? [] : [{ txIndex, start, end }];
}

const nobody: ReadonlySet<Node> = new Set();

/** A node that gave wrong bytes is distrusted and so asked last; none is left out for good. */
function ask({ id }: MissingRow, { fetch }: MissingOptions, signal: AbortSignal): Promise<AskedTransaction> {
  return askTransaction({ id, route: "tx", wrong: nobody }, fetch.nodes, fetch.random, signal);
}

function check(
  transactions: CheckTransactionsJob["transactions"],
  { fetch }: MissingOptions,
  signal: AbortSignal,
): Promise<readonly CheckedTransaction[]> {
  if (transactions.length === 0) return Promise.resolve([]);
  const job: CheckTransactionsJob = { transactions };
  return fetch.pool.run<readonly CheckedTransaction[]>("checkTransactions", job, { signal });
}

async function add(
  { place, id }: MissingRow,
  { row, isBundle, data }: Extract<CheckedTransaction, { kind: "valid" }>,
  { index, content, log }: MissingOptions,
): Promise<boolean> {
  if (data !== undefined) await content.keep({ id, dataRoot: "", size: data.bytes.length }, data.bytes);
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
    place,
    { txIndex: place.txIndex, ...row },
    isBundle ? [bundle] : [],
  );
  if (isAdded) log.info("missing transaction found", { id, height: place.height });
  return isAdded;
}

async function postpone(row: MissingRow, { index, clock, random }: MissingOptions): Promise<void> {
  const waitMs = retryWaitMs({ ...waits, attempts: 1 }, row.attempts + 1, random);
  await index.postponeMissing(row.place, clock() + waitMs);
}

function tell(added: readonly CheckedTransaction[], { onFound }: MissingOptions): void {
  const valid = added.filter((outcome) => outcome.kind === "valid");
  if (valid.length === 0) return;
  onFound(
    valid.map(({ row }) => row.id),
    valid.some(({ isBundle }) => isBundle),
  );
}
