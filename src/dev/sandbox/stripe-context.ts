/**
 * Shared parts of the simulated Stripe: the context of operations, errors in Stripe's form, and forms whose names spell
 * a path: `line_items[0][price_data][currency]=usd`.
 * Source: Stripe's API reference, "Errors".
 * @module
 */
import { Failure } from "../../failures.ts";
import type { JsonObject, JsonValue } from "../../lib/json.ts";
import type { ObjectKind, StripeDatabase } from "./stripe-database.ts";

export type StripeContext = Readonly<{
  db: StripeDatabase;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** A new id: `pi` gives `pi_…`. */
  makeId: (prefix: string) => string;
  /** Stores an event with the current state of an object, and delivers it. */
  emit: (type: string, object: JsonObject) => void;
}>;

/** The time of an object, in Unix seconds. */
export function secondsNow(context: StripeContext): number {
  return Math.floor(context.now() / 1_000);
}

/** Stores an object. */
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

/** A number of a stored object; 0 for other values. */
export function numberOf(value: JsonValue | undefined): number {
  return typeof value === "number" ? value : 0;
}

/** A text of a stored object; "" for other values. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** The largest amount that Stripe accepts, in the smallest unit. */
const amountMax = 99_999_999;

/** Reads an amount. @throws Failure with Stripe's message. */
export function readAmount(text: string | undefined, param: string): number {
  if (text === undefined) throw badParameter(param, `Missing required param: ${param}.`, "parameter_missing");
  if (!/^\d{1,12}$/.test(text)) throw badParameter(param, `Invalid integer: ${text}`, "parameter_invalid_integer");
  const amount = Number(text);
  if (amount < 1)
    throw badParameter(param, "This value must be greater than or equal to 1.", "parameter_invalid_integer");
  if (amount > amountMax) throw badParameter(param, `Amount must be no more than ${amountMax}.`, "amount_too_large");
  return amount;
}

export function readCurrency(text: string | undefined, param: string): string {
  if (text === undefined) throw badParameter(param, `Missing required param: ${param}.`, "parameter_missing");
  if (!/^[A-Za-z]{3}$/.test(text)) throw badParameter(param, `Invalid currency: ${text}.`);
  return text.toLowerCase();
}

const metadataMax = { names: 50, nameLength: 40, valueLength: 500 } as const;

/** Reads metadata at a path of a form, within Stripe's limits. */
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

/** Rejects unknown fields, as Stripe does. */
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

/** A form's values by their paths; lists are trees with numbers as names. */
export type FormTree = { readonly [name: string]: string | FormTree };

/** Limits far beyond the needs of any call: fields of a form, steps of a name, characters of a value. */
const fieldsMax = 1_000;
const depthMax = 8;
const valueLengthMax = 5_000;

const namePattern = /^([^[\]]+)((?:\[[^[\]]*\])*)$/;

type Branch = { [name: string]: string | Branch };

/**
 * Parses a form.
 *
 * @returns `undefined` when a name is malformed, repeated, or both a value and a branch, or beyond a limit.
 */
export function readForm(text: string): FormTree | undefined {
  const root: Branch = Object.create(null);
  let fields = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    fields += 1;
    if (fields > fieldsMax || value.length > valueLengthMax) return undefined;
    const steps = readSteps(name);
    if (steps === undefined || !put(root, steps, value)) return undefined;
  }
  return root;
}

/** The text at a path, or `undefined`. */
export function textAt(form: FormTree, ...place: readonly string[]): string | undefined {
  const found = at(form, place);
  return typeof found === "string" ? found : undefined;
}

/** The branch at a path; an empty branch by default. */
export function branchAt(form: FormTree, ...place: readonly string[]): FormTree {
  const found = at(form, place);
  return typeof found === "object" ? found : {};
}

/** The values of a list or of a tree of texts. */
export function textsAt(form: FormTree, ...place: readonly string[]): string[] {
  return Object.values(branchAt(form, ...place)).filter((value) => typeof value === "string");
}

function at(form: FormTree, place: readonly string[]): string | FormTree | undefined {
  let found: string | FormTree | undefined = form;
  for (const step of place) found = typeof found === "object" ? found[step] : undefined;
  return found;
}

function readSteps(name: string): string[] | undefined {
  const match = namePattern.exec(name);
  if (match === null) return undefined;
  const rest = (match[2] ?? "").slice(1, -1);
  const steps = [match[1] ?? "", ...(match[2] === "" ? [] : rest.split("]["))];
  return steps.length > depthMax ? undefined : steps;
}

/** Puts a value at its path; an empty step, `types[]`, is the next element of a list. */
function put(root: Branch, steps: readonly string[], value: string): boolean {
  let branch = root;
  for (const [index, named] of steps.entries()) {
    const step = named === "" ? String(Object.keys(branch).length) : named;
    const found = branch[step];
    if (index === steps.length - 1) {
      if (found !== undefined) return false;
      branch[step] = value;
      return true;
    }
    if (typeof found === "string") return false;
    const next: Branch = found ?? Object.create(null);
    branch[step] = next;
    branch = next;
  }
  return false;
}
