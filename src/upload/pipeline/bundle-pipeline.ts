/**
 * Brings items to the chain: each step reads one state of a bundle's row and writes the next. A crash repeats the step;
 * a failed step is retried with backoff.
 *
 * state      what holds                      moved on by                    goes back to
 * (none)     an item waits for a bundle      plan: puts it into one
 * filling    takes items                     plan: full, or waited enough
 * planned    its items are chosen            prepare: read, and signed      dropped: an item is damaged
 * prepared   signed; it may have left        post: a node took it           planned: rejected by all at once,
 *            this machine (sent_at)                                         or can never be mined
 * posted     nodes have the transaction      seed: nodes took all chunks    prepared: nodes do not know it;
 *                                                                           dropped: an item is damaged
 * seeded     nodes have its bytes; it may    confirm: deep enough, and      posted: cannot be read back;
 *            be in a block (block_height)    read back whole                prepared: nobody knows it;
 *                                                                           planned: can never be mined
 * permanent  it is on the chain for good, and its files may go
 * dropped    its items wait again; those that are damaged have failed, and are paid back
 *
 * Several bundles are worked on at once. Steps that read or send all of a bundle have slots of their own, so that those
 * that only look never wait behind them.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain.
 * @module
 */
import { openBackgroundLoop } from "../../lib/loop.ts";
import { ignoreRejection, sleep } from "../../lib/stop.ts";
import { type Bundle, type BundleState, nextBundles, postponeBundle } from "./bundle-rows.ts";
import { confirm } from "./confirm-bundle.ts";
import { type PipelineParts, reasonOf, type StepParts } from "./pipeline-context.ts";
import { createPlanner } from "./plan-bundles.ts";
import { post } from "./post-bundle.ts";
import { prepare } from "./prepare-bundle.ts";
import { seed } from "./seed-bundle.ts";

/** The pipeline, at work. */
export type Pipeline = Readonly<{
  /** Says that an item was taken. @param size - Of the whole item. Bytes. */
  onItem: (size: number) => void;
  /** Why bundles do not get on, in sentences; none while they do. */
  reasons: () => readonly string[];
  close: () => Promise<void>;
}>;

/** A seeding holds 4 MB, a laying out as much for its 10,000 items. */
const groups: readonly SlotGroup[] = [
  { steps: { planned: prepare, posted: seed }, count: 4 },
  { steps: { prepared: post, seeded: confirm }, count: 8 },
];

/** Longest time without a look, whatever the rows say. Milliseconds. */
const idleMs = 30_000;

/** Pause after a look that failed. Milliseconds. */
const retryMs = 500;

/** Reasons that are reported at once. */
const reasonsMax = 5;

/** Starts the pipeline. */
export function openPipeline(parts: PipelineParts): Pipeline {
  const { clock, log } = parts;
  const planner = createPlanner({ ...parts, rules: parts.rules.plan });
  const stepParts = { ...parts, planAgain: planner.again, inOrder: createSequence() };
  const slots = groups.map((group) => createSlots(stepParts, group, () => loop.wake()));

  /** Starts the due work. @returns The wait until more is due, milliseconds. */
  async function look(signal: AbortSignal): Promise<number> {
    if (planner.isDue()) await planner.look();
    const dueAt = await Promise.all(slots.map(({ fill }) => fill(signal)));
    return Math.min(idleMs, Math.min(planner.nextAt(), ...dueAt) - clock());
  }

  const loop = openBackgroundLoop("uploads", look, (error) => {
    log.error("bundles could not be worked on", { error });
    return retryMs;
  });
  return {
    onItem: (size) => {
      if (planner.note(size)) loop.wake();
    },
    reasons: () => [...new Set(slots.flatMap(({ faults }) => faults()))].slice(0, reasonsMax),
    close: async () => {
      await loop.close();
      await Promise.all(slots.map(({ ended }) => ended()));
    },
  };
}

/** Work one after another, however the one before ends. */
function createSequence(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    // The caller of the work gets its error.
    last = mine.then(nothing, nothing);
    return mine;
  };
}

function nothing(): void {
  // The next one begins.
}

/** Takes a bundle from its state to another one, or notes when to look again. */
export type BundleStepper = (parts: StepParts, bundle: Bundle, signal: AbortSignal) => Promise<void>;

/** Steps that share slots. */
export type SlotGroup = Readonly<{
  steps: Readonly<Partial<Record<BundleState, BundleStepper>>>;
  /** Bundles that are in these steps at once. */
  count: number;
}>;

/** Slots of one group. */
export type Slots = Readonly<{
  /** Starts due steps while there are free slots. @returns When the next one is due, Unix milliseconds. */
  fill: (signal: AbortSignal) => Promise<number>;
  /** Why bundles do not get on. */
  faults: () => readonly string[];
  /** Resolves when no step is under way. */
  ended: () => Promise<void>;
}>;

/** Pauses after a step that failed. Milliseconds. */
const firstPauseMs = 500;
const longestPauseMs = 60_000;
const doublingsMax = 7;

/** @param onEnd - Called when a step has ended. */
export function createSlots(parts: StepParts, { steps, count }: SlotGroup, onEnd: () => void): Slots {
  const { ledger, storeName, clock, log } = parts;
  const states = Object.keys(steps).filter((state): state is BundleState => state in steps);
  /** By bundle; the step that is under way. */
  const running = new Map<string, Promise<void>>();
  const faults = new Map<string, string>();

  async function step(bundle: Bundle, signal: AbortSignal): Promise<void> {
    try {
      await steps[bundle.state]?.(parts, bundle, signal);
      faults.delete(bundle.id);
    } catch (error) {
      if (signal.aborted) return;
      const { id: bundleId, state, attempts } = bundle;
      log.warn("a step of a bundle failed", { bundleId, state, attempts, error });
      faults.set(bundle.id, reasonOf(error));
      await putOff(bundle, error, signal);
    }
  }

  async function putOff(bundle: Bundle, error: unknown, signal: AbortSignal): Promise<void> {
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(bundle.attempts, doublingsMax));
    try {
      await ledger.write((tx) => postponeBundle(tx, bundle, clock() + pause, reasonOf(error)));
    } catch (cause) {
      log.error("a bundle could not be put off", { bundleId: bundle.id, error: cause });
      // Its row says that it is due: without a pause of its own it would begin anew at once.
      await sleep(firstPauseMs, signal).catch((reason: unknown) => reason);
    }
  }

  function start(bundle: Bundle, signal: AbortSignal): void {
    const work = step(bundle, signal).finally(() => {
      running.delete(bundle.id);
      onEnd();
    });
    running.set(bundle.id, work);
    ignoreRejection(work);
  }

  return {
    faults: () => [...faults.values()],
    ended: async () => {
      await Promise.all(running.values());
    },
    fill: async (signal) => {
      // A step that ends while the rows are read has changed its own.
      const before = new Set(running.keys());
      const limit = before.size + count + 1;
      const bundles = await ledger.read((tx) => nextBundles(tx, { store: storeName, states, limit }));
      for (const bundle of bundles) {
        if (before.has(bundle.id)) continue;
        if (bundle.nextAt > clock()) return bundle.nextAt;
        // The end of a step is the next reason to look.
        if (running.size >= count) return Number.POSITIVE_INFINITY;
        start(bundle, signal);
      }
      return Number.POSITIVE_INFINITY;
    },
  };
}
