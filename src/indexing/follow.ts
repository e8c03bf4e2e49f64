/**
 * The follower keeps the index at the tip of the chain, block by block in order, through forks of any depth.
 *
 * A block is stored when it is verified and follows the previous one. After a reorg, the first block of the other
 * branch is fetched and linked before any block is removed. Every failure is retried with backoff, and its reason is in
 * the status.
 * Source: docs/reference/node-api.md#following; docs/reference/threats.md (N3).
 * @module
 */
import type { Content } from "../content/content.ts";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, type LoopStatus, openLoop, type StepOutcome } from "../lib/loop.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import { type BlockWindow, openWindow } from "./block-window.ts";
import { type FetchedBlock, type FetchParts, fetchBlock, indexedPrevious } from "./fetch-block.ts";
import { findCommonAncestor, latestDepth, planFollow, type StartHeight, type Tip } from "./follow-plan.ts";
import type { ChainChoice, ChosenChain } from "./heaviest-chain.ts";

/** A block that was added to the index. */
export type FollowedBlock = Pick<
  FetchedBlock,
  "height" | "hash" | "ids" | "bundleCount" | "missing" | "checked" | "unchecked"
>;

export type FollowerOptions = Readonly<{
  choice: ChainChoice;
  fetch: FetchParts;
  index: Pick<IndexWriterCalls, "addBlocks" | "rollback">;
  reader: Pick<IndexReader, "tip" | "block" | "blockText" | "blocks" | "counts">;
  content: Pick<Content, "keep">;
  start: StartHeight;
  /** Last height to index, inclusive. */
  stop: number | undefined;
  /** Interval between two polls of the nodes' tip, milliseconds. */
  intervalMs: number;
  /** The first wait after a failure; later ones double, milliseconds. */
  retryMs: number;
  /**
   * Time for which the nodes' tip may be another block at or below our height before their chain is followed,
   * milliseconds.
   */
  shrinkGraceMs: number;
  onBlock: (block: FollowedBlock) => void;
  /**
   * Called before blocks from a height on are removed. Resolves when all work on them has ended.
   */
  beforeRollback: (fromHeight: number) => Promise<void>;
  /** Called when blocks from a height on have been removed. */
  onRollback: (fromHeight: number) => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** The status of the follower. */
export type FollowStatus = LoopStatus &
  Readonly<{
    /** Highest block in the index. */
    ours: Tip | undefined;
    /** Highest block of the nodes, as last reported. */
    theirHeight: number | undefined;
    /** Blocks that the index lags behind; undefined until both are known. Negative when the nodes lag. */
    lag: number | undefined;
    /** When the index last gained a block, Unix milliseconds. */
    lastBlockAt: number | undefined;
  }>;

export type Follower = Readonly<{
  /** Polls the nodes now. */
  wake: () => void;
  status: () => FollowStatus;
  close: () => Promise<void>;
}>;

/** Blocks fetched at once while catching up, and the memory limit of the waiting ones. */
const blocksAhead = 16;
const heldBytesMax = 64 * 2 ** 20;

/** Most blocks of one write. They are announced after it, so that a crash may leave all of them unannounced. */
export const blocksPerWriteMax = blocksAhead;

/** No block is added to a write that has this much: a write should take less than 100 ms. Memory in bytes. */
const writeMax = { blocks: blocksPerWriteMax, transactions: 500, heldBytes: 16 * 2 ** 20 } as const;

/** After this many failures at one height, transactions that nodes fail to serve count as missing. */
const patience = 5;

/** Most blocks of one step, so that the tip is polled while catching up. */
const blocksPerStepMax = 1_000;

/**
 * Time for which the result of a comparison with a node's block stays valid while both tips are unchanged.
 * Milliseconds.
 */
const compareIntervalMs = 30_000;

const retryLongestMs = 30_000;
const stepTimeoutMs = 30 * 60_000;

/** Starts following. */
export function openFollower(options: FollowerOptions): Follower {
  const { reader, clock, intervalMs, random, log } = options;
  const state: FollowState = {
    theirHeight: undefined,
    lastBlockAt: undefined,
    failedHeight: -1,
    failures: 0,
    asideSince: undefined,
    compared: undefined,
    onBlock: createProgress(options),
  };
  const loop: Loop = openLoop({
    name: "follow",
    step: (signal) => follow(options, state, signal),
    intervalMs,
    backoff: { firstMs: options.retryMs, longestMs: retryLongestMs },
    stepTimeoutMs,
    clock,
    random,
    log,
  });
  return {
    wake: loop.wake,
    status: () => {
      const ours = reader.tip();
      const { theirHeight, lastBlockAt } = state;
      const lag = ours === undefined || theirHeight === undefined ? undefined : theirHeight - ours.height;
      return { ...loop.status(), ours, theirHeight, lag, lastBlockAt };
    },
    close: loop.close,
  };
}

type FollowState = {
  theirHeight: number | undefined;
  lastBlockAt: number | undefined;
  /** The height at which following failed last, and how often in a row. */
  failedHeight: number;
  failures: number;
  /** Since when the nodes' tip is another block at or below our height. */
  asideSince: number | undefined;
  /** The last comparison, good while both tips stay as they are. */
  compared: Readonly<{ ours: string; theirs: string; differs: boolean; at: number }> | undefined;
  /** Reports the progress. */
  onBlock: (height: number, theirHeight: number | undefined) => void;
};

/** Interval between two lines of progress, and the blocks behind from which on there are any. Milliseconds. */
const progressMs = 10_000;
const progressLag = 10;

/** Logs how far the index is, while it is behind, and when it has caught up. */
export function createProgress({
  clock,
  reader,
  log,
}: Pick<FollowerOptions, "clock" | "log"> & Readonly<{ reader: Pick<IndexReader, "counts"> }>): FollowState["onBlock"] {
  let since: Readonly<{ at: number; height: number; items: number }> | undefined;
  let hasReported = false;
  return (height, tip = height) => {
    const now = clock();
    const lag = tip - height;
    since ??= { at: now, height, items: reader.counts().items };
    if (lag < progressLag) {
      if (hasReported && lag <= 0) log.info("caught up with the chain", { height });
      if (lag <= 0) [since, hasReported] = [undefined, false];
      return;
    }
    const seconds = (now - since.at) / 1_000;
    if (seconds * 1_000 < progressMs) return;
    const { items } = reader.counts();
    const blocksPerSecond = (height - since.height) / seconds;
    log.info("catching up with the chain", {
      height,
      tip,
      blocksPerSecond: Math.round(blocksPerSecond * 10) / 10,
      itemsPerSecond: Math.round((items - since.items) / seconds),
      secondsLeft: Math.round(lag / blocksPerSecond),
    });
    since = { at: now, height, items };
    hasReported = true;
  };
}

async function follow(options: FollowerOptions, state: FollowState, signal: AbortSignal): Promise<StepOutcome> {
  const chosen = await options.choice.choose(signal);
  const theirs = chosen.tip;
  state.theirHeight = theirs.height;
  const ours = options.reader.tip();
  // Where nodes disagree, only a heavier chain moves the index.
  if (ours !== undefined && chosen.isDisputed && !chosen.isHeavier) {
    state.asideSince = undefined;
    return "rest";
  }
  const plan = planFollow({ ours, theirs, start: options.start, stop: options.stop });
  if (ours !== undefined && plan.kind === "compare") return compare(plan.height, ours, chosen, options, state, signal);
  state.asideSince = undefined;
  if (plan.kind !== "follow") return "rest";
  await followRange(plan.from, Math.min(plan.to, plan.from + blocksPerStepMax - 1), chosen, options, state, signal);
  return "again";
}

/**
 * The nodes' tip is another block at or below our height. Either a node lags, perhaps on an orphaned block, or the
 * chain was reorganized or lost blocks. A reorganized chain grows, and its next block shows the reorg. A tip that stays
 * different for long is followed; one that is heavier at once.
 */
async function compare(
  height: number,
  ours: Tip,
  chosen: ChosenChain,
  options: FollowerOptions,
  state: FollowState,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const differs = await isReorg(height, ours, chosen, options, state, signal);
  // With a tip that is above ours or heavier, the comparison is conclusive.
  const isAbove = chosen.tip.height > ours.height || chosen.isHeavier;
  if (isAbove && differs === false) state.asideSince = undefined;
  if (differs === undefined || (isAbove && !differs)) return "rest";
  const now = options.clock();
  state.asideSince ??= now;
  if (!isAbove && now - state.asideSince < options.shrinkGraceMs) return "rest";
  state.asideSince = undefined;
  state.compared = undefined;
  if (differs) await handleReorg(height, chosen, options, state, signal);
  else await removeFrom(height + 1, options);
  return "again";
}

/**
 * Whether the nodes' block at a height differs from ours; undefined when they have no block there.
 */
async function isReorg(
  height: number,
  ours: Tip,
  { tip: theirs, questions }: ChosenChain,
  { reader, clock }: FollowerOptions,
  state: FollowState,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const tips = { ours: ours.hash, theirs: `${theirs.height} ${theirs.hash}` };
  const { compared } = state;
  const isKnown = compared?.ours === tips.ours && compared.theirs === tips.theirs;
  if (isKnown && clock() - compared.at < compareIntervalMs) return compared.differs;
  const hash = await questions.hashAt(height, signal);
  if (hash === undefined) return undefined;
  const differs = hash !== reader.block(height)?.hash;
  state.compared = { ...tips, differs, at: clock() };
  return differs;
}

async function followRange(
  from: number,
  to: number,
  chosen: ChosenChain,
  options: FollowerOptions,
  state: FollowState,
  signal: AbortSignal,
): Promise<void> {
  const isMainNet = await chosen.questions.isMainNet(signal);
  // Far below the tip the nodes have the same blocks, and all of them are asked.
  const isNearTip = to > chosen.tip.height - latestDepth;
  const fetch = { ...options.fetch, nodes: isNearTip ? chosen.nodes : options.fetch.nodes };
  const window = openWindow({
    from,
    to,
    ahead: blocksAhead,
    heldBytesMax,
    before: options.reader.blockText(from - 1)?.text,
    signal,
    fetch: (height, previous, onText, fetchSignal) => {
      const isPatienceOver = height === state.failedHeight && state.failures >= patience;
      const question = { height, previous, follows: undefined, onText, isMainNet, isPatienceOver };
      return fetchBlock(question, fetch, fetchSignal);
    },
  });
  let height = from;
  try {
    while (height <= to) {
      const before = options.reader.tip();
      const { linked, isForked } = await takeLinked(window, before?.hash, to - height + 1);
      if (linked.length > 0) await writeBlocks(linked, options, state);
      height += linked.length;
      if (linked.length > 0) state.onBlock(height - 1, chosen.tip.height);
      if (isForked) return await handleReorg(height, chosen, options, state, signal);
    }
  } catch (error) {
    if (chosen.isDisputed) options.choice.reject(chosen, "its next block is invalid or cannot be had");
    state.failures = height === state.failedHeight ? state.failures + 1 : 1;
    state.failedHeight = height;
    throw error;
  } finally {
    await window.close();
  }
}

/**
 * Waits for the next block, and takes those after it that have arrived, while each follows the one before.
 *
 * @param before - Hash of our tip; undefined for an empty index.
 */
async function takeLinked(window: BlockWindow, before: string | undefined, most: number) {
  const linked: FetchedBlock[] = [];
  let [transactions, heldBytes] = [0, 0];
  let last = before;
  do {
    const block = await window.next();
    if (last !== undefined && block.previous !== last) return { linked, isForked: true };
    linked.push(block);
    last = block.hash;
    transactions += block.ids.length;
    heldBytes += block.heldBytes;
    const isFull = transactions >= writeMax.transactions || heldBytes >= writeMax.heldBytes;
    if (isFull || linked.length >= Math.min(most, writeMax.blocks)) break;
  } while (window.isReady());
  return { linked, isForked: false };
}

/** Stores successive blocks in one write: each write has the cost of a few blocks, whatever it holds. */
async function writeBlocks(
  blocks: readonly FetchedBlock[],
  options: FollowerOptions,
  state: FollowState,
): Promise<void> {
  const { index, content, log } = options;
  for (const { id, bytes } of blocks.flatMap(({ data }) => data)) {
    const isStored = await content.keep({ id, dataRoot: "", size: bytes.length }, bytes);
    if (!isStored) log.warn("data of a transaction was not stored", { id, size: bytes.length });
  }
  await index.addBlocks(blocks.map(({ rows }) => rows));
  state.lastBlockAt = options.clock();
  for (const block of blocks) announce(block, options);
}

function announce(block: FetchedBlock, { log, onBlock }: FollowerOptions): void {
  const { height, hash, ids, bundleCount, missing, checked, unchecked } = block;
  if (missing.length > 0)
    log.warn("transactions of a block are missing", { height, count: missing.length, first: missing[0] });
  log.debug("block", { height, hash, transactions: ids.length, bundles: bundleCount, unchecked });
  onBlock({ height, hash, ids, bundleCount, missing, checked, unchecked });
}

/**
 * Handles a reorg: rolls the index back to the common ancestor with the nodes' chain.
 *
 * @param differsAt - A height at which their block differs from ours, or one above our tip whose block does not
 *   follow it.
 */
async function handleReorg(
  differsAt: number,
  chosen: ChosenChain,
  options: FollowerOptions,
  state: FollowState,
  signal: AbortSignal,
): Promise<void> {
  const { choice, reader, log } = options;
  const ours = reader.tip();
  // Single blocks that were requested may be far below those that are followed.
  const { stable, recent } = reader.counts();
  const lowest = stable.minHeight ?? recent.minHeight;
  if (ours === undefined || lowest === null) return;
  const ancestor = await findCommonAncestor({
    differsAt,
    lowest,
    sameAt: async (height) => {
      const hash = await chosen.questions.hashAt(height, signal);
      // The nodes have a block above it, so the absence is temporary, and does not show that the blocks differ.
      if (hash === undefined)
        throw new Failure("source_failed", { question: `block ${height}`, responses: ["absent"] });
      return hash === reader.block(height)?.hash;
    },
  });
  if (chosen.isDisputed && !(await choice.outweighs(chosen, ancestor + 1, signal))) return;
  const first = await fetchLinked(ancestor + 1, chosen, options, signal);
  log[ours.height - ancestor > 1 ? "warn" : "info"]("reorg: the index was rolled back", {
    ancestor,
    depth: ours.height - ancestor,
    from: ours.hash,
    to: first.hash,
  });
  await removeFrom(ancestor + 1, options);
  await writeBlocks([first], options, state);
}

/** Fetches and verifies the first block of the other branch, which must follow our last common block. */
async function fetchLinked(
  height: number,
  { questions, nodes }: ChosenChain,
  { reader, fetch }: FollowerOptions,
  signal: AbortSignal,
): Promise<FetchedBlock> {
  const question = {
    height,
    previous: indexedPrevious(reader.blockText(height - 1)?.text),
    follows: reader.block(height - 1)?.hash,
    onText: () => undefined,
    isMainNet: await questions.isMainNet(signal),
    isPatienceOver: true,
  };
  return fetchBlock(question, { ...fetch, nodes }, signal);
}

async function removeFrom(height: number, options: FollowerOptions): Promise<void> {
  await options.beforeRollback(height);
  await options.index.rollback(height);
  options.onRollback(height);
}
