/**
 * The pages that a checkout returns to: what was paid, for which account, and whether the credits are there; or that
 * nothing was paid. They work without scripts; a page that waits for the payment reloads itself.
 * @module
 */
import { writeMoney } from "../../payment/prices/currency-units.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import { creditsOf } from "../../payment/top-ups/top-up.ts";
import { paymentPage } from "./payment-page.ts";

/** Seconds between two looks at a payment that is not there yet: a webhook is on its way. */
const reloadSeconds = 2;

/** The page after a checkout that was completed. @param quote - `undefined` where the link names none. */
export function donePage(quote: Quote | undefined): Response {
  if (quote === undefined)
    return paymentPage(
      "You can close this page",
      "<p>A completed payment is credited within seconds. An abandoned one charges nothing.</p>",
      200,
    );
  const record = recordOf(quote);
  switch (quote.state) {
    case "paid":
      return paymentPage(
        "Paid",
        `${record}<p>${whereItIs(quote)} You can close this page.</p>${takenBack(quote)}`,
        200,
      );
    case "open":
      return reloading(
        paymentPage(
          "Waiting for your payment",
          `${record}<p role="status">The payment is not confirmed yet. This page reloads until it is.</p>`,
          200,
        ),
      );
    default:
      return paymentPage(
        "Nothing was credited",
        `${record}<p>This checkout has ended without a payment. A payment that arrives later is given back.</p>`,
        200,
      );
  }
}

/** The page after a checkout that was given up. */
export function cancelledPage(quote: Quote | undefined): Response {
  // The same checkout may have been completed in another window.
  if (quote?.state === "paid") return donePage(quote);
  const record = quote === undefined ? "" : recordOf(quote);
  return paymentPage("Nothing was paid", `${record}<p>You gave up the checkout. You can close this page.</p>`, 200);
}

function reloading(page: Response): Response {
  page.headers.set("Refresh", String(reloadSeconds));
  return page;
}

/** Amounts are digits, currencies letters of the rules, addresses canonical: none needs escaping. */
function recordOf({ paymentAmount, currency, winc, creditedWinc, address, state }: Quote): string {
  const credits = creditsOf(state === "paid" ? creditedWinc : winc);
  return `<dl>
<dt>Amount</dt><dd>${writeMoney(paymentAmount, currency)}</dd>
<dt>Credits</dt><dd>${credits}</dd>
<dt>Account</dt><dd>${address ?? "whoever redeems the gift"}</dd>
</dl>`;
}

function whereItIs({ address }: Quote): string {
  return address === undefined ? "The gift can be redeemed now." : "The credits are on the account.";
}

function takenBack({ takenBackWinc }: Quote): string {
  return takenBackWinc === 0n ? "" : `<p>${creditsOf(takenBackWinc)} of these credits were taken back since.</p>`;
}
