/**
 * Pages that the payment service shows to people: a form that redeems a gift, and the pages that a checkout returns to.
 * They work without scripts and load nothing.
 * @module
 */

import { writeMoney } from "../../payment/prices/price-types.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import { creditsOf } from "../../payment/top-ups/top-up.ts";
import { layoutPage } from "../page-layout.ts";

/**
 * A response with a page.
 *
 * @param title - Also its heading. Text.
 * @param body - HTML.
 */
function paymentPage(title: string, body: string, status: number): Response {
  return layoutPage({ title, body, status, isNarrow: true });
}

/** Types of addresses: value and label. */
const kinds = [
  ["native", "Arweave"],
  ["ethereum", "Ethereum, Polygon, Base"],
  ["solana", "Solana"],
  ["kyve", "KYVE"],
] as const;

/** @param secret - Secret of the link: valid base64url. */
export function giftForm(secret: string): Response {
  const options = kinds.map(([word, name]) => `<option value="${word}">${name}</option>`).join("");
  return paymentPage(
    "A gift of storage credits",
    `<p>Enter the account that gets the credits. A gift can be redeemed once.</p>
<form method="post" action="?id=${secret}">
<label for="address">Address</label>
<input id="address" name="destinationAddress" required autocomplete="off" spellcheck="false" maxlength="64">
<label for="token">Type</label>
<select id="token" name="token">${options}</select>
<button type="submit">Redeem</button>
</form>`,
    200,
  );
}

/** The result of a redemption. @param sentence - Safe as HTML. */
export function giftOutcome(sentence: string, status: number): Response {
  return paymentPage(sentence, "", status);
}

/** Seconds until a page reloads that waits for the webhook of a payment. */
const reloadSeconds = 2;

/** The page after a completed checkout. @param quote - `undefined` when the link names no quote. */
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
        `${record}<p>This checkout has ended without a payment. A payment that arrives later is refunded.</p>`,
        200,
      );
  }
}

/** The page after an abandoned checkout. */
export function cancelledPage(quote: Quote | undefined): Response {
  // The same checkout may have been completed in another window.
  if (quote?.state === "paid") return donePage(quote);
  const record = quote === undefined ? "" : recordOf(quote);
  return paymentPage("Nothing was paid", `${record}<p>The checkout was cancelled. You can close this page.</p>`, 200);
}

function reloading(page: Response): Response {
  page.headers.set("Refresh", String(reloadSeconds));
  return page;
}

/** No value needs escaping: amounts are digits, currencies are those of the rules, addresses are canonical. */
function recordOf({ paymentAmount, currency, winc, creditedWinc, address, state }: Quote): string {
  const credits = creditsOf(state === "paid" ? creditedWinc : winc);
  return `<dl>
<dt>Amount</dt><dd>${writeMoney(paymentAmount, currency)}</dd>
<dt>Credits</dt><dd>${credits}</dd>
<dt>Account</dt><dd>${address ?? "the account that redeems the gift"}</dd>
</dl>`;
}

function whereItIs({ address }: Quote): string {
  return address === undefined ? "The gift can be redeemed now." : "The credits are on the account.";
}

function takenBack({ takenBackWinc }: Quote): string {
  return takenBackWinc === 0n ? "" : `<p>${creditsOf(takenBackWinc)} of these credits were taken back later.</p>`;
}
