/**
 * The watcher: for every token, periodically follows stored payments and scans for those that nobody
 * reported. Each token has a loop of its own, so that a chain in trouble holds up no other.
 *
 * A step ends with its mark in the ledger, after what it found is stored: whenever the program ends, the next one
 * begins at the last mark and finds a payment twice rather than never.
 * Source: docs/decisions/074-token-payments.md.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type RetryPlan, retryWaitMs } from "../../lib/retry.ts";
import { linkedController, sleep } from "../../lib/stop.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { Token } from "../addresses.ts";
import type { TokenChain } from "./token-chain.ts";
import { keepMark, markOf } from "./token-payment-store.ts";
import type { TokenPayments } from "./token-payments.ts";

/** The status of one token. */
export type WatchStatus = Readonly<{
  token: Token;
  /** When a step last came to its end, Unix milliseconds; undefined before the first. */
  doneAt: number | undefined;
  /** Why the last step did not; undefined when it did. */
  fault: string | undefined;
}>;

/** The watcher at work. */
export type TokenWatcher = Readonly<{
  /** Begins the next step of a token now. */
  wake: (token: Token) => void;
  status: () => readonly WatchStatus[];
  /** Ends the steps under way, and waits for them. */
  close: () => Promise<void>;
}>;

type TokenWatcherOptions = Readonly<{
  payments: TokenPayments;
  ledger: LedgerDatabase;
  /** Between two steps. Milliseconds. */
  intervalMs: number;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** Transactions whose payments are followed in one step. */
const followedMax = 100;

/** Backoff after an error of a chain. */
const faulty: RetryPlan = { attempts: 1, firstMs: 1_000, longestMs: 5 * 60_000 };

/** One token's loop. */
type Loop = {
  readonly chain: TokenChain;
  doneAt: number | undefined;
  fault: string | undefined;
  wake: () => void;
};

/** Opens the watcher over the chains of its payments. */
export function openTokenWatcher(options: TokenWatcherOptions): TokenWatcher {
  const life = new AbortController();
  const loops = options.payments.chains.map(
    (chain): Loop => ({ chain, doneAt: undefined, fault: undefined, wake: () => undefined }),
  );
  const ended = Promise.all(loops.map((loop) => run(loop, options, life.signal)));
  return {
    wake: (token) => {
      for (const loop of loops) if (loop.chain.token === token) loop.wake();
    },
    status: () => loops.map(({ chain, doneAt, fault }) => ({ token: chain.token, doneAt, fault })),
    close: async () => {
      life.abort(new DOMException("the watcher was closed", "AbortError"));
      await ended;
    },
  };
}

async function run(loop: Loop, options: TokenWatcherOptions, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const { fault, hasMore } = await stepSafely(loop.chain, options, signal);
    if (signal.aborted) return;
    failures = fault === undefined ? 0 : failures + 1;
    if (fault === undefined) loop.doneAt = options.clock();
    loop.fault = fault;
    const waitMs = failures > 0 ? retryWaitMs(faulty, failures, options.random) : hasMore ? 0 : options.intervalMs;
    await sleepUntilWoken(loop, waitMs, signal);
  }
}

type StepEnd = Readonly<{ fault: string | undefined; hasMore: boolean }>;

/** Nothing that happens in a step ends the loop. */
async function stepSafely(chain: TokenChain, options: TokenWatcherOptions, signal: AbortSignal): Promise<StepEnd> {
  const { token } = chain;
  try {
    const end = await step(chain, options, signal);
    if (end.fault !== undefined) options.log.warn("a chain of payments is in trouble", { token, reason: end.fault });
    return end;
  } catch (error) {
    if (signal.aborted) return { fault: undefined, hasMore: false };
    const isExpected = error instanceof Failure;
    if (isExpected) options.log.warn("payments cannot be taken", { token, error });
    else options.log.error("defect in a step of the token watcher", { token, error });
    return { fault: isExpected ? error.message : "a defect", hasMore: false };
  }
}

async function step(
  chain: TokenChain,
  { payments, ledger, clock }: TokenWatcherOptions,
  signal: AbortSignal,
): Promise<StepEnd> {
  const { token, address } = chain;
  const followed = await payments.follow(chain, followedMax, signal);
  const mark = await ledger.read((tx) => markOf(tx, token, address));
  const found = await chain.scan(mark, signal);
  if (found.kind === "fault") return { fault: found.detail, hasMore: false };
  const taken = await payments.take(chain, found.ids, signal);
  if (taken !== undefined) return { fault: taken.detail, hasMore: false };
  if (found.cursor !== mark) await ledger.write((tx) => keepMark(tx, token, address, found.cursor, clock()));
  return { fault: followed?.detail, hasMore: found.hasMore };
}

async function sleepUntilWoken(loop: Loop, ms: number, signal: AbortSignal): Promise<void> {
  const { controller, unlink } = linkedController(signal);
  loop.wake = () => controller.abort(new DOMException("woken", "AbortError"));
  try {
    await sleep(ms, controller.signal);
  } catch (error) {
    if (error !== controller.signal.reason) throw error; // woken or ended, as the caller finds out by its signal
  } finally {
    loop.wake = () => undefined;
    unlink();
  }
}
