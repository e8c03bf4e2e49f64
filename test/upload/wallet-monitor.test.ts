/**
 * The balance of the wallet that posts bundles, and the days for which it suffices.
 */
import { expect, test } from "bun:test";
import { createMetrics } from "../../src/lib/metrics.ts";
import { createWalletMonitor } from "../../src/upload/wallet-monitor.ts";

const hour = 3_600_000;

test.each<[balances: bigint[], spentPerDay: bigint, daysLeft: number | undefined]>([
  [[1_000n], 0n, undefined],
  [[1_000n, 1_000n], 0n, undefined],
  [[1_000n, 900n], 2_400n, 0.37],
  [[1_000n, 900n, 800n], 2_400n, 0.33],
  // A deposit is not spent.
  [[1_000n, 900n, 5_000n], 1_200n, 4.16],
  [[100n, 0n], 2_400n, 0],
])("after hourly balances of %p, %p is spent a day, and %p days are left", async (balances, spentPerDay, daysLeft) => {
  let now = 0;
  let at = 0;
  const wallet = createWalletMonitor(createMetrics(), {
    address: "a",
    balance: async () => balances[at++] ?? 0n,
    clock: () => now,
  });
  expect(wallet.last()).toBeUndefined();
  for (const _ of balances) {
    await wallet.refresh(new AbortController().signal);
    now += hour;
  }
  expect(wallet.last()).toEqual({
    address: "a",
    balance: balances.at(-1) ?? 0n,
    spentPerDay,
    daysLeft,
    readAt: now - hour,
  });
});

test("the metrics have no value before the first balance; afterwards AR", async () => {
  const metrics = createMetrics();
  const source = { address: "a", balance: async () => 1_500_000_000_000n, clock: () => 0 };
  const wallet = createWalletMonitor(metrics, source);
  expect(await metrics.text()).not.toMatch(/^upload_wallet_balance_ar /m);
  await wallet.refresh(new AbortController().signal);
  expect(await metrics.text()).toContain("upload_wallet_balance_ar 1.5\n");
  expect(await metrics.text()).not.toMatch(/^upload_wallet_days_left /m);
});
