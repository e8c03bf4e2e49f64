/**
 * The x402 service: quotes, settlements of requests, and the watch over open payments.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import { createAuthorizationChain } from "../evm/authorization-chain.ts";
import type { EvmChain, EvmClient } from "../evm/evm-chain.ts";
import type { Prices } from "../prices/price-types.ts";
import type { X402, X402Terms } from "./x402.ts";
import { createX402Following, type Patience } from "./x402-following.ts";
import { createX402Offers, createX402Quotes } from "./x402-offers.ts";
import type { Settler } from "./x402-settlers.ts";
import { openX402Settling } from "./x402-settling.ts";
import { domainOf } from "./x402-validation.ts";
import { runX402Watch } from "./x402-watch.ts";

export type OpenX402 = X402 &
  Readonly<{
    /** Why payments cannot be followed; undefined when they can. */
    fault: () => string | undefined;
    /** Follows the due payments now, independently of the watch. @throws Failure of the ledger. */
    look: (signal: AbortSignal) => Promise<void>;
    close: () => Promise<void>;
  }>;

export type X402Options = Readonly<{
  terms: X402Terms;
  ledger: LedgerDatabase;
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  /** The chain of the terms. */
  client: Pick<EvmClient, "ask" | "call">;
  evm: Pick<EvmChain, "receipt">;
  settle: Settler;
  /** Confirmations at which a block is final. */
  finalConfirmations: number;
  /** Blocked payers, canonical addresses. */
  excluded: ReadonlySet<string>;
  clock: Clock;
  makeId: MakeId;
  log: Log;
  patience?: Patience;
  /** Between two looks of the watch. Milliseconds. */
  watchMs?: number;
  /** Longest wait of a request for its payment. Milliseconds. */
  responseMs?: number;
}>;

const watchMsDefault = 2_000;

/** A price is held a little longer than a payment for it may take. Milliseconds. */
const heldSlackMs = 30_000;

/** Opens x402 payments. The caller closes the clients that it passed. */
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
