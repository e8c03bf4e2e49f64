/**
 * What the chain asks for storage, as our own nodes say it: the price of one large size, of which every item's price
 * is a part.
 * Source: docs/reference/payment.md#prices-of-storage.
 * @module
 */
import type { Nodes } from "../../chain/nodes.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { openRefresh } from "./refresh.ts";

/** The size that is asked for, 10 GiB in bytes: for smaller ones rounding up would weigh more. */
const askedBytes = 10 * 2 ** 30;

/** The price of storage. */
export type NetworkPrice = Readonly<{
  /**
   * Winston for 10 GiB; at once where it is held and young enough.
   * @throws Failure `pricing_oracle_unavailable`.
   */
  price: (signal: AbortSignal) => Promise<bigint>;
  /** Milliseconds since it was asked for; `undefined` before. */
  ageMs: () => bigint | undefined;
  close: () => Promise<void>;
}>;

/** How it is asked for. */
export type NetworkPriceOptions = Readonly<{
  nodes: Pick<Nodes, "ask">;
  /** Oldest price that is used. Milliseconds. */
  ageMaxMs: number;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  log: Log;
  /** For tests. Milliseconds. */
  everyMs?: number;
  timeoutMs?: number;
}>;

/** The price changes with blocks, every two minutes, by little. */
const everyMsDefault = 60_000;

/** Callers wait for an attempt at most so long. */
const timeoutMsDefault = 5_000;

/** All that there will ever be of the token, winston: nothing costs more. */
const priceMax = 66_000_000n * 1_000_000_000_000n;

/** Opens it; the first question is under way when this returns. */
export function openNetworkPrice(options: NetworkPriceOptions): NetworkPrice {
  const { nodes, ageMaxMs, clock, random, log } = options;
  const timeoutMs = options.timeoutMs ?? timeoutMsDefault;
  let held: { price: bigint; at: number } | undefined;

  const ask = async (signal: AbortSignal): Promise<void> => {
    const response = await nodes.ask((node, own) => node.price(askedBytes, undefined, own), signal, checkPrice);
    if (response.kind !== "ok") throw new Failure("pricing_oracle_unavailable", { response });
    held = { price: response.value, at: clock() };
  };
  const refresh = openRefresh({
    name: "network price",
    ask,
    everyMs: options.everyMs ?? everyMsDefault,
    timeoutMs,
    random,
    log,
  });
  const current = () => (held !== undefined && held.at >= clock() - ageMaxMs ? held.price : undefined);
  return {
    price: async (signal) => {
      const price = current();
      if (price !== undefined) return price;
      await refresh.settled(signal);
      const found = current();
      if (found === undefined) throw new Failure("pricing_oracle_unavailable");
      return found;
    },
    ageMs: () => (held === undefined ? undefined : BigInt(clock() - held.at)),
    close: refresh.close,
  };
}

function checkPrice(price: bigint): string | undefined {
  return price > 0n && price <= priceMax ? undefined : `storage cannot cost ${price} winston`;
}
