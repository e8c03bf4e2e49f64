/**
 * The way of items to the chain: planned, prepared, posted, seeded, permanent. Each step reads one state and writes the
 * next; a crash repeats the step, and what fails is tried again, later and later.
 *
 * Several bundles are worked on at once. Steps that read or send all of a bundle have lanes of their own, so that those
 * that only look never wait behind them; a bundle that fails gives its lane back until it is its turn again.
 * Source: design.md §9; reference/upload.md §2.
 * @module
 */
import { sleep, unheard } from "../lib/stop.ts";
import { type Bundle, type BundleState, nextBundles, postponeBundle } from "./bundles.ts";
import { confirm } from "./confirm.ts";
import { type PipelineParts, reasonOf } from "./pipeline-parts.ts";
import { createPlanner } from "./plan.ts";
import { post } from "./post.ts";
import { prepare } from "./prepare.ts";
import { seed } from "./seed.ts";

/** The pipeline, at work. */
export type Pipeline = Readonly<{
  /** Says that an item was taken. @param size - Of the whole item. Bytes. */
  onItem: (size: number) => void;
  /** Why bundles do not get on, in sentences; none while they do. */
  reasons: () => readonly string[];
  close: () => Promise<void>;
}>;

type StepOf = (parts: PipelineParts, bundle: Bundle, signal: AbortSignal) => Promise<void>;

const steps: Readonly<Partial<Record<BundleState, StepOf>>> = {
  planned: prepare,
  prepared: post,
  posted: seed,
  seeded: confirm,
};

/** States whose steps share lanes, and how many. */
type Lanes = Readonly<{ states: readonly BundleState[]; count: number }>;

/** A seeding holds 4 MB, a laying out as much for its 10,000 items. */
const heavy: Lanes = { states: ["planned", "posted"], count: 4 };
const light: Lanes = { states: ["prepared", "seeded"], count: 8 };

/** Pauses after a step that failed. Milliseconds. */
const firstPauseMs = 500;
const longestPauseMs = 60_000;
const doublingsMax = 7;

/** Longest time without a look, whatever the rows say. Milliseconds. */
const idleMs = 30_000;

/** Reasons that are told at once: with more, the first ones are what matters. */
const reasonsMax = 5;

/** Starts the pipeline. */
export function openPipeline(parts: PipelineParts): Pipeline {
  const { ledger, storeName, clock, log } = parts;
  const life = new AbortController();
  const planner = createPlanner({ ...parts, rules: parts.rules.plan });
  /** By bundle; the step that is under way. */
  const running = new Map<string, Promise<void>>();
  const troubles = new Map<string, string>();
  let woken = Promise.withResolvers<void>();

  async function step(bundle: Bundle): Promise<void> {
    try {
      await steps[bundle.state]?.(parts, bundle, life.signal);
      troubles.delete(bundle.id);
    } catch (error) {
      if (life.signal.aborted) return;
      troubles.set(bundle.id, reasonOf(error));
      await putOff(parts, bundle, error, life.signal);
    }
  }

  function start(bundle: Bundle): void {
    const work = step(bundle).finally(() => {
      running.delete(bundle.id);
      woken.resolve();
    });
    running.set(bundle.id, work);
    unheard(work);
  }

  /** Starts what is due as far as there are lanes. @returns When something is due next, Unix milliseconds. */
  async function fillLanes({ states, count }: Lanes): Promise<number> {
    const limit = running.size + count + 1;
    // A step that ends while this is read has changed the row.
    const before = new Set(running.keys());
    const bundles = await ledger.read((tx) => nextBundles(tx, { store: storeName, states, limit }));
    let free = count - bundles.filter(({ id }) => before.has(id)).length;
    for (const bundle of bundles) {
      if (before.has(bundle.id)) continue;
      if (bundle.nextAt > clock()) return bundle.nextAt;
      // The end of a step wakes the loop.
      if (free <= 0) return Number.POSITIVE_INFINITY;
      free -= 1;
      start(bundle);
    }
    return Number.POSITIVE_INFINITY;
  }

  /** @returns When something is due next, Unix milliseconds. */
  async function look(): Promise<number> {
    if (planner.isDue()) await planner.look();
    const dueAt = [await fillLanes(heavy), await fillLanes(light)];
    return Math.min(planner.nextAt(), ...dueAt);
  }

  async function run(): Promise<void> {
    while (!life.signal.aborted) {
      woken = Promise.withResolvers<void>();
      let nextAt: number;
      try {
        nextAt = await look();
      } catch (error) {
        log.error("bundles could not be worked on", { error });
        nextAt = clock() + firstPauseMs;
      }
      await rested(Math.max(0, Math.min(idleMs, nextAt - clock())));
    }
    await Promise.all(running.values());
  }

  /** Until the time has passed, or there is a reason to look. */
  async function rested(pauseMs: number): Promise<void> {
    const pause = new AbortController();
    const slept = sleep(pauseMs, AbortSignal.any([pause.signal, life.signal])).then(
      () => undefined,
      () => undefined, // woken, or closed
    );
    await Promise.race([slept, woken.promise]);
    pause.abort();
  }

  const ended = run();
  return {
    onItem: (size) => {
      if (planner.note(size)) woken.resolve();
    },
    reasons: () => [...new Set(troubles.values())].slice(0, reasonsMax),
    close: async () => {
      life.abort(new DOMException("uploads were closed", "AbortError"));
      await ended;
    },
  };
}

async function putOff(
  { ledger, clock, log }: PipelineParts,
  bundle: Bundle,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(bundle.attempts, doublingsMax));
  const { id: bundleId, state, attempts } = bundle;
  log.warn("a step of a bundle failed", { bundleId, state, attempts, error });
  try {
    await ledger.write((tx) => postponeBundle(tx, bundle, clock() + pause, reasonOf(error)));
  } catch (cause) {
    log.error("a bundle could not be put off", { bundleId, error: cause });
    // Its row says that it is due: without a pause of its own it would begin anew at once.
    await sleep(firstPauseMs, signal).catch((reason: unknown) => reason);
  }
}
