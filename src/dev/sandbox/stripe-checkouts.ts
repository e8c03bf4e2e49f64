/**
 * Checkout sessions: payment pages, and their completion and expiry.
 * Source: Stripe's API reference, "Checkout Sessions".
 * @module
 */
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import {
  badParameter,
  branchAt,
  type FormTree,
  fetchObject,
  numberOf,
  readAmount,
  readCurrency,
  readMetadata,
  readUrl,
  rejectUnknown,
  type StripeContext,
  save,
  secondsNow,
  textAt,
  textOf,
  textsAt,
  wrongState,
} from "./stripe-context.ts";
import { type CardOutcome, newIntent, payIntent } from "./stripe-payments.ts";

/** Time to live of a session: 30 minutes to a day, a day by default. Seconds. */
const lifeSeconds = { least: 30 * 60, most: 24 * 60 * 60 } as const;

const createFields = [
  "mode",
  "ui_mode",
  "success_url",
  "cancel_url",
  "return_url",
  "redirect_on_completion",
  "client_reference_id",
  "expires_at",
  "payment_method_types",
  "line_items",
  "metadata",
  "payment_intent_data",
  "automatic_tax",
  "currency",
  "expand",
];

/** The modes, with the names of both generations of the API. */
const uiModes: Readonly<Record<string, "hosted" | "embedded">> = {
  hosted: "hosted",
  hosted_page: "hosted",
  embedded: "embedded",
  embedded_page: "embedded",
};

/** A session with the terms of its payment, which Stripe's response does not include. */
type Checkout = Readonly<{ session: JsonObject; description: string; paymentMetadata: JsonObject }>;

/** `POST /v1/checkout/sessions`. @param pageUrl - Origin of the payment page. */
export function createCheckout(context: StripeContext, form: FormTree, pageUrl: string): JsonObject {
  rejectUnknown(form, createFields);
  if (textAt(form, "mode") !== "payment") throw badParameter("mode", "The sandbox supports only the mode payment.");
  const item = readItem(form);
  const id = context.makeId("cs_test");
  const created = secondsNow(context);
  const returns = readReturns(form);
  const session: JsonObject = {
    id,
    object: "checkout.session",
    amount_subtotal: item.amount,
    amount_total: item.amount,
    client_reference_id: textAt(form, "client_reference_id") ?? null,
    client_secret: returns.isHosted ? null : `${id}_secret_${context.makeId("s").slice(2)}`,
    created,
    currency: item.currency,
    expires_at: readExpiry(textAt(form, "expires_at"), created),
    livemode: false,
    metadata: readMetadata(form, "metadata"),
    mode: "payment",
    payment_intent: null,
    payment_method_types: textsAt(form, "payment_method_types"),
    payment_status: "unpaid",
    status: "open",
    ...returns.fields,
    url: returns.isHosted ? `${pageUrl}/c/pay/${id}` : null,
  };
  const paymentMetadata = readMetadata(form, "payment_intent_data", "metadata");
  saveCheckout(context, { session, description: item.description, paymentMetadata });
  return session;
}

/** `GET /v1/checkout/sessions/{id}`. Expires a due session. */
export function fetchCheckout(context: StripeContext, id: string): JsonObject {
  const checkout = checkoutOf(context, id);
  const { session } = checkout;
  return session["status"] === "open" && isDue(context, session) ? end(context, checkout) : session;
}

/** The description on the payment page. */
export function describeCheckout(context: StripeContext, id: string): string {
  return checkoutOf(context, id).description;
}

/** Pays a session with a card. @throws Failure with Stripe's message when the session is not open. */
export function payCheckout(context: StripeContext, id: string, number: string): CardOutcome {
  const checkout = openCheckout(context, id);
  const { session } = checkout;
  // All attempts are of one payment intent, which the first attempt creates.
  const known = textOf(session["payment_intent"]);
  const intentId = known === "" ? beginPayment(context, checkout) : known;
  const outcome = payIntent(context, intentId, number);
  if (outcome.kind !== "paid") return outcome;
  const complete = {
    ...session,
    payment_intent: intentId,
    payment_status: "paid",
    status: "complete",
    url: null,
  };
  saveCheckout(context, { ...checkout, session: complete });
  context.emit("checkout.session.completed", complete);
  return outcome;
}

/** `POST /v1/checkout/sessions/{id}/expire`. */
export function expireCheckout(context: StripeContext, id: string): JsonObject {
  return end(context, openCheckout(context, id));
}

/** Expires the due sessions. @returns Their number. */
export function expireDueCheckouts(context: StripeContext): number {
  const due = context.db
    .openCheckouts()
    .map(readCheckout)
    .filter(({ session }) => isDue(context, session));
  for (const checkout of due) end(context, checkout);
  return due.length;
}

function beginPayment(context: StripeContext, checkout: Checkout): string {
  const { session, description, paymentMetadata } = checkout;
  const intent = newIntent(context, {
    amount: numberOf(session["amount_total"]),
    currency: textOf(session["currency"]),
    description,
    metadata: paymentMetadata,
  });
  saveCheckout(context, { ...checkout, session: { ...session, payment_intent: textOf(intent["id"]) } });
  return textOf(intent["id"]);
}

function end(context: StripeContext, checkout: Checkout): JsonObject {
  const expired = { ...checkout.session, status: "expired", url: null };
  saveCheckout(context, { ...checkout, session: expired });
  context.emit("checkout.session.expired", expired);
  return expired;
}

function openCheckout(context: StripeContext, id: string): Checkout {
  const checkout = checkoutOf(context, id);
  const { status } = checkout.session;
  if (status !== "open" || isDue(context, checkout.session))
    throw wrongState(
      "checkout_session_not_open",
      `Only Checkout Sessions with a status in ["open"] can be used; this one is ${textOf(status)}.`,
    );
  return checkout;
}

function isDue(context: StripeContext, session: JsonObject): boolean {
  return numberOf(session["expires_at"]) <= secondsNow(context);
}

function saveCheckout(context: StripeContext, { session, description, paymentMetadata }: Checkout): void {
  const id = textOf(session["id"]);
  save(context, "checkout", { id, created: session["created"] ?? 0, session, description, paymentMetadata });
}

function checkoutOf(context: StripeContext, id: string): Checkout {
  return readCheckout(fetchObject(context, "checkout", id));
}

function readCheckout(stored: JsonObject): Checkout {
  const { session, paymentMetadata, description } = stored;
  return {
    session: isJsonObject(session) ? session : {},
    description: textOf(description),
    paymentMetadata: isJsonObject(paymentMetadata) ? paymentMetadata : {},
  };
}

function readItem(form: FormTree) {
  const items = Object.keys(branchAt(form, "line_items"));
  const place = ["line_items", items[0] ?? "0", "price_data"] as const;
  if (items.length !== 1) throw badParameter("line_items", "The sandbox supports one line item.");
  const quantity = readAmount(textAt(form, "line_items", items[0] ?? "0", "quantity"), "quantity");
  const name = textAt(form, ...place, "product_data", "name");
  if (name === undefined) throw badParameter("line_items", "Missing required param: product_data[name].");
  return {
    amount: quantity * readAmount(textAt(form, ...place, "unit_amount"), "unit_amount"),
    currency: readCurrency(textAt(form, ...place, "currency"), "currency"),
    description: textAt(form, ...place, "product_data", "description") ?? name,
  };
}

function readReturns(form: FormTree) {
  const uiMode = textAt(form, "ui_mode") ?? "hosted";
  const mode = Object.hasOwn(uiModes, uiMode) ? uiModes[uiMode] : undefined;
  if (mode === undefined) throw badParameter("ui_mode", `Invalid ui_mode: ${uiMode}`);
  const success = readUrl(form, "success_url");
  const cancel = readUrl(form, "cancel_url");
  const back = readUrl(form, "return_url");
  const redirect = textAt(form, "redirect_on_completion") ?? "always";
  if (mode === "hosted" && success === null)
    throw badParameter("success_url", "Missing required param: success_url.", "parameter_missing");
  if (mode === "embedded" && back === null && redirect !== "never")
    throw badParameter("return_url", "Missing required param: return_url.", "parameter_missing");
  return {
    isHosted: mode === "hosted",
    fields: {
      ui_mode: uiMode,
      success_url: success,
      cancel_url: cancel,
      return_url: back,
      ...(mode === "embedded" ? { redirect_on_completion: redirect } : {}),
    },
  };
}

function readExpiry(text: string | undefined, created: number): number {
  if (text === undefined) return created + lifeSeconds.most;
  const at = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  if (at < created + lifeSeconds.least || at > created + lifeSeconds.most)
    throw badParameter(
      "expires_at",
      "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.",
    );
  return at;
}
