/**
 * Pages that the payment service shows to people: a form that redeems a gift, and the pages that a checkout returns to.
 * They work without scripts and load nothing.
 * @module
 */
import { writeMoney } from "../../payment/prices/price-types.ts";
import type { Quote } from "../../payment/top-ups/quotes.ts";
import { creditsOf } from "../../payment/top-ups/top-up.ts";
import { escapeHtml, layoutPage } from "../page-layout.ts";

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

/** Content of the page after a checkout. */
export type CheckoutPage = Readonly<{
  /** `undefined` when the link names no quote. */
  quote: Quote | undefined;
  /** How often the page has reloaded itself. */
  reloads: number;
  /** Address of the page again. @param reloads - Of that page. */
  againUrl: (reloads: number) => string;
  /** Page of the gateway that sells credits; undefined where there is none. */
  accountUrl: string | undefined;
}>;

/** Reloads while the webhook of a payment is on its way: fast for a minute, then for five minutes. */
const fastReloads = 30;
const reloadsMax = 60;
const fastSeconds = 2;
const slowSeconds = 10;

/** The page after a completed checkout. */
export function donePage(page: CheckoutPage): Response {
  const { quote, accountUrl } = page;
  if (quote === undefined)
    return paymentPage(
      "You can close this page",
      "<p>A completed payment is credited within seconds. An abandoned one charges nothing.</p>",
      200,
    );
  const record = recordOf(quote);
  const next = linkOf(accountUrl, "", "You can close this page.", "Show the account");
  switch (quote.state) {
    case "paid":
      return paymentPage("Paid", `${record}<p>${whereItIs(quote)} ${next}</p>${takenBack(quote)}`, 200);
    case "open":
      return waitingPage(record, page);
    default:
      return paymentPage(
        "Nothing was credited",
        `${record}<p>This checkout has ended without a payment. A payment that arrives later is refunded.</p>
${tryAgain(accountUrl)}`,
        200,
      );
  }
}

function waitingPage(record: string, { reloads, againUrl }: CheckoutPage): Response {
  const isOver = reloads >= reloadsMax;
  const text = isOver
    ? `The payment is not confirmed yet. Nothing is lost: when the card provider confirms it, the credits are on the
account, also when this page is closed. <a href="${escapeHtml(againUrl(0))}">Look again</a>`
    : "The payment is not confirmed yet. This page reloads until it is.";
  const page = paymentPage("Waiting for your payment", `${record}<p role="status">${text}</p>`, 200);
  const seconds = reloads < fastReloads ? fastSeconds : slowSeconds;
  if (!isOver) page.headers.set("Refresh", `${seconds}; url=${againUrl(reloads + 1)}`);
  return page;
}

/** The page after an abandoned checkout. */
export function cancelledPage(page: CheckoutPage): Response {
  const { quote, accountUrl } = page;
  // The same checkout may have been completed in another window.
  if (quote?.state === "paid") return donePage(page);
  const record = quote === undefined ? "" : recordOf(quote);
  return paymentPage(
    "Nothing was paid",
    `${record}<p>The checkout was cancelled, and no card was charged.</p>\n${tryAgain(accountUrl)}`,
    200,
  );
}

function tryAgain(accountUrl: string | undefined): string {
  const command = "start again where you began, or with the command <code>cairn topup</code>";
  return `<p>To try again, ${linkOf(accountUrl, "#buy", command, "choose an amount")}.</p>`;
}

/** A link to the account's page; a text where there is none. @param otherwise - HTML. @param name - Text. */
function linkOf(accountUrl: string | undefined, part: string, otherwise: string, name: string): string {
  return accountUrl === undefined ? otherwise : `<a href="${escapeHtml(accountUrl + part)}">${name}</a>`;
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
