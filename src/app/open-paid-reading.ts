/**
 * Opens paid reading, by x402, beyond the rate limits.
 * @module
 */
import type { Config } from "../config/settings.ts";
import { createPaidReads, type PaidReads } from "../http/paid-reads.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { RateLimiter } from "../http/rate-limiter.ts";
import { systemClock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { invalidValue } from "../lib/printable.ts";
import { openPaidReading as open, type PaidReading } from "../payment/x402/paid-reading.ts";
import { type X402, x402AmountMin } from "../payment/x402/x402.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds } from "../store/ledger/transfers.ts";
import type { AppContext } from "./base.ts";
import { badSettings } from "./complaints.ts";
import { storedKey } from "./keys.ts";
import { randomSeed, systemRandom } from "./random.ts";

type PaidReadingParts = Readonly<{
  ledger: LedgerDatabase;
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
}>;

/** Opens paid reading if the settings enable it. Rejects when the ledger cannot be read. */
export async function openPaidReading(
  { config, folder }: AppContext,
  { ledger, x402 }: PaidReadingParts,
): Promise<PaidReading | undefined> {
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

/** Paid reading, and the base URL at which clients reach the gateway. */
export type SoldReading = Readonly<{ reading: PaidReading; publicUrl: PublicUrl }>;

/** Creates paid reading at a listener; undefined without paid reading or without rate limits. */
export function paidReadsOf(
  sold: SoldReading | undefined,
  limiter: RateLimiter | undefined,
  log: Log,
): PaidReads | undefined {
  if (sold === undefined || limiter === undefined) return undefined;
  return createPaidReads({ ...sold, limiter, seed: randomSeed(), clock: systemClock, log });
}

/** Checks the settings of paid reading. @throws Misuse when a setting is missing or too low. */
export function checkPaidReading(config: Config): void {
  if (!config.RATE_LIMITER_PAYMENT) return;
  const complaints: string[] = [];
  if (!config.ENABLE_RATE_LIMITER) complaints.push("RATE_LIMITER_PAYMENT needs ENABLE_RATE_LIMITER");
  if (config.X402_PAY_TO === undefined) complaints.push("RATE_LIMITER_PAYMENT needs X402_PAY_TO");
  if (BigInt(config.RATE_LIMITER_PAYMENT_PRICE) < x402AmountMin)
    complaints.push(
      invalidValue("RATE_LIMITER_PAYMENT_PRICE", String(config.RATE_LIMITER_PAYMENT_PRICE), `${x402AmountMin} or more`),
    );
  if (complaints.length > 0) throw badSettings(complaints);
}
