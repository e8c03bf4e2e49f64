/**
 * Steps of bundles at work: several at once, each bundle in one lane at a time. A step that fails gives its lane back
 * and is tried again, later and later.
 * @module
 */
import { ignoreRejection, sleep } from "../../lib/stop.ts";
import { type Bundle, type BundleState, nextBundles, postponeBundle } from "./bundle-rows.ts";
import { reasonOf, type StepParts } from "./pipeline-context.ts";

/** Takes a bundle from its state to another one, or notes when to look again. */
export type BundleStepper = (parts: StepParts, bundle: Bundle, signal: AbortSignal) => Promise<void>;

/** Steps that share lanes. */
export type SlotGroup = Readonly<{
  steps: Readonly<Partial<Record<BundleState, BundleStepper>>>;
  /** Bundles that are in these steps at once. */
  count: number;
}>;

/** Lanes of one group. */
export type Slots = Readonly<{
  /** Starts what is due as far as there are lanes. @returns When the next one is due, Unix milliseconds. */
  fill: () => Promise<number>;
  /** Why bundles do not get on. */
  faults: () => readonly string[];
  /** Resolves when no step is under way. */
  ended: () => Promise<void>;
}>;

/** Pauses after a step that failed. Milliseconds. */
const firstPauseMs = 500;
const longestPauseMs = 60_000;
const doublingsMax = 7;

/** Creates lanes. @param onEnd - Called when a step has ended. */
export function createSlots(
  parts: StepParts,
  { steps, count }: SlotGroup,
  signal: AbortSignal,
  onEnd: () => void,
): Slots {
  const { ledger, storeName, clock, log } = parts;
  const states = Object.keys(steps).filter((state): state is BundleState => state in steps);
  /** By bundle; the step that is under way. */
  const running = new Map<string, Promise<void>>();
  const faults = new Map<string, string>();

  async function step(bundle: Bundle): Promise<void> {
    try {
      await steps[bundle.state]?.(parts, bundle, signal);
      faults.delete(bundle.id);
    } catch (error) {
      if (signal.aborted) return;
      const { id: bundleId, state, attempts } = bundle;
      log.warn("a step of a bundle failed", { bundleId, state, attempts, error });
      faults.set(bundle.id, reasonOf(error));
      await putOff(bundle, error);
    }
  }

  async function putOff(bundle: Bundle, error: unknown): Promise<void> {
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(bundle.attempts, doublingsMax));
    try {
      await ledger.write((tx) => postponeBundle(tx, bundle, clock() + pause, reasonOf(error)));
    } catch (cause) {
      log.error("a bundle could not be put off", { bundleId: bundle.id, error: cause });
      // Its row says that it is due: without a pause of its own it would begin anew at once.
      await sleep(firstPauseMs, signal).catch((reason: unknown) => reason);
    }
  }

  function start(bundle: Bundle): void {
    const work = step(bundle).finally(() => {
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
    fill: async () => {
      // A step that ends while the rows are read has changed its own.
      const before = new Set(running.keys());
      const limit = before.size + count + 1;
      const bundles = await ledger.read((tx) => nextBundles(tx, { store: storeName, states, limit }));
      for (const bundle of bundles) {
        if (before.has(bundle.id)) continue;
        if (bundle.nextAt > clock()) return bundle.nextAt;
        // The end of a step is the next reason to look.
        if (running.size >= count) return Number.POSITIVE_INFINITY;
        start(bundle);
      }
      return Number.POSITIVE_INFINITY;
    },
  };
}
