/**
 * How a quote stands: for whoever knows its id, which nobody guesses; so that a payer learns that it was paid without
 * watching a balance that other things change too.
 * Source: docs/decisions/075-card-payments.md.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import { jsonAnswer } from "../answers.ts";
import { isoDate } from "./credit-records.ts";
import { topUpParameters } from "./parameters.ts";
import { noStore } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type QuoteRoutesOptions = Readonly<{
  /** `undefined` for one that was never made, or was removed since. */
  quote: (id: string) => Promise<Quote | undefined>;
}>;

/** Creates the routes. */
export function createQuoteRoutes({ quote }: QuoteRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).get("/top-up-quote/:id", async ({ params: { id } }) => {
    const found = topUpParameters.quoteId.is(id)
      ? await fromLedger("database_unavailable", quote(id))
      : undefined;
    if (found === undefined) throw new Failure("not_found", {});
    const { state, creditedWinc, takenBackWinc, expiresAt } = found;
    const record = {
      topUpQuoteId: found.id,
      status: state,
      wincCredited: creditedWinc.toString(),
      wincTakenBack: takenBackWinc.toString(),
      quoteExpirationDate: isoDate(expiresAt),
    };
    return jsonAnswer(record, 200, noStore);
  });
}
