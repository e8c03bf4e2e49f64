/**
 * The state of a quote, as JSON and as the pages that checkouts return to. The id, which cannot be guessed, is the only
 * credential: a payer sees the payment arrive without watching a balance that other payments change.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import type { PublicUrl } from "../public-url.ts";
import { failureResponses, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, plainText, type RouteDescription } from "../route-schema.ts";
import { dateTime, fromLedger, winc } from "./payment-common.ts";
import { type CheckoutPage, cancelledPage, donePage } from "./payment-pages.ts";
import { isoDate } from "./payment-records.ts";
import { cancelledPath, donePath, quoteParameter } from "./top-up-routes.ts";

export type QuoteRoutesOptions = Readonly<{
  /** Returns `undefined` for a quote that never existed or was removed. */
  quote: (id: string) => Promise<Quote | undefined>;
  /** The page that sells credits; absent, or "" for a request, where there is none. */
  accountUrl?: PublicUrl | undefined;
}>;

/** The record of a quote, as a component of the API reference. */
export const quoteSchemas: Readonly<Record<string, Schema>> = {
  QuoteStatus: record({
    topUpQuoteId: textSchema,
    status: { type: "string", enum: ["open", "paid", "expired", "failed"] },
    wincCredited: winc,
    wincTakenBack: { ...winc, description: "The part that a refund or a dispute took back." },
    quoteExpirationDate: dateTime,
  }),
};

const idPattern = "^[0-9a-f]{32}$";
const idShape = new RegExp(idPattern);

const tag = "Top-ups";
const page = { 200: { description: "The page.", content: { "text/html": { schema: textSchema } } } };

const ofQuote: RouteDescription = {
  tag,
  summary: "State of a quote",
  description: "The id is the only credential. Quotes that ended unpaid are removed after a while.",
  responses: {
    200: json("The state.", ref("QuoteStatus")),
    ...failureResponses("not_found", "database_unavailable"),
  },
};

const ofDonePage: RouteDescription = {
  tag,
  summary: "Return page of completed checkouts",
  description: "Amount, credits, account and state of the quote that `topUpQuoteId` names.",
  responses: page,
};

/** Counts the reloads of a page. */
const reloadParameter = "reload";

export function createQuoteRoutes({ quote, accountUrl }: QuoteRoutesOptions): AnyElysia {
  const find = (id: string) => fromLedger("database_unavailable", quote(id));
  const pageOf = async (request: Request): Promise<CheckoutPage> => {
    const query = new URLSearchParams(contextOf(request).target.query);
    const id = query.get(quoteParameter) ?? "";
    const reload = query.get(reloadParameter) ?? "";
    return {
      quote: idShape.test(id) ? await find(id) : undefined,
      reloads: /^\d{1,3}$/.test(reload) ? Number(reload) : 0,
      againUrl: (reloads) => `?${new URLSearchParams({ [quoteParameter]: id, [reloadParameter]: String(reloads) })}`,
      accountUrl: accountUrl?.(request) || undefined,
    };
  };
  return new Elysia({ strictPath: true })
    .get(donePath, async ({ request }) => donePage(await pageOf(request)), { detail: described(ofDonePage) })
    .get(cancelledPath, async ({ request }) => cancelledPage(await pageOf(request)), {
      detail: described({ tag, summary: "Return page of abandoned checkouts", responses: page }),
    })
    .get(
      "/top-up-quote/:id",
      async ({ params }) => {
        const found = await find(params.id);
        if (found === undefined) throw new Failure("not_found", {});
        const { id, state, creditedWinc, takenBackWinc, expiresAt } = found;
        return jsonResponse(
          {
            topUpQuoteId: id,
            status: state,
            wincCredited: creditedWinc.toString(),
            wincTakenBack: takenBackWinc.toString(),
            quoteExpirationDate: isoDate(expiresAt),
          },
          200,
          noStore,
        );
      },
      {
        params: t.Object({
          id: plainText({ description: "`topUpQuoteId`.", example: "0".repeat(32), pattern: idPattern }, "not_found"),
        }),
        detail: described(ofQuote),
      },
    );
}
