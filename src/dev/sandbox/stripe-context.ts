/**
 * Context of every operation of the sandbox's Stripe: database, clock, new ids, events.
 *
 * Errors in Stripe's form.
 * Source: Stripe's API reference, "Errors".
 * @module
 */

import { Failure } from "../../failures.ts";
import type { JsonObject, JsonValue } from "../../lib/json.ts";
import { branchAt, type FormTree, textAt } from "./form.ts";
import type { ObjectKind, StripeDatabase } from "./stripe-database.ts";

/** The context. */
export type StripeContext = Readonly<{
  db: StripeDatabase;
  /** Unix ms. */
  now: () => number;
  /** A new id: `pi` gives `pi_…`. */
  makeId: (prefix: string) => string;
  /** Stores an event about an object as it is now, and delivers it. */
  emit: (type: string, object: JsonObject) => void;
}>;

/** The time of an object, in Unix seconds. */
export function secondsNow(context: StripeContext): number {
  return Math.floor(context.now() / 1_000);
}

/** Stores an object as it is now. */
export function save(context: StripeContext, kind: ObjectKind, object: JsonObject): JsonObject {
  context.db.put(kind, object, numberOf(object["created"]) * 1_000);
  return object;
}

/** Finds an object. @throws Failure with Stripe's `resource_missing`. */
export function fetchObject(context: StripeContext, kind: ObjectKind, id: string): JsonObject {
  const object = context.db.find(kind, id);
  if (object === undefined) throw noSuch(kind, id);
  return object;
}

/** A number of an object that we made. */
export function numberOf(value: JsonValue | undefined): number {
  return typeof value === "number" ? value : 0;
}

/** A text of an object that we made; "" for null. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** The largest amount that Stripe takes, in the smallest unit. */
const amountMax = 99_999_999;

/** Reads an amount. @throws Failure with Stripe's words. */
export function readAmount(text: string | undefined, param: string): number {
  if (text === undefined) throw badParameter(param, `Missing required param: ${param}.`, "parameter_missing");
  if (!/^\d{1,12}$/.test(text)) throw badParameter(param, `Invalid integer: ${text}`, "parameter_invalid_integer");
  const amount = Number(text);
  if (amount < 1)
    throw badParameter(param, "This value must be greater than or equal to 1.", "parameter_invalid_integer");
  if (amount > amountMax) throw badParameter(param, `Amount must be no more than ${amountMax}.`, "amount_too_large");
  return amount;
}

/** Reads a currency. */
export function readCurrency(text: string | undefined, param: string): string {
  if (text === undefined) throw badParameter(param, `Missing required param: ${param}.`, "parameter_missing");
  if (!/^[A-Za-z]{3}$/.test(text)) throw badParameter(param, `Invalid currency: ${text}.`);
  return text.toLowerCase();
}

const metadataMax = { names: 50, nameLength: 40, valueLength: 500 } as const;

/** Reads metadata at a place of a form, within Stripe's bounds. */
export function readMetadata(form: FormTree, ...place: readonly string[]): JsonObject {
  const entries = Object.entries(branchAt(form, ...place));
  if (entries.length > metadataMax.names) throw badParameter("metadata", "You can have up to 50 metadata keys.");
  const metadata: Record<string, string> = {};
  for (const [name, value] of entries) {
    const isText = typeof value === "string";
    if (!isText || name.length > metadataMax.nameLength || value.length > metadataMax.valueLength)
      throw badParameter("metadata", "Metadata keys may have 40 characters, values 500.");
    metadata[name] = value;
  }
  return metadata;
}

/** Rejects fields that the call does not know, as Stripe does. */
export function rejectUnknown(form: FormTree, known: readonly string[]): void {
  const unknown = Object.keys(form).find((name) => !known.includes(name));
  if (unknown !== undefined) throw badParameter(unknown, `Received unknown parameter: ${unknown}`, "parameter_unknown");
}

/** An absolute URL of the web. */
export function readUrl(form: FormTree, name: string): string | null {
  const text = textAt(form, name);
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw badParameter(name, "Not a valid URL", "url_invalid");
  return text;
}

/** An error in Stripe's form. */
export type StripeError = Readonly<{
  status: number;
  type: "invalid_request_error" | "card_error" | "idempotency_error" | "api_error";
  message: string;
  code?: string;
  param?: string;
  decline_code?: string;
}>;

/** A Failure that carries a Stripe error to the response. */
export function stripeFailure(stripeError: StripeError): Failure {
  return new Failure("malformed_input", { stripe: stripeError });
}

/** The Stripe error that a Failure carries, if any. */
export function stripeErrorOf(error: unknown): StripeError | undefined {
  if (!(error instanceof Failure)) return undefined;
  // Only `stripeFailure` sets it.
  return error.context["stripe"] as StripeError | undefined;
}

/** A parameter that is missing or wrong. */
export function badParameter(param: string, message: string, code = "parameter_invalid"): Failure {
  return stripeFailure({ status: 400, type: "invalid_request_error", message, code, param });
}

/** An unknown id. */
export function noSuch(kind: string, id: string): Failure {
  const message = `No such ${kind}: '${id}'`;
  return stripeFailure({
    status: 404,
    type: "invalid_request_error",
    message,
    code: "resource_missing",
    param: "id",
  });
}

/** An operation that the object's state does not allow. */
export function wrongState(code: string, message: string): Failure {
  return stripeFailure({ status: 400, type: "invalid_request_error", message, code });
}
