/**
 * The token watcher: for every token, periodically follows stored payments and scans for unreported payments. Each
 * token has its own loop, so that the fault of one chain does not delay the others.
 *
 * A step stores the payments that it found and then its mark. After a crash the next step begins at the last mark, so
 * that a payment may be found twice but is never missed.
 * Source: docs/decisions/074-token-payments.md.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type BackgroundLoop, openBackgroundLoop } from "../../lib/loop.ts";
import { type RetryPlan, retryWaitMs } from "../../lib/retry.ts";

import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { Token } from "../addresses.ts";
import type { TokenChain } from "./token-chain.ts";
import { keepMark, markOf } from "./token-payment-store.ts";
import type { TokenPayments } from "./token-payments.ts";

/** The status of one token. */
export type WatchStatus = Readonly<{
  token: Token;
  /** End of the last successful step, Unix milliseconds; undefined before the first. */
  doneAt: number | undefined;
  /** Why the last step failed; undefined after a success. */
  fault: string | undefined;
}>;

export type TokenWatcher = Readonly<{
  /** Begins the next step of a token now; without effect during a step. */
  wake: (token: Token) => void;
  status: () => readonly WatchStatus[];
  /** Aborts the running steps and waits for their end. */
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

/** Opens the watcher over the chains of its payments. */
export function openTokenWatcher(options: TokenWatcherOptions): TokenWatcher {
  const loops = options.payments.chains.map((chain) => openTokenLoop(chain, options));
  return {
    wake: (token) => {
      for (const loop of loops) if (loop.status().token === token) loop.wake();
    },
    status: () => loops.map(({ status }) => status()),
    close: async () => {
      await Promise.all(loops.map(({ close }) => close()));
    },
  };
}

function openTokenLoop(
  chain: TokenChain,
  options: TokenWatcherOptions,
): BackgroundLoop & Readonly<{ status: () => WatchStatus }> {
  const { clock, random, intervalMs, log } = options;
  const { token } = chain;
  let status: WatchStatus = { token, doneAt: undefined, fault: undefined };
  let failures = 0;
  let isStepping = false;

  const failed = (fault: string): number => {
    failures += 1;
    status = { ...status, fault };
    return retryWaitMs(faulty, failures, random);
  };
  const round = async (signal: AbortSignal): Promise<number> => {
    isStepping = true;
    try {
      const { fault, hasMore } = await step(chain, options, signal);
      if (fault !== undefined) {
        log.warn("token chain cannot be read", { token, reason: fault });
        return failed(fault);
      }
      failures = 0;
      status = { token, doneAt: clock(), fault: undefined };
      return hasMore ? 0 : intervalMs;
    } finally {
      isStepping = false;
    }
  };
  const loop = openBackgroundLoop(`token watcher: ${token}`, round, (error) => {
    const isExpected = error instanceof Failure;
    if (isExpected) log.warn("token payments cannot be processed", { token, error });
    else log.error("defect in a step of the token watcher", { token, error });
    return failed(isExpected ? error.message : "a defect");
  });
  return {
    wake: () => {
      if (!isStepping) loop.wake();
    },
    close: loop.close,
    status: () => status,
  };
}

type StepEnd = Readonly<{ fault: string | undefined; hasMore: boolean }>;

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
