/**
 * The way of items to the chain: planned, prepared, posted, seeded, permanent. Each step reads one state and writes the
 * next; a crash repeats the step, and what fails is tried again, later and later.
 *
 * A bundle is permanent when its block is deep enough and our own index has read all of it back from the nodes, chunk by
 * chunk. What nodes forgot is posted and seeded again: the same transaction while it can still be mined, and only then
 * another one, so that nothing is on the chain twice.
 * Source: design.md §9; reference/upload.md §2.
 * @module
 */
import { Failure } from "../failures.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sleep } from "../lib/stop.ts";
import {
  type Bundle,
  type BundleState,
  dueBundles,
  nextBundleStep,
  postponeBundle,
  stepBundle,
} from "./bundles.ts";
import type { PipelineParts } from "./pipeline-parts.ts";
import { planBundles } from "./plan.ts";
import { itemsOf, prepare } from "./prepare.ts";
import { seedChunks } from "./seed.ts";

/** The pipeline, at work. */
export type Pipeline = Readonly<{
  /** There is a new item, or a new block. */
  wake: () => void;
  /** Why bundles do not get on, in sentences; none while they do. */
  reasons: () => readonly string[];
  close: () => Promise<void>;
}>;

/** A transaction is mined within so many blocks of its anchor, or never. Source: reference/chain.md §1c. */
const anchorBlocks = 50;

/** Bundles that are worked on at once. */
const atOnce = 4;

/** Pauses after a step that failed. Milliseconds. */
const firstPauseMs = 500;
const longestPauseMs = 60_000;
const doublingsMax = 7;

/** Longest time without a look, whatever the rows say. Milliseconds. */
const idleMs = 30_000;

type StepOf = (parts: PipelineParts, bundle: Bundle, signal: AbortSignal) => Promise<void>;

const steps: Readonly<Partial<Record<BundleState, StepOf>>> = {
  planned: prepare,
  prepared: post,
  posted: seed,
  seeded: confirm,
};

/** Starts the pipeline. */
export function openPipeline(parts: PipelineParts): Pipeline {
  const life = new AbortController();
  const troubles = new Map<string, string>();
  let woken = Promise.withResolvers<void>();

  async function step(bundle: Bundle): Promise<void> {
    try {
      await steps[bundle.state]?.(parts, bundle, life.signal);
      troubles.delete(bundle.id);
    } catch (error) {
      if (life.signal.aborted) return;
      await putOff(parts, bundle, error);
      troubles.set(bundle.id, reasonOf(error));
    }
  }

  /** Does all that is due. @returns When something is due next, Unix milliseconds. */
  async function round(): Promise<number> {
    const { ledger, rules, makeId, clock } = parts;
    const planned = await planBundles(ledger, rules.plan, makeId, clock());
    for (;;) {
      const due = await ledger.read((tx) => dueBundles(tx, clock(), atOnce));
      if (due.length === 0 || life.signal.aborted) break;
      await Promise.all(due.map(step));
    }
    const next = await ledger.read(nextBundleStep);
    return Math.min(planned.nextAt ?? Number.POSITIVE_INFINITY, next ?? Number.POSITIVE_INFINITY);
  }

  async function run(): Promise<void> {
    while (!life.signal.aborted) {
      let nextAt = 0;
      try {
        nextAt = await round();
      } catch (error) {
        parts.log.error("bundles could not be worked on", { error });
        nextAt = parts.clock() + firstPauseMs;
      }
      const pause = Math.max(0, Math.min(idleMs, nextAt - parts.clock()));
      await rested(pause);
    }
  }

  /** Until the time has passed, or somebody wakes it. */
  async function rested(pauseMs: number): Promise<void> {
    const pause = new AbortController();
    const slept = sleep(pauseMs, AbortSignal.any([pause.signal, life.signal])).then(
      () => undefined,
      () => undefined, // woken, or closed
    );
    await Promise.race([slept, woken.promise]);
    pause.abort();
    woken = Promise.withResolvers<void>();
  }

  const running = run();
  return {
    wake: () => woken.resolve(),
    reasons: () => [...troubles.values()].slice(0, reasonsMax),
    close: async () => {
      life.abort(new DOMException("uploads were closed", "AbortError"));
      await running;
    },
  };
}

const reasonsMax = 5;

/** Posts the transaction. */
async function post(parts: PipelineParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, clock } = parts;
  const { transaction } = bundle;
  if (transaction === undefined || isPast(parts, transaction.postedHeight)) {
    await plannedAgain(parts, bundle);
    return;
  }
  const posted = await chain.post("/tx", new Uint8Array(utf8Bytes(transaction.text)), signal);
  if (posted.kind === "refused") {
    // Nobody took it, so that another one cannot be the second.
    if (!(await chain.isKnown(transaction.id, signal))) await plannedAgain(parts, bundle);
    throw new Failure("source_failed", { reason: `the nodes refuse the transaction: ${posted.reason}` });
  }
  if (posted.kind === "trouble")
    throw new Failure("source_failed", { reason: `the transaction was not taken: ${posted.reason}` });
  await chain.wantIndexed(transaction.id);
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "posted", now, nextAt: now }));
}

/** Seeds the chunks. */
async function seed(parts: PipelineParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, rules, clock } = parts;
  await seedChunks(parts, bundle, await itemsOf(parts, bundle), signal);
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "seeded", now, nextAt: now + rules.lookMs }));
}

/** Looks whether the bundle is where it has to be. */
async function confirm(parts: PipelineParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, rules, clock, log } = parts;
  const { transaction } = bundle;
  if (transaction === undefined) return;
  const now = clock();
  const mined = chain.status(transaction.id);
  const isOverdue = now - bundle.changedAt > rules.againMs;
  if (mined === undefined) {
    if (isPast(parts, transaction.postedHeight)) {
      log.warn("a bundle was never mined: it is signed anew", {
        bundleId: bundle.id,
        transaction: transaction.id,
      });
      await plannedAgain(parts, bundle);
    } else if (isOverdue && !(await chain.isKnown(transaction.id, signal))) {
      log.warn("the nodes have forgotten a bundle: it is posted again", { bundleId: bundle.id });
      await ledger.write((tx) => stepBundle(tx, { bundle, to: "prepared", now, nextAt: now }));
    } else await lookAgain(parts, bundle, now);
    return;
  }
  const isReadBack = chain.isReadBack(transaction.id);
  if (isReadBack && mined.confirmations >= rules.confirmations) {
    const blockHeight = mined.height;
    await ledger.write((tx) => stepBundle(tx, { bundle, to: "permanent", now, nextAt: now, blockHeight }));
  } else if (!isReadBack && isOverdue) {
    log.warn("a bundle cannot be read back: its chunks are sent again", { bundleId: bundle.id });
    await ledger.write((tx) => stepBundle(tx, { bundle, to: "posted", now, nextAt: now }));
  } else await lookAgain(parts, bundle, now);
}

async function lookAgain({ ledger, rules }: PipelineParts, bundle: Bundle, now: number): Promise<void> {
  await ledger.write((tx) => postponeBundle(tx, bundle, now + rules.lookMs, undefined));
}

/** Whether a transaction that was signed at a height can no longer be mined. */
function isPast({ chain }: PipelineParts, postedHeight: number): boolean {
  const height = chain.height();
  return height !== undefined && height > postedHeight + anchorBlocks;
}

async function plannedAgain({ ledger, clock }: PipelineParts, bundle: Bundle): Promise<void> {
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "planned", now, nextAt: now }));
}

async function putOff({ ledger, clock, log }: PipelineParts, bundle: Bundle, error: unknown): Promise<void> {
  const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(bundle.attempts, doublingsMax));
  const { id: bundleId, state, attempts } = bundle;
  log.warn("a step of a bundle failed", { bundleId, state, attempts, error });
  const write = ledger.write((tx) => postponeBundle(tx, bundle, clock() + pause, reasonOf(error)));
  await write.catch((cause: unknown) =>
    log.error("a bundle could not be put off", { bundleId, error: cause }),
  );
}

function reasonOf(error: unknown): string {
  const stated = error instanceof Failure ? error.facts["reason"] : undefined;
  if (typeof stated === "string") return stated;
  return error instanceof Error ? error.message : String(error);
}
