/**
 * What is kept of a payment that comes for the first time, or why it is refused: by its words, by its price, and by
 * what the chain would do with it.
 *
 * A refusal here leaves nothing behind: strangers cannot fill the ledger with signatures that no dollar stands behind.
 * @module
 */
import { Failure } from "../../failures.ts";
import { atLeast } from "../../lib/bounds.ts";
import type { Clock } from "../../lib/clock.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import type { AuthorizationChain } from "../evm/authorization-chain.ts";
import { faultOf } from "./check.ts";
import type { X402Payment } from "./payload.ts";
import type { Bought, X402Quotes } from "./quotes.ts";
import type { X402Request, X402Terms } from "./x402.ts";
import type { X402Offer } from "./x402-payment-store.ts";

/** What it asks. */
export type X402OffersOptions = Readonly<{
  terms: X402Terms;
  quotes: X402Quotes;
  chain: AuthorizationChain;
  /** Payers who are refused, canonical. */
  excluded: ReadonlySet<string>;
  clock: Clock;
}>;

/**
 * Makes of a payment what is kept of it; its signature was checked.
 * @throws Failure `settlement_failed` {reason}; `settlement_unknown` when the chain cannot be asked, for a payment that
 *   could not be followed is not taken; those of `quote`.
 */
export type OfferX402 = (request: X402Request, signal: AbortSignal) => Promise<X402Offer>;

/** So far back a payment is looked for that was carried out before it came here: some hours of a fast chain. Blocks. */
const blocksBack = 5_000;

/** Servers behind one address differ by some blocks. */
const blocksOverlap = 64;

/** Creates it. */
export function createX402Offers(options: X402OffersOptions): OfferX402 {
  const { terms, quotes, chain, clock } = options;

  async function boughtBy({ want, payment }: X402Request, signal: AbortSignal): Promise<Bought> {
    const { version, authorization } = payment;
    const held = quotes.bought(want, version, authorization.value);
    if (held !== undefined) return held;
    await quotes.quote(want, signal);
    const now = quotes.bought(want, version, authorization.value);
    if (now === undefined) throw x402Refusal("invalid_exact_evm_authorization_value");
    return now;
  }

  /** @returns A block below which the authorization was not used. */
  async function tryOnChain({ authorization, signature }: X402Payment, signal: AbortSignal): Promise<number> {
    const [newest, trial] = await Promise.all([chain.newest(signal), chain.try(authorization, signature, signal)]);
    if (newest.kind === "trouble") throw new Failure("settlement_unknown", { ...newest });
    if (trial.kind === "trouble") throw new Failure("settlement_unknown", { ...trial });
    const { height } = newest.value;
    if (trial.kind === "fits") return atLeast(height - blocksOverlap, 0);
    // It may be that somebody has carried it out already: then it has paid.
    const fromHeight = atLeast(height - blocksBack, 0);
    const standing = await chain.look(authorization, { transaction: undefined, fromHeight }, signal);
    if (standing.kind === "ok" && standing.value.kind === "moved") return fromHeight;
    throw x402Refusal(trial.reason);
  }

  return async (request, signal) => {
    const { payment, purpose, resource } = request;
    const { authorization, signature, version } = payment;
    const fault = faultOf(terms, payment, unixSeconds(clock));
    if (fault !== undefined) throw x402Refusal(fault);
    if (options.excluded.has(authorization.from)) throw x402Refusal("the payer is excluded");
    const bought = await boughtBy(request, signal);
    if (bought.winc > amountMax) throw x402Refusal("the amount is larger than an account can hold");
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
export function x402Refusal(reason: string): Failure {
  return new Failure("settlement_failed", { reason });
}

function unixSeconds(clock: Clock): bigint {
  return BigInt(clock()) / 1_000n;
}
