/**
 * Brings items to the chain: each step reads one state of a bundle's row and writes the next. A crash repeats the step;
 * a failed step is retried with backoff.
 *
 * state      meaning                         step to the next state         earlier state
 * (none)     an item waits for a bundle      plan: adds it to a bundle
 * filling    the bundle accepts items        plan: full, or waited enough
 * planned    its items are fixed             prepare: verified and signed   dropped: an item is damaged
 * prepared   signed; may have been sent      post: a node accepted it       planned: rejected by all nodes,
 *            (sent_at)                                                      or can never be mined
 * posted     nodes have the transaction      seed: nodes have all chunks    prepared: nodes do not know it;
 *                                                                           dropped: an item is damaged
 * seeded     nodes have its bytes; may be    confirm: deep enough, and      posted: cannot be read back;
 *            in a block (block_height)       read back completely           prepared: no node knows it;
 *                                                                           planned: can never be mined
 * permanent  the items are permanent, and the files may be removed          planned: the development chain was begun
 *                                                                           anew; its items fail and are refunded
 * dropped    the items wait again; damaged items have failed and are refunded
 *
 * Several bundles are processed at once. Steps that read or send all bytes of a bundle have separate slots, so that
 * short steps do not wait for them.
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
import { failPermanent, prepare } from "./prepare-bundle.ts";
import { seed } from "./seed-bundle.ts";

export type Pipeline = Readonly<{
  /** Notifies of an accepted item. @param size - Of the complete item. Bytes. */
  onItem: (size: number) => void;
  /** Faults of the bundles in progress, in sentences. */
  reasons: () => readonly string[];
  /** Looks for due steps now. */
  wake: () => void;
  /** Fails, and refunds, all permanent items: their chain was begun anew. */
  failPermanent: () => Promise<void>;
  close: () => Promise<void>;
}>;

/** Long steps (planned, posted) need 4 MB each. */
const groups: readonly SlotGroup[] = [
  { steps: { planned: prepare, posted: seed }, count: 4 },
  { steps: { prepared: post, seeded: confirm }, count: 8 },
];

/** Longest time between two reads of the rows. Milliseconds. */
const idleMs = 30_000;

/** Wait after a failed read of the rows. Milliseconds. */
const retryMs = 500;

/** Reasons that are reported at once. */
const reasonsMax = 5;

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
    wake: () => loop.wake(),
    failPermanent: async () => {
      await failPermanent(stepParts);
      loop.wake(); // what was dropped is planned again
    },
    close: async () => {
      await loop.close();
      await Promise.all(slots.map(({ ended }) => ended()));
    },
  };
}

/** Runs work in sequence, also after a failure. */
function createSequence(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.then(nothing, nothing);
    return mine;
  };
}

function nothing(): void {
  // The caller receives the error; the next work starts.
}

/** Moves a bundle from its state to another one, or schedules a retry. */
export type BundleStepper = (parts: StepParts, bundle: Bundle, signal: AbortSignal) => Promise<void>;

export type SlotGroup = Readonly<{
  steps: Readonly<Partial<Record<BundleState, BundleStepper>>>;
  /** Number of slots: bundles in these steps at once. */
  count: number;
}>;

export type Slots = Readonly<{
  /** Starts due steps while slots are free. @returns The time of the next due step, Unix milliseconds. */
  fill: (signal: AbortSignal) => Promise<number>;
  /** The last fault of each bundle. */
  faults: () => readonly string[];
  /** Resolves when no step is running. */
  ended: () => Promise<void>;
}>;

/** Backoff after a failed step. Milliseconds. */
const firstPauseMs = 500;
const longestPauseMs = 60_000;
const doublingsMax = 7;

/** @param onEnd - Called at the end of each step. */
export function createSlots(parts: StepParts, { steps, count }: SlotGroup, onEnd: () => void): Slots {
  const { ledger, storeName, clock, log } = parts;
  const states = Object.keys(steps).filter((state): state is BundleState => state in steps);
  /** Running steps by bundle. */
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
      await postpone(bundle, error, signal);
    }
  }

  async function postpone(bundle: Bundle, error: unknown, signal: AbortSignal): Promise<void> {
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(bundle.attempts, doublingsMax));
    try {
      await ledger.write((tx) => postponeBundle(tx, bundle, clock() + pause, reasonOf(error)));
    } catch (cause) {
      log.error("a retry of a bundle could not be scheduled", { bundleId: bundle.id, error: cause });
      // The row is still due: without this wait the step would be repeated at once.
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
      // A step that ends during the read has changed its row: skip it.
      const before = new Set(running.keys());
      const limit = before.size + count + 1;
      const bundles = await ledger.read((tx) => nextBundles(tx, { store: storeName, states, limit }));
      for (const bundle of bundles) {
        if (before.has(bundle.id)) continue;
        if (bundle.nextAt > clock()) return bundle.nextAt;
        // The end of a step triggers the next read.
        if (running.size >= count) return Number.POSITIVE_INFINITY;
        start(bundle, signal);
      }
      return Number.POSITIVE_INFINITY;
    },
  };
}
