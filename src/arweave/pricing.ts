/**
 * The price of storage on the chain: the minimum fee of a transaction.
 *
 * Permanent storage costs one year's price over −ln(0.995), because prices fall by half a percent a year, and a
 * twentieth more for the miner. The arithmetic is exact; the last step rounds down.
 * Source: docs/reference/formats.md#transaction-fee.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { ceilToGrid } from "./tx-root.ts";
import { type Winston, winston } from "./winston.ts";

/** The parameters of the price, from a block. */
export type StoragePrice = Readonly<{
  /** Winston for one copy of a gibibyte for a minute. */
  pricePerGibMinute: bigint;
  /** Doubles when the endowment is too small; 1 until then. */
  kryderPlusRateMultiplier: bigint;
}>;

/** Bytes that are charged for every transaction besides its data. */
const transactionSizeBase = 3_210n;

/** A new account costs as much as this many bytes. */
const newAccountSize = 20_000_000n;

const minutesPerYear = 525_600n;
const copies = 20n;
const bytesPerGib = 1_073_741_824n;

/** −ln(0.995) as the chain's fraction. */
const decay = { dividend: 5_012_541_823_544_286n, divisor: 1_000_000_000_000_000_000n };

/** Price and the miner's twentieth: 21/20. */
const withMinerShare = { dividend: 21n, divisor: 20n };

/**
 * The minimum fee of a transaction.
 *
 * @param dataSize - Bytes of data, 0 or more; counted in whole chunks.
 * @param recipient - Whether the target, if there is one, has an account already.
 */
export function transactionFee(price: StoragePrice, dataSize: bigint, recipient: "none" | "known" | "new"): Winston {
  const fee = storageFee(price, ceilToGrid(dataSize) + transactionSizeBase);
  return winston(recipient === "new" ? fee + storageFee(price, newAccountSize) : fee);
}

/** The fee for permanent storage of a number of bytes, not rounded to chunks. @param size - 0 or more. */
export function storageFee({ pricePerGibMinute, kryderPlusRateMultiplier }: StoragePrice, size: bigint): bigint {
  assert(size >= 0n, "a size is 0 or more");
  const firstYear = size * pricePerGibMinute * minutesPerYear * copies * kryderPlusRateMultiplier;
  return (
    (firstYear * decay.divisor * withMinerShare.dividend) / (bytesPerGib * decay.dividend * withMinerShare.divisor)
  );
}
