/**
 * The card provider by Stripe's protocol: sessions, their status, refunds, the list of events.
 *
 * Every call that writes has an idempotency key, so it is retried after a fault.
 * Source: Stripe's API reference, version 2023-10-16.
 * @module
 */
import { Failure } from "../../failures.ts";
import { type Fault, type Http, type HttpRequest, type HttpResponse, openHttp } from "../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import { type RetryPlan, retry } from "../../lib/retry.ts";
import type { CardEventPage, CardProvider, CheckoutReturn, SessionRequest } from "./card-provider.ts";
import {
  eventTypes,
  quoteKey,
  readCheckout,
  readEvent,
  readEventId,
  readPayment,
  readSession,
} from "./stripe-objects.ts";

type StripeOptions = Readonly<{
  /** Origin, without a path. */
  url: string;
  secretKey: string;
  random: () => number;
}>;

/** Responses have the shape of this version, regardless of the account's default. */
const apiVersion = "2023-10-16";

/** A client waits for its session; Stripe's slowest calls take seconds. */
const timeouts = { firstByteMs: 15_000, stallMs: 5_000, totalMs: 20_000 };

/** The largest response is a page of a hundred events. Bytes. */
const responseBytesMax = 4 * 2 ** 20;

const plan: RetryPlan = { attempts: 3, firstMs: 250, longestMs: 2_000 };

const eventsPerPage = 100n;

export function openStripe({ url, secretKey, random }: StripeOptions): CardProvider {
  const http = openHttp(timeouts);
  const call: Call = (request, signal) => responseOf(http, { ...request, origin: url, secretKey }, signal, random);
  return {
    createPaymentIntent: async (request, signal) => {
      const form = {
        amount: request.amount,
        currency: request.currency,
        description: request.description,
        metadata: { ...request.metadata, [quoteKey]: request.quoteId },
        payment_method_types: ["card"],
      };
      return required(readSession, await post(call, "/v1/payment_intents", form, request.quoteId, signal));
    },
    createCheckout: async (request, expiresAt, back, signal) => {
      const form = checkoutForm(request, expiresAt, back);
      return required(readSession, await post(call, "/v1/checkout/sessions", form, request.quoteId, signal));
    },
    findPayment: async (id, signal) => found(readPayment, await get(call, paymentPath(id), signal)),
    findCheckout: async (id, signal) => found(readCheckout, await get(call, checkoutPath(id), signal)),
    endPayment: async (id, signal) => {
      // Stripe rejects this for a paid or ended payment; the status below distinguishes them.
      await tryPost(call, `/v1/payment_intents/${id}/cancel`, signal);
      return found(readPayment, await get(call, paymentPath(id), signal));
    },
    endCheckout: async (id, signal) => {
      await tryPost(call, `/v1/checkout/sessions/${id}/expire`, signal);
      return found(readCheckout, await get(call, checkoutPath(id), signal));
    },
    refund: async (paymentId, key, signal) => {
      const form = writeForm({ payment_intent: paymentId });
      const ask = { method: "POST", path: "/v1/refunds", form, key: `refund-${paymentId}-${key}` } as const;
      const response = await call(ask, signal);
      const isDone = codeOf(response) === "charge_already_refunded";
      if (response.status !== 200 && !isDone) throw rejection(response);
    },
    events: async (from, to, after, signal) => {
      const query = writeForm({
        created: { gte: seconds(from), lt: seconds(to) },
        types: eventTypes,
        limit: eventsPerPage,
        starting_after: after,
      });
      return eventPage(await get(call, `/v1/events?${query}`, signal));
    },
    close: http.close,
  };
}

/** One call, without its origin and secret key. */
type Ask = Readonly<{ method: "GET" | "POST"; path: string; form?: string; key?: string }>;

/** A response of Stripe: a status and JSON. */
type Responded = Readonly<{ status: number; body: JsonObject }>;

type Call = (ask: Ask, signal: AbortSignal) => Promise<Responded>;

function checkoutForm(request: SessionRequest, expiresAt: number, back: CheckoutReturn): Record<string, FormValue> {
  const metadata = { ...request.metadata, [quoteKey]: request.quoteId };
  return {
    mode: "payment",
    ui_mode: back.uiMode,
    ...returnFields(back),
    client_reference_id: request.quoteId,
    expires_at: seconds(expiresAt),
    payment_method_types: ["card"],
    line_items: [
      {
        price_data: {
          product_data: { name: "Storage credits", description: request.description },
          currency: request.currency,
          unit_amount: request.amount,
        },
        quantity: 1n,
      },
    ],
    metadata,
    payment_intent_data: { metadata },
  };
}

function returnFields(back: CheckoutReturn): Record<string, FormValue> {
  if (back.uiMode === "hosted") return { success_url: back.successUrl, cancel_url: back.cancelUrl };
  return back.returnUrl === undefined ? { redirect_on_completion: "never" } : { return_url: back.returnUrl };
}

/** The charge has the sum of refunds and the time of payment. */
const paymentPath = (id: string): string => `/v1/payment_intents/${id}?expand%5B0%5D=latest_charge`;
const checkoutPath = (id: string): string => `/v1/checkout/sessions/${id}`;

async function get(call: Call, path: string, signal: AbortSignal): Promise<Responded> {
  return await call({ method: "GET", path }, signal);
}

async function post(
  call: Call,
  path: string,
  fields: Readonly<Record<string, FormValue>>,
  key: string,
  signal: AbortSignal,
): Promise<Responded> {
  return await call({ method: "POST", path, form: writeForm(fields), key }, signal);
}

async function tryPost(call: Call, path: string, signal: AbortSignal): Promise<void> {
  const response = await call({ method: "POST", path, form: "" }, signal);
  const isExpected = response.status === 200 || response.status === 400 || response.status === 404;
  if (!isExpected) throw rejection(response);
}

/** Retries until Stripe accepts or rejects. @throws Failure `payment_session_failed`, or the signal's reason. */
async function responseOf(
  http: Http,
  ask: Ask & Readonly<{ origin: string; secretKey: string }>,
  signal: AbortSignal,
  random: () => number,
): Promise<Responded> {
  const request: HttpRequest = {
    method: ask.method,
    url: `${ask.origin}${ask.path}`,
    headers: {
      authorization: `Bearer ${ask.secretKey}`,
      "stripe-version": apiVersion,
      ...(ask.form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      ...(ask.key === undefined ? {} : { "idempotency-key": ask.key }),
    },
    ...(ask.form === undefined ? {} : { body: new TextEncoder().encode(ask.form) }),
  };
  const response = await retry(
    plan,
    signal,
    random,
    () => http.whole(request, responseBytesMax, signal),
    (came) => came.kind === "response" && !isTransient(came.status),
  );
  return readResponse(response, ask.path);
}

/** Stripe is busy, or another call with the same key is running. */
function isTransient(status: number): boolean {
  return status >= 500 || status === 409 || status === 429;
}

function readResponse(response: HttpResponse | Fault, path: string): Responded {
  if (response.kind === "fault") {
    const { reason, detail } = response;
    throw new Failure("payment_session_failed", { path, fault: reason, detail });
  }
  const body = readJson(new TextDecoder().decode(response.body));
  if (!isJsonObject(body) || isTransient(response.status))
    throw new Failure("payment_session_failed", { path, status: response.status });
  return { status: response.status, body };
}

function required<Value>(read: (body: JsonObject) => Value | undefined, response: Responded): Value {
  const value = response.status === 200 ? read(response.body) : undefined;
  if (value === undefined) throw rejection(response);
  return value;
}

function found<Value>(read: (body: JsonObject) => Value | undefined, response: Responded): Value | undefined {
  return response.status === 404 ? undefined : required(read, response);
}

function eventPage(response: Responded): CardEventPage {
  const list = response.body["data"];
  if (response.status !== 200 || !isJsonArray(list)) throw rejection(response);
  const events = list.map(readEvent).filter((event) => event !== undefined);
  // An unreadable event has its place in the list: the pages after it would be missed otherwise.
  return { events, next: response.body["has_more"] === true ? readEventId(list.at(-1)) : undefined };
}

/** Stripe's error for the log. Its texts contain parameter names, never secrets. */
function rejection({ status, body }: Responded): Failure {
  const error = isJsonObject(body["error"]) ? body["error"] : {};
  const { code, message, param } = { code: error["code"], message: error["message"], param: error["param"] };
  return new Failure("payment_session_failed", { status, code, message, param });
}

function codeOf({ body }: Responded): unknown {
  return isJsonObject(body["error"]) ? body["error"]["code"] : undefined;
}

/** Stripe's unit of time. @param ms - Unix ms. */
function seconds(ms: number): bigint {
  return BigInt(ms) / 1_000n;
}

// Request bodies: forms whose names contain the path of a value, `line_items[0][quantity]=1`.
// Source: Stripe's API reference, "application/x-www-form-urlencoded"; RFC 1866 §8.2.1.

/** A value of a form; `undefined` is omitted. */
type FormValue = string | bigint | boolean | undefined | readonly FormValue[] | { readonly [name: string]: FormValue };

function writeForm(fields: Readonly<Record<string, FormValue>>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) append(form, name, value);
  return form.toString();
}

function append(form: URLSearchParams, name: string, value: FormValue): void {
  if (value === undefined) return;
  if (typeof value !== "object") {
    form.append(name, String(value));
    return;
  }
  // The indexes of a list are its members' names.
  for (const [key, member] of Object.entries(value)) append(form, `${name}[${key}]`, member);
}
