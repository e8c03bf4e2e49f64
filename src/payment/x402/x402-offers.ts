/**
 * Accepts or rejects a new payment by its fields, its price, and a trial on the chain; and quotes prices.
 *
 * A rejection here stores nothing, so that unfunded signatures cannot fill the ledger.
 * @module
 */
import { winc } from "../../arweave/winston.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import type { Token } from "../addresses.ts";
import type { AuthorizationChain } from "../evm/authorization-chain.ts";
import type { Prices } from "../prices/price-types.ts";
import { larger } from "../prices/rational.ts";
import { type X402Quote, type X402Request, type X402Terms, type X402Want, x402AmountMin } from "./x402.ts";
import type { X402Payment } from "./x402-payment-reader.ts";
import type { X402Offer } from "./x402-payment-store.ts";
import { faultOf } from "./x402-validation.ts";

type X402OffersOptions = Readonly<{
  terms: X402Terms;
  quotes: X402Quotes;
  chain: AuthorizationChain;
  /** Blocked payers, canonical addresses. */
  excluded: ReadonlySet<string>;
  clock: Clock;
}>;

/**
 * Validates a payment with a valid signature, and returns the offer to store.
 * @throws Failure `settlement_failed` {reason}; `settlement_unknown` when the chain is unreachable, because the payment
 *   could not be followed; those of `quote`.
 */
export type OfferX402 = (request: X402Request, signal: AbortSignal) => Promise<X402Offer>;

/** Range of the search for an earlier settlement: some hours of a fast chain. Blocks. */
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
    // The authorization may already be settled by another sender: then it is paid.
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

/** The failure of an invalid or unsettled payment. */
export function x402Rejection(reason: string): Failure {
  return new Failure("settlement_failed", { reason });
}

function unixSeconds(clock: Clock): bigint {
  return BigInt(clock()) / 1_000n;
}

// Prices for x402, and the match of a payment with the recently quoted prices.
//
// A payer signs the amount of a recent quote, and version 2 accepts no other amount. A price is therefore held as long
// as a payment may take. Held prices belong to one process. Another process accepts the payment at its own price, or
// rejects it before money moves.

/** The result of a payment. */
type Bought = Readonly<{
  /** The credits for the full payment, at the price of the quote. */
  winc: bigint;
  /** The credits that the quote promised. */
  quotedWinc: bigint;
}>;

export type X402Quotes = Readonly<{
  /** As `X402.quote`. */
  quote: (want: X402Want, signal: AbortSignal) => Promise<X402Quote>;
  /**
   * The credits that a payment buys.
   * @param version - Version 1 may pay more than the price, version 2 may not.
   * @returns `undefined` when it pays none of the held prices.
   */
  bought: (want: X402Want, version: 1 | 2, paid: bigint) => Bought | undefined;
}>;

type X402QuotesOptions = Readonly<{
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  /** The token of the asset's price. */
  token: Token;
  /** Lifetime of a quoted price. */
  heldMs: number;
  clock: Clock;
}>;

/** A quoted price and its expiry, Unix milliseconds. */
type Held = Readonly<{ amount: bigint; winc: bigint; credited: bigint; until: number }>;

/** Purchases with held prices; beyond that, the oldest are dropped. */
const wantsHeldMax = 10_000;

/** Held prices of one purchase: a price that changes twice a minute has ten values in five minutes. */
const pricesHeldMax = 16;

export function createX402Quotes({ prices, token, heldMs, clock }: X402QuotesOptions): X402Quotes {
  const held = new Map<string, readonly Held[]>();

  function heldFor(key: string): readonly Held[] {
    const now = clock();
    return (held.get(key) ?? []).filter(({ until }) => until > now);
  }

  function hold(key: string, price: Omit<Held, "until">): void {
    const others = heldFor(key).filter(({ amount, winc: bought }) => amount !== price.amount || bought !== price.winc);
    held.delete(key); // inserted again at the end: the map is ordered by age
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
      // A free purchase still costs the lowest price, which buys credits.
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

/** The signed price is the highest one that the payment covers; of two equal prices, the one with more credits. */
function closestFirst(left: Held, right: Held): number {
  if (left.amount !== right.amount) return left.amount > right.amount ? -1 : 1;
  return left.credited > right.credited ? -1 : 1;
}
