/**
 * Pages that the payment service shows to people: a form that redeems a gift, and the pages that a checkout returns to.
 * They work without scripts and load nothing.
 * @module
 */

import { writeMoney } from "../../payment/prices/price-types.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import { creditsOf } from "../../payment/top-ups/top-up.ts";
import { pageResponse } from "../responses.ts";

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; background: Canvas; color: CanvasText; }
main { width: min(28rem, 100vw - 2rem); }
h1 { font-size: 1.5rem; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin: 1rem 0 0.25rem; }
input, select { width: 100%; box-sizing: border-box; font: inherit; padding: 0.5rem; }
dl { margin: 0 0 1rem; display: grid; grid-template-columns: auto 1fr; gap: 0.25rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
button { margin-top: 1.25rem; padding: 0.75rem 1.5rem; font: inherit; font-weight: 600; }
`;

const styleHash = new Bun.CryptoHasher("sha256").update(style).digest("base64");

/**
 * A response with a page.
 *
 * @param title - Also its heading; safe as HTML.
 * @param body - HTML.
 */
function paymentPage(title: string, body: string, status: number): Response {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
  const loads = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:`;
  const policy = `${loads}; base-uri 'none'; form-action 'self'`;
  const { headers } = pageResponse(html, policy);
  headers.set("Cache-Control", "no-store");
  // The link of a gift redeems it, so other sites must not receive the link as a referrer.
  headers.set("Referrer-Policy", "no-referrer");
  return new Response(html, { status, headers });
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
