/**
 * The balance of the wallet that posts bundles, and the days for which it suffices.
 * @module
 */
import type { Metrics } from "../lib/metrics.ts";

/** The balance, as last read. */
export type WalletBalance = Readonly<{
  address: string;
  /** Winston. */
  balance: bigint;
  /** Winston that the wallet has paid a day, from the decreases of the last day at most. */
  spentPerDay: bigint;
  /** Undefined while nothing was spent. */
  daysLeft: number | undefined;
  /** Unix milliseconds. */
  readAt: number;
}>;

export type WalletMonitor = Readonly<{
  /** Reads the balance. Rejects when no node gives it. */
  refresh: (signal: AbortSignal) => Promise<void>;
  /** Undefined before the first balance. */
  last: () => WalletBalance | undefined;
}>;

export type WalletSource = Readonly<{
  address: string;
  /** Winston. */
  balance: (signal: AbortSignal) => Promise<bigint>;
  /** Unix milliseconds. */
  clock: () => number;
}>;

const dayMs = 24 * 60 * 60_000;

/** Balances in memory: a day of one every 5 minutes. */
const balancesMax = 288;

/** Winston of one AR. */
const winstonPerAr = 1e12;

export function createWalletMonitor(metrics: Metrics, { address, balance, clock }: WalletSource): WalletMonitor {
  const balances: Readonly<{ at: number; winston: bigint }>[] = [];
  const last = (): WalletBalance | undefined => {
    const [first, newest] = [balances[0], balances.at(-1)];
    if (first === undefined || newest === undefined) return undefined;
    const spent = balances.reduce((sum, { winston }, at) => {
      const before = balances[at - 1]?.winston ?? winston;
      return winston < before ? sum + before - winston : sum;
    }, 0n);
    const elapsedMs = BigInt(Math.max(1, Math.round(newest.at - first.at)));
    const spentPerDay = (spent * BigInt(dayMs)) / elapsedMs;
    const daysLeft = spentPerDay === 0n ? undefined : Number((newest.winston * 100n) / spentPerDay) / 100;
    return { address, balance: newest.winston, spentPerDay, daysLeft, readAt: newest.at };
  };
  metrics.gaugeOf({
    name: "upload_wallet_balance_ar",
    help: "Balance of the wallet that posts bundles, in AR, as last read.",
    read: () => known(last()?.balance, (winston) => Number(winston) / winstonPerAr),
  });
  metrics.gaugeOf({
    name: "upload_wallet_days_left",
    help: "Days for which the balance suffices at the spending of the last day; absent while nothing was spent.",
    read: () => known(last()?.daysLeft, (days) => days),
  });
  return {
    refresh: async (signal) => {
      const winston = await balance(signal);
      balances.push({ at: clock(), winston });
      if (balances.length > balancesMax) balances.shift();
    },
    last,
  };
}

/** @throws Error for an unknown value: the metric has none. */
function known<Value>(value: Value | undefined, write: (value: Value) => number): number {
  if (value === undefined) throw new Error("not known yet");
  return write(value);
}
