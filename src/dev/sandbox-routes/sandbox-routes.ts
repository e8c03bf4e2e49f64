/**
 * The sandbox's routes: Stripe's API, checkout pages (`/c/pay/{session}`) and the price feed.
 *
 * The URL of a checkout page is the payer's authorization. The page has a form for a card, works without scripts, loads
 * no resources, and escapes the seller's text.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure, failures } from "../../failures.ts";
import { clientClosedStatus, reportsDisconnect } from "../../http/client-disconnect.ts";
import { readBody } from "../../http/request-body.ts";
import { codeResponse, failureResponse, pageResponse } from "../../http/responses.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import type { StripeSandbox } from "../sandbox/stripe.ts";
import { stripeErrorOf } from "../sandbox/stripe-context.ts";
import { cardsToTry } from "../sandbox/stripe-payments.ts";
import { createStripeRoutes, type StripeRoutesOptions } from "./stripe-routes.ts";

export type SandboxRoutesOptions = StripeRoutesOptions &
  Readonly<{
    /** Returns `undefined` for requests that are not for the price feed. */
    priceFeed: (request: Request) => Response | undefined;
    log: Log;
  }>;

export function createSandboxRoutes(options: SandboxRoutesOptions): (request: Request) => Promise<Response> {
  const { sandbox, priceFeed, log } = options;
  const app = new Elysia({ strictPath: true })
    .onError({ as: "global" }, ({ error, code, request }) => {
      if (code === "NOT_FOUND") return codeResponse("not_found");
      if (error instanceof Failure && failures[error.code].status < 500) return failureResponse(error);
      if (reportsDisconnect(error, request.signal)) return new Response(null, { status: clientClosedStatus });
      log.error("defect in the sandbox", { error });
      return codeResponse("internal");
    })
    .use(createStripeRoutes(options))
    .use(createCheckoutRoutes(sandbox));
  return async (request) => priceFeed(request) ?? (await app.fetch(request));
}

/** Maximum size of a form with three short fields. Bytes. */
const formBytesMax = 4_096;

/** Currencies without a fraction. */
const wholeCurrencies = ["jpy"];

/** The placeholder of the session id in a success URL. */
const sessionPlace = "{CHECKOUT_SESSION_ID}";

export function createCheckoutRoutes(sandbox: StripeSandbox): AnyElysia {
  return new Elysia()
    .get("/", () => homePage())
    .get("/c/pay/:id", ({ params }) => orEnded(() => show(sandbox, params.id)))
    .post(
      "/c/pay/:id",
      async ({ params, request }) => {
        if (isForeign(request)) return endedPage("This form belongs to another page", 403);
        const form = new URLSearchParams(new TextDecoder().decode(await readBody(request, formBytesMax)));
        return orEnded(() => pay(sandbox, params.id, form.get(cardField) ?? ""));
      },
      { parse: "none" },
    );
}

function show(sandbox: StripeSandbox, id: string): Response {
  const session = sandbox.fetchCheckout(id);
  return endedOf(session) ?? checkoutPage(viewOf(sandbox, session));
}

function pay(sandbox: StripeSandbox, id: string, cardNumber: string): Response {
  const session = sandbox.fetchCheckout(id);
  const ended = endedOf(session);
  if (ended !== undefined) return ended;
  const outcome = sandbox.payCheckout(id, cardNumber);
  if (outcome.kind === "paid") return paid(session);
  return checkoutPage({ ...viewOf(sandbox, session), complaint: outcome.message }, 402);
}

/** The response for a session that does not accept a card any more. */
function endedOf(session: JsonObject): Response | undefined {
  if (session["status"] === "complete") return paid(session);
  return session["status"] === "open" ? undefined : endedPage("This checkout has expired", 410);
}

/** Whether a page of another site sent the form. */
function isForeign(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
}

function orEnded(response: () => Response): Response {
  try {
    return response();
  } catch (error) {
    const stripeError = stripeErrorOf(error);
    if (stripeError === undefined) throw error;
    const isUnknown = stripeError.status === 404;
    return endedPage(isUnknown ? "Unknown checkout" : stripeError.message, isUnknown ? 404 : 409);
  }
}

function viewOf(sandbox: StripeSandbox, session: JsonObject): CheckoutView {
  const id = String(session["id"]);
  const { cancel_url: cancelUrl, amount_total: amount, currency } = session;
  return {
    id,
    amount: writeAmount(typeof amount === "number" ? amount : 0, String(currency)),
    description: sandbox.describeCheckout(id),
    cancelUrl: typeof cancelUrl === "string" ? cancelUrl : undefined,
    successUrl: successUrlOf(session),
    complaint: undefined,
  };
}

/** Pages that are embedded may have nowhere to go. */
function successUrlOf({ id, success_url: success, return_url: back }: JsonObject): string | undefined {
  const url = [success, back].find((known) => typeof known === "string");
  return url?.replaceAll(sessionPlace, String(id));
}

function paid(session: JsonObject): Response {
  const url = successUrlOf(session);
  return url === undefined ? endedPage("Paid. Thank you.", 200) : seeOther(url);
}

function writeAmount(amount: number, currency: string): string {
  const digits = String(amount).padStart(3, "0");
  const text = wholeCurrencies.includes(currency) ? String(amount) : `${digits.slice(0, -2)}.${digits.slice(-2)}`;
  return `${text} ${currency.toUpperCase()}`;
}

/** The browser continues with GET, so that a step back does not repeat the form. */
function seeOther(url: string): Response {
  return new Response(null, { status: 303, headers: { Location: url, "Cache-Control": "no-store" } });
}

export type CheckoutView = Readonly<{
  id: string;
  amount: string; // such as "10.00 USD"
  description: string;
  cancelUrl: string | undefined;
  /** The response to a successful payment redirects the browser to this URL. */
  successUrl: string | undefined;
  /** Why the last card was rejected. */
  complaint: string | undefined;
}>;

/** The form field of the card number. */
export const cardField = "cardNumber";

/** Style of the page. Its hash is in the page's Content-Security-Policy. */
const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; background: Canvas; color: CanvasText; }
main { width: min(24rem, 100vw - 2rem); padding: 1.5rem; border: 1px solid color-mix(in srgb, CanvasText 20%, Canvas);
  border-radius: 0.75rem; box-sizing: border-box; }
h1 { font-size: 1rem; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.amount { font-size: 2rem; font-weight: 700; margin: 0.25rem 0; }
.notice { font-size: 0.875rem; opacity: 0.8; margin: 0 0 1rem; }
label { display: block; font-size: 0.875rem; font-weight: 600; margin: 0.75rem 0 0.25rem; }
input { width: 100%; box-sizing: border-box; font: inherit; padding: 0.5rem 0.625rem; border-radius: 0.5rem;
  border: 1px solid color-mix(in srgb, CanvasText 40%, Canvas); background: Field; color: FieldText; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0.75rem; }
button { width: 100%; margin-top: 1.25rem; padding: 0.75rem; font: inherit; font-weight: 600; border: 0;
  border-radius: 0.5rem; background: #3b49df; color: #fff; cursor: pointer; }
button:hover { background: #2f3bb8; }
:is(input, button, a):focus-visible { outline: 3px solid #8b93f0; outline-offset: 2px; }
.complaint { color: light-dark(#c0182b, #ff8a94); font-weight: 600; margin: 1rem 0 0; }
a { color: inherit; }
ul { padding: 0; list-style: none; font-size: 0.875rem; }
code { white-space: nowrap; margin-right: 0.5rem; }
.back { text-align: center; margin: 1rem 0 0; }
`;

const styleHash = new Bun.CryptoHasher("sha256").update(style).digest("base64");

/** The payment page. @param status - 402 after a rejected card. */
export function checkoutPage(view: CheckoutView, status = 200): Response {
  const { complaint, cancelUrl } = view;
  return page(
    `Pay ${view.amount}`,
    `<h1>${asText(view.description)}</h1>
<p class="amount">${asText(view.amount)}</p>
<p class="notice">Sandbox: no money moves. The card 4242 4242 4242 4242 pays.</p>
${complaint === undefined ? "" : `<p class="complaint" role="alert" id="complaint">${asText(complaint)}</p>`}
<form method="post" action="/c/pay/${view.id}">
<label for="card">Card number</label>
<input id="card" name="${cardField}" inputmode="numeric" autocomplete="cc-number" required maxlength="23"
  value="4242 4242 4242 4242"${complaint === undefined ? "" : ' aria-describedby="complaint" aria-invalid="true"'}>
<div class="pair">
<div><label for="expiry">Expiry</label>
<input id="expiry" name="expiry" autocomplete="cc-exp" placeholder="MM / YY" required maxlength="7"
  value="12 / 40"></div>
<div><label for="cvc">CVC</label>
<input id="cvc" name="cvc" inputmode="numeric" autocomplete="cc-csc" required maxlength="4" value="123"></div>
</div>
<button type="submit">Pay ${asText(view.amount)}</button>
</form>
${cancelUrl === undefined ? "" : backLink(cancelUrl)}`,
    view.successUrl === undefined ? "form-action 'self'" : `form-action 'self' ${new URL(view.successUrl).origin}`,
    status,
  );
}

function backLink(url: string): string {
  return `<p class="back"><a href="${asText(url)}" rel="noreferrer">Cancel and go back</a></p>`;
}

/** The start page, with the test cards. */
export function homePage(): Response {
  const rows = cardsToTry.map(([number, outcome]) => `<li><code>${number}</code> ${asText(outcome)}</li>`);
  return page(
    "Sandbox",
    `<h1>Sandbox</h1>
<p class="notice">It replaces Stripe and the price feed during development. No money moves.</p>
<p>A checkout of the payment service leads to a page here. These card numbers work:</p>
<ul>${rows.join("")}</ul>`,
    "form-action 'none'",
    200,
  );
}

/** A page for a checkout that has ended. */
export function endedPage(text: string, status: number): Response {
  return page("Checkout", `<h1>${asText(text)}</h1>`, "form-action 'none'", status);
}

function page(title: string, body: string, formAction: string, status: number): Response {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${asText(title)} · Cairn sandbox</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
  const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; ${formAction}`;
  const { headers } = pageResponse(html, policy);
  headers.set("Cache-Control", "no-store");
  headers.set("Referrer-Policy", "no-referrer");
  return new Response(html, { status, headers });
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function asText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => escapes[character] ?? "");
}
