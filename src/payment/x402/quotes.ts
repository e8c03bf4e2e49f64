/**
 * What things cost by x402, and which of the prices that were told lately a payment pays.
 *
 * A payer signs the amount that it was told a moment ago, and version 2 takes no other: so a price is held for as long
 * as a payment may take, whatever it would be by then. Held prices are this process's own; another takes the payment
 * at its own price, or refuses it before anything has moved.
 * @module
 */
import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import type { Token } from "../addresses.ts";
import type { Prices } from "../prices/prices.ts";
import { type X402Quote, type X402Want, x402AmountMin } from "./x402.ts";

/** What a payment buys. */
export type Bought = Readonly<{
  /** What is credited: all that was paid, at the price of the quote. */
  winc: bigint;
  /** What the quote was for. */
  quotedWinc: bigint;
}>;

/** The prices. */
export type X402Quotes = Readonly<{
  /** As `X402.quote`. */
  quote: (want: X402Want, signal: AbortSignal) => Promise<X402Quote>;
  /**
   * What a payment buys.
   * @param version - Version 1 may pay more than was asked for, version 2 may not.
   * @returns `undefined` when it pays none of the prices that are held.
   */
  bought: (want: X402Want, version: 1 | 2, paid: bigint) => Bought | undefined;
}>;

/** What they are made of. */
export type X402QuotesOptions = Readonly<{
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  /** By whose price the asset is sold. */
  token: Token;
  /** How long a price is held. */
  heldMs: number;
  clock: Clock;
}>;

/** A price that was told, and until when it is held; Unix milliseconds. */
type Held = Readonly<{ amount: bigint; winc: bigint; credited: bigint; until: number }>;

/** Things whose prices are held; of more, those that were told longest ago are forgotten. */
const wantsHeldMax = 10_000;

/** Prices of one thing: a source that changes every half minute tells ten in five. */
const pricesHeldMax = 16;

/** Creates them. */
export function createX402Quotes({ prices, token, heldMs, clock }: X402QuotesOptions): X402Quotes {
  const held = new Map<string, readonly Held[]>();

  function heldFor(key: string): readonly Held[] {
    const now = clock();
    return (held.get(key) ?? []).filter(({ until }) => until > now);
  }

  function hold(key: string, price: Omit<Held, "until">): void {
    const others = heldFor(key).filter(({ amount, winc: bought }) => amount !== price.amount || bought !== price.winc);
    held.delete(key); // and in again at the end: those at the front were told longest ago
    held.set(key, [...others, { ...price, until: clock() + heldMs }].slice(-pricesHeldMax));
    if (held.size <= wantsHeldMax) return;
    for (const oldest of held.keys()) {
      held.delete(oldest);
      break;
    }
  }

  return {
    quote: async (want, signal) => {
      if (want.kind === "dollars") {
        const { winc: worth } = await prices.token(token, want.amount, signal);
        if (worth > amountMax) throw new Failure("invalid_quantity", { ...want });
        hold(keyOf(want), { amount: want.amount, winc: worth, credited: worth });
        return { want, amount: want.amount, winc: worth };
      }
      const wanted = want.kind === "credits" ? want.winc : (await prices.bytes(want.size, signal)).winc;
      // What costs nothing is paid for all the same: with the least that can be paid, for credits.
      const winced = winc(larger(wanted, 1n));
      if (winced > amountMax) throw new Failure("invalid_quantity", { ...want });
      const amount = larger(await prices.tokenFor(token, winced, signal), x402AmountMin);
      const { winc: worth } = await prices.token(token, amount, signal);
      const credited = larger(worth, winced);
      if (credited > amountMax) throw new Failure("invalid_quantity", { ...want });
      hold(keyOf(want), { amount, winc: winced, credited });
      return { want, amount, winc: winced };
    },
    bought: (want, version, paid) => {
      const [best] = heldFor(keyOf(want))
        .filter(({ amount }) => (version === 1 ? amount <= paid : amount === paid))
        .sort(closestFirst);
      if (best === undefined) return undefined;
      return { winc: (best.credited * paid) / best.amount, quotedWinc: best.winc };
    },
  };
}

function keyOf(want: X402Want): string {
  switch (want.kind) {
    case "bytes":
      return `bytes:${want.size}`;
    case "credits":
      return `credits:${want.winc}`;
    case "dollars":
      return `dollars:${want.amount}`;
  }
}

/** The highest price that is paid is the one that was signed; of two equal ones, the one that buys more. */
function closestFirst(left: Held, right: Held): number {
  if (left.amount !== right.amount) return left.amount > right.amount ? -1 : 1;
  return left.credited > right.credited ? -1 : 1;
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}
