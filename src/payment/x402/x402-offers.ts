/**
 * Accepts a new payment or rejects it: by its fields, by its price, and by
 * what the chain would do with it.
 *
 * A rejection here leaves nothing behind: strangers cannot fill the ledger with signatures that no dollar covers.
 * @module
 */

import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import type { Token } from "../addresses.ts";
import type { AuthorizationChain } from "../evm/authorization-chain.ts";
import type { Prices } from "../prices/price-types.ts";
import {
  faultOf,
  type X402Payment,
  type X402Quote,
  type X402Request,
  type X402Terms,
  type X402Want,
  x402AmountMin,
} from "./x402.ts";
import type { X402Offer } from "./x402-payment-store.ts";

type X402OffersOptions = Readonly<{
  terms: X402Terms;
  quotes: X402Quotes;
  chain: AuthorizationChain;
  /** Blocked payers, canonical addresses. */
  excluded: ReadonlySet<string>;
  clock: Clock;
}>;

/**
 * Makes of a payment what is stored of it; its signature was checked.
 * @throws Failure `settlement_failed` {reason}; `settlement_unknown` when the chain cannot be asked, for a payment that
 *   could not be followed is not taken; those of `quote`.
 */
export type OfferX402 = (request: X402Request, signal: AbortSignal) => Promise<X402Offer>;

/** So far back a payment is looked for that was carried out before it came here: some hours of a fast chain. Blocks. */
const blocksBack = 5_000;

/** Servers behind one address differ by some blocks. */
const blocksOverlap = 64;

export function createX402Offers(options: X402OffersOptions): OfferX402 {
  const { terms, quotes, chain, clock } = options;

  async function boughtBy({ want, payment }: X402Request, signal: AbortSignal): Promise<Bought> {
    const { version, authorization } = payment;
    const held = quotes.bought(want, version, authorization.value);
    if (held !== undefined) return held;
    await quotes.quote(want, signal);
    const now = quotes.bought(want, version, authorization.value);
    if (now === undefined) throw x402Rejection("invalid_exact_evm_authorization_value");
    return now;
  }

  /** @returns A block below which the authorization was not used. */
  async function tryOnChain({ authorization, signature }: X402Payment, signal: AbortSignal): Promise<number> {
    const [newest, trial] = await Promise.all([chain.newest(signal), chain.try(authorization, signature, signal)]);
    if (newest.kind === "fault") throw new Failure("settlement_unknown", { ...newest });
    if (trial.kind === "fault") throw new Failure("settlement_unknown", { ...trial });
    const { height } = newest.value;
    if (trial.kind === "fits") return Math.max(height - blocksOverlap, 0);
    // It may be that somebody has carried it out already: then it has paid.
    const fromHeight = Math.max(height - blocksBack, 0);
    const status = await chain.look(authorization, { transaction: undefined, fromHeight }, signal);
    if (status.kind === "ok" && status.value.kind === "moved") return fromHeight;
    throw x402Rejection(trial.reason);
  }

  return async (request, signal) => {
    const { payment, purpose, resource } = request;
    const { authorization, signature, version } = payment;
    const fault = faultOf(terms, payment, unixSeconds(clock));
    if (fault !== undefined) throw x402Rejection(fault);
    if (options.excluded.has(authorization.from)) throw x402Rejection("the payer is excluded");
    const bought = await boughtBy(request, signal);
    if (bought.winc > amountMax) throw x402Rejection("the amount is larger than an account can hold");
    const fromHeight = await tryOnChain(payment, signal);
    const { name: network, asset } = terms.network;
    return {
      network,
      asset: asset.address,
      token: asset.token,
      version,
      authorization,
      signature,
      resource,
      purpose,
      winc: bought.winc,
      quotedWinc: bought.quotedWinc,
      fromHeight,
    };
  };
}

/** A payment that is not, or did not become, what was asked for. */
export function x402Rejection(reason: string): Failure {
  return new Failure("settlement_failed", { reason });
}

function unixSeconds(clock: Clock): bigint {
  return BigInt(clock()) / 1_000n;
}

// Prices for x402, and which of the recently quoted prices a payment pays.
//
// A payer signs the amount that it was quoted a moment ago, and version 2 takes no other: so a price is held for as
// long as a payment may take, whatever it would be by then. Held prices are this process's own; another takes the
// payment at its own price, or rejects it before anything has moved.

/** The result of a payment. */
type Bought = Readonly<{
  /** The credits for the whole payment, at the price of the quote. */
  winc: bigint;
  /** The credits that the quote promised. */
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

type X402QuotesOptions = Readonly<{
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  /** By whose price the asset is sold. */
  token: Token;
  /** Lifetime of a quoted price. */
  heldMs: number;
  clock: Clock;
}>;

/** A quoted price and its expiry, Unix milliseconds. */
type Held = Readonly<{ amount: bigint; winc: bigint; credited: bigint; until: number }>;

/** Things whose prices are held; beyond that, the oldest quotes are dropped. */
const wantsHeldMax = 10_000;

/** Prices of one thing: a source that changes every half minute tells ten in five. */
const pricesHeldMax = 16;

export function createX402Quotes({ prices, token, heldMs, clock }: X402QuotesOptions): X402Quotes {
  const held = new Map<string, readonly Held[]>();

  function heldFor(key: string): readonly Held[] {
    const now = clock();
    return (held.get(key) ?? []).filter(({ until }) => until > now);
  }

  function hold(key: string, price: Omit<Held, "until">): void {
    const others = heldFor(key).filter(({ amount, winc: bought }) => amount !== price.amount || bought !== price.winc);
    held.delete(key); // and in again at the end: those at the front are the oldest
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
