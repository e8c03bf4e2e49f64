/**
 * Fees: the chain's own formula at a price that never moves, so that a test knows what it pays.
 *
 * A byte costs about 820 winston, near the main net's; the smallest transaction of data about 0.00022 AR.
 * Source: ArweaveTeam/arweave, ar_pricing (get_tx_fee), ar_tx (get_tx_fee2, get_weave_size_increase).
 * @module
 */
import { type Winston, winston } from "../arweave/winston.ts";

/** Winston for one gibibyte and minute. */
export const pricePerGibMinute = 400n;

/** Doubled on the main net when the endowment runs dry; here it never does. */
export const kryderPlusRateMultiplier = 1n;

/** Bytes in a chunk of the weave; every transaction's data takes whole ones. */
export const weaveStep = 262_144;

const gib = 1_073_741_824n;
const minutesPerYear = 525_600n;
const replicas = 20n;

/** The natural logarithm of the yearly price decay, 0.5 %, as a fraction (its sign turned). */
const decay = { dividend: 5_012_541_823_544_286n, divisor: 1_000_000_000_000_000_000n };

/** What a transaction without data still takes. */
const transactionSizeBase = 3_210n;

/** Sending to an address that has no account costs as much as this many bytes. */
const newAccountSizeEquivalent = 20_000_000n;

/** Bytes of weave that data of a size takes: whole chunks, none for no data. */
export function weaveSizeOf(dataSize: bigint): bigint {
  const step = BigInt(weaveStep);
  return ((dataSize + step - 1n) / step) * step;
}

/**
 * The least a transaction has to pay.
 *
 * @param dataSize - Bytes, 0 or more.
 * @param recipient - Whether the target has an account; "none" when there is no target.
 */
export function transactionFee(dataSize: bigint, recipient: "none" | "known" | "new"): Winston {
  const upload = storageFee(weaveSizeOf(dataSize) + transactionSizeBase);
  return winston(recipient === "new" ? upload + storageFee(newAccountSizeEquivalent) : upload);
}

/** The miner's part of a fee; the rest goes to the endowment. */
export function minerShare(fee: bigint): bigint {
  return fee / 21n;
}

/** Storage for ever: the first year's price over the decay, and a twentieth for the miner. */
function storageFee(size: bigint): bigint {
  const firstYear = size * pricePerGibMinute * minutesPerYear * kryderPlusRateMultiplier * replicas;
  return (firstYear * decay.divisor * 21n) / (decay.dividend * gib * 20n);
}
