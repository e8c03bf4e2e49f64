/**
 * What storage costs on the chain: the fee that a transaction must pay at least.
 *
 * Storing for ever is a sum that shrinks by half a percent a year: one year's price over −ln(0.995), and a twentieth
 * on top for the miner. Everything is exact; only the last step rounds, down.
 * Source: docs/reference/formats.md#transaction-fee.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { ceilToGrid } from "./tx-root.ts";
import { type Winston, winston } from "./winston.ts";

/** What the price depends on, as a block states it. */
export type StoragePrice = Readonly<{
  /** Winston for a gibibyte and a minute, one copy. */
  pricePerGibMinute: bigint;
  /** Doubles when the endowment falls short; 1 until then. */
  kryderPlusRateMultiplier: bigint;
}>;

/** Bytes that a transaction counts besides its data. */
const transactionSizeBase = 3_210n;

/** An account that does not exist yet costs as much as this many bytes. */
const newAccountSize = 20_000_000n;

const minutesPerYear = 525_600n;
const copies = 20n;
const bytesPerGib = 1_073_741_824n;

/** −ln(0.995) as the chain's fraction. */
const decay = { dividend: 5_012_541_823_544_286n, divisor: 1_000_000_000_000_000_000n };

/** Price and the miner's twentieth: 21/20. */
const withMinerShare = { dividend: 21n, divisor: 20n };

/**
 * The least that a transaction must pay.
 *
 * @param dataSize - Bytes of data, 0 or more; counted in whole chunks.
 * @param recipient - Whether the target, if there is one, has an account already.
 */
export function transactionFee(price: StoragePrice, dataSize: bigint, recipient: "none" | "known" | "new"): Winston {
  const fee = storageFee(price, ceilToGrid(dataSize) + transactionSizeBase);
  return winston(recipient === "new" ? fee + storageFee(price, newAccountSize) : fee);
}

/** The fee for a number of bytes for ever, as they are. @param size - 0 or more. */
export function storageFee({ pricePerGibMinute, kryderPlusRateMultiplier }: StoragePrice, size: bigint): bigint {
  assert(size >= 0n, "a size is 0 or more");
  const firstYear = size * pricePerGibMinute * minutesPerYear * copies * kryderPlusRateMultiplier;
  return (
    (firstYear * decay.divisor * withMinerShare.dividend) / (bytesPerGib * decay.dividend * withMinerShare.divisor)
  );
}
