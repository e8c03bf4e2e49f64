/**
 * Payments by x402 at work: quotes, settlements that requests ask for, and the watch over what they leave open.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { Asking } from "../evm/asking.ts";
import { createAuthorizationChain } from "../evm/authorization-chain.ts";
import type { EvmChain } from "../evm/chain.ts";
import type { Prices } from "../prices/prices.ts";
import { domainOf } from "./check.ts";
import { createX402Following, type Patience } from "./following.ts";
import { createX402Offers } from "./offers.ts";
import { createX402Quotes } from "./quotes.ts";
import type { Settler } from "./settler.ts";
import { openX402Settling } from "./settling.ts";
import { runX402Watch } from "./watch.ts";
import type { X402, X402Terms } from "./x402.ts";

/** x402, open. */
export type OpenX402 = X402 &
  Readonly<{
    /** Why payments cannot be followed; undefined when they can. */
    fault: () => string | undefined;
    /** Follows what is due now, beside the watch's own pace. @throws Failure of the ledger. */
    look: (signal: AbortSignal) => Promise<void>;
    close: () => Promise<void>;
  }>;

/** What it is made of. */
export type X402Options = Readonly<{
  terms: X402Terms;
  ledger: LedgerDatabase;
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  /** The chain of the terms. */
  asking: Pick<Asking, "ask" | "call">;
  evm: Pick<EvmChain, "receipt">;
  settle: Settler;
  /** Confirmations from which on the chain never goes back. */
  finalConfirmations: number;
  /** Payers who are refused, canonical. */
  excluded: ReadonlySet<string>;
  clock: Clock;
  makeId: MakeId;
  log: Log;
  patience?: Patience;
  /** Between two looks of the watch. Milliseconds. */
  watchMs?: number;
  /** How long a request waits for its payment. Milliseconds. */
  responseMs?: number;
}>;

const watchMsDefault = 2_000;

/** A price is held a little longer than a payment for it may take. Milliseconds. */
const heldSlackMs = 30_000;

/** Opens it. What is asked of stays the caller's to close. */
export function openX402(options: X402Options): OpenX402 {
  const { terms, ledger, clock, log } = options;
  const chain = createAuthorizationChain({ ...options, domain: domainOf(terms) });
  const quotes = createX402Quotes({
    prices: options.prices,
    token: terms.network.asset.token,
    heldMs: terms.timeoutSeconds * 1_000 + heldSlackMs,
    clock,
  });
  const follow = createX402Following({ ...options, chain });
  const offer = createX402Offers({ ...options, quotes, chain });
  const settling = openX402Settling({ ...options, offer, follow });
  const watch = runX402Watch({ terms, ledger, follow, clock, log }, options.watchMs ?? watchMsDefault);
  return {
    terms,
    quote: quotes.quote,
    settle: settling.settle,
    fault: watch.fault,
    look: watch.look,
    close: async () => {
      await Promise.all([settling.close(), watch.close()]);
    },
  };
}
