/**
 * The sandbox's checkout: `/c/pay/{session}`, where the address itself is what lets a payer in.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { readBody } from "../../http/body.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { StripeSandbox } from "../sandbox/stripe.ts";
import { stripeErrorOf } from "../sandbox/stripe-error.ts";
import { type CheckoutView, cardField, checkoutPage, endedPage, homePage } from "./checkout-page.ts";

/** A form with three short fields. Bytes. */
const formBytesMax = 4_096;

/** Currencies whose smallest unit is the whole one. */
const wholeCurrencies = ["jpy"];

/** What Stripe replaces in the address that a payment leads to. */
const sessionPlace = "{CHECKOUT_SESSION_ID}";

/** Creates the routes. */
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

/** A page of another site may not pay in the place of the payer. */
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
    return endedPage(isUnknown ? "There is no such checkout" : stripeError.message, isUnknown ? 404 : 409);
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

/** The browser goes on with GET; the form is not sent again when somebody goes back. */
function seeOther(url: string): Response {
  return new Response(null, { status: 303, headers: { Location: url, "Cache-Control": "no-store" } });
}
