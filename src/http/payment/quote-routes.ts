/**
 * The state of a quote, as JSON and as the pages that checkouts return to. It is shown to whoever knows the quote's id,
 * which cannot be guessed: a payer sees the payment arrive without watching a balance that other payments change.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { cancelledPage, donePage } from "./checkout-return-page.ts";
import { isoDate } from "./credit-records.ts";
import { topUpParameters } from "./parameters.ts";
import { noStore } from "./signer.ts";
import { cancelledPath, donePath, quoteParameter } from "./top-up-request.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type QuoteRoutesOptions = Readonly<{
  /** `undefined` for one that was never made, or was removed since. */
  quote: (id: string) => Promise<Quote | undefined>;
}>;

/** Creates the routes. */
export function createQuoteRoutes({ quote }: QuoteRoutesOptions): AnyElysia {
  const find = async (id: string) =>
    topUpParameters.quoteId.is(id) ? await fromLedger("database_unavailable", quote(id)) : undefined;
  const findNamed = (request: Request) =>
    find(new URLSearchParams(contextOf(request).target.query).get(quoteParameter) ?? "");
  return new Elysia({ strictPath: true })
    .get(donePath, async ({ request }) => donePage(await findNamed(request)))
    .get(cancelledPath, async ({ request }) => cancelledPage(await findNamed(request)))
    .get("/top-up-quote/:id", async ({ params: { id } }) => {
      const found = await find(id);
      if (found === undefined) throw new Failure("not_found", {});
      const { state, creditedWinc, takenBackWinc, expiresAt } = found;
      const record = {
        topUpQuoteId: found.id,
        status: state,
        wincCredited: creditedWinc.toString(),
        wincTakenBack: takenBackWinc.toString(),
        quoteExpirationDate: isoDate(expiresAt),
      };
      return jsonResponse(record, 200, noStore);
    });
}
