/**
 * Reading beyond the limits for payments by x402, put together.
 * @module
 */

import type { Config } from "../config/settings.ts";
import { createPaidReads, type PaidReads } from "../http/paid-reads.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { RateLimiter } from "../http/rate-limiter.ts";
import { systemClock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { openPaidReading as open, type PaidReading } from "../payment/x402/paid-reading.ts";
import { type X402, x402AmountMin } from "../payment/x402/x402.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds } from "../store/ledger/transfers.ts";
import { badSettings } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import { systemRandom } from "./random.ts";
import { storedKey } from "./stored-key.ts";

/** What it is opened with. */
export type PaidReadingParts = Readonly<{
  config: Config;
  folder: Pick<DataFolder, "keys">;
  ledger: LedgerDatabase;
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
}>;

/** Opens it where the settings ask for it. Rejects when the ledger cannot be read. */
export async function openPaidReading(parts: PaidReadingParts): Promise<PaidReading | undefined> {
  const { config, folder, ledger, x402 } = parts;
  if (!config.RATE_LIMITER_PAYMENT || x402 === undefined) return undefined;
  return await open({
    x402,
    ledger,
    key: storedKey(folder.keys, "readers"),
    clock: systemClock,
    amount: BigInt(config.RATE_LIMITER_PAYMENT_PRICE),
    bytes: config.RATE_LIMITER_PAYMENT_BYTES,
    makeId: createTransferIds(systemClock, systemRandom),
  });
}

/** What readers can pay for beyond the limits, and where they reach the gateway. */
export type SoldReading = Readonly<{ reading: PaidReading; publicUrl: PublicUrl }>;

/** Sells it at a listener; `undefined` where nothing is sold, or nothing limited. */
export function paidReadsOf(
  sold: SoldReading | undefined,
  limiter: RateLimiter | undefined,
  log: Log,
): PaidReads | undefined {
  if (sold === undefined || limiter === undefined) return undefined;
  const seed = Math.floor(systemRandom() * 2 ** 32);
  return createPaidReads({ ...sold, limiter, seed, clock: systemClock, log });
}

/** Checks what it is set to. @throws Misuse when something is missing. */
export function checkPaidReading(config: Config): void {
  if (!config.RATE_LIMITER_PAYMENT) return;
  const complaints: string[] = [];
  if (!config.ENABLE_RATE_LIMITER) complaints.push("RATE_LIMITER_PAYMENT needs ENABLE_RATE_LIMITER");
  if (config.X402_PAY_TO === undefined) complaints.push("RATE_LIMITER_PAYMENT needs X402_PAY_TO");
  if (BigInt(config.RATE_LIMITER_PAYMENT_PRICE) < x402AmountMin)
    complaints.push(
      `RATE_LIMITER_PAYMENT_PRICE must be ${x402AmountMin} or more, got "${config.RATE_LIMITER_PAYMENT_PRICE}"`,
    );
  if (complaints.length > 0) throw badSettings(complaints);
}
