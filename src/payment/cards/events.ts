/**
 * What happened at the card provider, taken in: each event once for ever, with all that follows from it in one
 * transaction, durable before the answer.
 * Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { claimEvent } from "../../store/ledger/transfers.ts";
import type { StripeEvent } from "../providers/stripe-event.ts";
import { factOf } from "../providers/stripe-objects.ts";
import type { CardFact } from "./facts.ts";
import { type Settled, type SettlementParts, settleFact } from "./settlement.ts";

/** What taking events in needs. */
export type CardEventParts = SettlementParts & Readonly<{ ledger: LedgerDatabase; clock: Clock; log: Log }>;

/** Takes in what the provider says. */
export type CardEvents = Readonly<{
  /** Takes an event in; one that was taken in before, or says nothing to us, changes nothing. */
  take: (event: StripeEvent) => Promise<Settled>;
  /** Those of the events, at most a page of them, that were not taken in yet and say something. */
  unseen: (events: readonly StripeEvent[]) => Promise<StripeEvent[]>;
  /** Takes in what the provider answered when it was asked. */
  learn: (fact: CardFact) => Promise<Settled>;
}>;

/** Under which name events are claimed. */
const source = "stripe";

/** Creates it. Its calls reject as the ledger's `write` does. */
export function createCardEvents({ ledger, clock, log, ...parts }: CardEventParts): CardEvents {
  const told = (settled: Settled, facts: Readonly<Record<string, unknown>>): Settled => {
    if (settled === "refused") log.warn("a card payment goes back to its payer", facts);
    else if (settled !== "nothing") log.info("a card payment was settled", { ...facts, settled });
    return settled;
  };
  return {
    take: async (event) => {
      const fact = factOf(event);
      if (fact === undefined) return "nothing";
      const now = clock();
      const settled = await ledger.write(async (tx) => {
        if (!(await claimEvent(tx, source, event.id, now))) return "nothing";
        return await settleFact(tx, fact, now, parts);
      });
      return told(settled, { event: event.id, type: event.type, ...namesOf(fact) });
    },
    unseen: async (events) => {
      const telling = events.filter((event) => factOf(event) !== undefined);
      if (telling.length === 0) return [];
      const marks = telling.map(() => "?").join(", ");
      const ids = telling.map(({ id }) => id);
      const seen = await ledger.read((tx) =>
        tx.all<{ event_id: string }>(
          `SELECT event_id FROM events WHERE source = ? AND event_id IN (${marks})`,
          source,
          ...ids,
        ),
      );
      const known = new Set(seen.map((row) => row.event_id));
      return telling.filter(({ id }) => !known.has(id));
    },
    learn: async (fact) => {
      const now = clock();
      return told(await ledger.write((tx) => settleFact(tx, fact, now, parts)), namesOf(fact));
    },
  };
}

/** What a line of the log names. */
function namesOf(fact: CardFact): Readonly<Record<string, unknown>> {
  return fact.kind === "ended" ? { quoteId: fact.quoteId } : { paymentId: fact.paymentId };
}
