/**
 * The HTTP API of the simulated Stripe: forms in, JSON out, Stripe's errors, idempotency keys.
 * Source: Stripe's API reference, "Authentication", "Errors", "Idempotent requests", "Expanding responses".
 * @module
 */
import { timingSafeEqual } from "node:crypto";
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { readBody } from "../../http/request-body.ts";
import { jsonTextResponse } from "../../http/responses.ts";
import { sha256 } from "../../lib/hash.ts";
import { type JsonObject, writeJson } from "../../lib/json.ts";
import type { SandboxResponse, StripeSandbox } from "../sandbox/stripe.ts";
import {
  badParameter,
  type FormTree,
  readForm,
  stripeErrorOf,
  stripeFailure,
  textAt,
  textsAt,
} from "../sandbox/stripe-context.ts";
import type { ObjectKind } from "../sandbox/stripe-database.ts";

export type StripeRoutesOptions = Readonly<{
  sandbox: StripeSandbox;
  /** The key that requests must have. */
  secretKey: string;
  /** Origin of the checkout pages. */
  pageUrl: () => string;
}>;

/** Maximum body size; Stripe's own bodies are far smaller. Bytes. */
const bodyBytesMax = 256 * 1_024;

const keyLengthMax = 255;

type Perform = (id: string, form: FormTree) => JsonObject;

export function createStripeRoutes({ sandbox, secretKey, pageUrl }: StripeRoutesOptions): AnyElysia {
  const routes = new Elysia();

  const post = (path: string, perform: Perform) =>
    routes.post(
      path,
      ({ request, params }) =>
        response(request, secretKey, async () => {
          const text = new TextDecoder().decode(await readBody(request, bodyBytesMax));
          const key = readKey(request);
          const asked = `${new URL(request.url).pathname}\n${text}`;
          return sandbox.oncePerKey(key, asked, () =>
            said(() => expanded(sandbox, perform(idIn(params), formOf(text)), formOf(text))),
          );
        }),
      { parse: "none" },
    );
  const get = (path: string, perform: Perform) =>
    routes.get(path, ({ request, params }) =>
      response(request, secretKey, async () => {
        const form = formOf(new URL(request.url).search.slice(1));
        return said(() => expanded(sandbox, perform(idIn(params), form), form));
      }),
    );
  const getOne = (path: string, kind: ObjectKind) => get(path, (id) => sandbox.fetch(kind, id));

  post("/v1/payment_intents", (_id, form) => sandbox.createIntent(form));
  post("/v1/payment_intents/:id/confirm", (id, form) => sandbox.confirmIntent(id, form));
  post("/v1/payment_intents/:id/cancel", (id) => sandbox.cancelIntent(id));
  getOne("/v1/payment_intents/:id", "payment_intent");
  post("/v1/checkout/sessions", (_id, form) => sandbox.createCheckout(form, pageUrl()));
  post("/v1/checkout/sessions/:id/expire", (id) => sandbox.expireCheckout(id));
  get("/v1/checkout/sessions/:id", (id) => sandbox.fetchCheckout(id));
  getOne("/v1/charges/:id", "charge");
  post("/v1/refunds", (_id, form) => sandbox.createRefund(form));
  getOne("/v1/refunds/:id", "refund");
  getOne("/v1/disputes/:id", "dispute");
  post("/v1/disputes/:id", (id, form) => sandbox.respondToDispute(id, form));
  post("/v1/disputes/:id/close", (id) => sandbox.closeDispute(id));
  get("/v1/events", (_id, form) => eventList(sandbox, form));
  getOne("/v1/events/:id", "event");
  // Events that Stripe causes by itself; its test cards trigger them.
  post("/v1/test_helpers/charges/:id/dispute", (id, form) => sandbox.openDispute(id, ...disputeOf(form)));
  post("/v1/test_helpers/refunds/:id/fail", (id) => sandbox.failRefund(id));
  return routes;
}

async function response(request: Request, secretKey: string, work: () => Promise<SandboxResponse>): Promise<Response> {
  const { status, body } = await responded(async () => {
    admit(request, secretKey);
    return await work();
  });
  return jsonTextResponse(body, status, {
    "Cache-Control": "no-store",
    "Request-Id": request.headers.get("x-request-id") ?? "req_sandbox",
  });
}

/** Accepts the key as a bearer token, or as the user name of basic credentials. */
function admit(request: Request, secretKey: string): void {
  const [scheme = "", sent = ""] = (request.headers.get("authorization") ?? "").split(" ", 2);
  const key = scheme.toLowerCase() === "basic" ? (Buffer.from(sent, "base64").toString().split(":")[0] ?? "") : sent;
  const digest = (text: string) => sha256(new TextEncoder().encode(text));
  if (timingSafeEqual(digest(key), digest(secretKey))) return;
  throw stripeFailure({ status: 401, type: "invalid_request_error", message: "Invalid API Key provided." });
}

function readKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key !== null && key.length > keyLengthMax)
    throw stripeFailure({
      status: 400,
      type: "idempotency_error",
      message: "The key is longer than 255 characters.",
    });
  return key;
}

function formOf(text: string): FormTree {
  const form = readForm(text);
  if (form === undefined)
    throw stripeFailure({ status: 400, type: "invalid_request_error", message: "The form is not valid." });
  return form;
}

/** The response of one operation. */
function said(work: () => JsonObject): SandboxResponse {
  try {
    return { status: 200, body: writeJson(work()) };
  } catch (error) {
    return errorResponse(error);
  }
}

/** The response of a whole call. */
async function responded(work: () => Promise<SandboxResponse>): Promise<SandboxResponse> {
  try {
    return await work();
  } catch (error) {
    return errorResponse(error);
  }
}

/** The response to a Stripe error; other errors are thrown again. */
function errorResponse(error: unknown): SandboxResponse {
  const stripeError = stripeErrorOf(error);
  if (stripeError === undefined) {
    if (error instanceof Failure && error.code === "too_large")
      return errorResponse(stripeFailure({ status: 413, type: "invalid_request_error", message: "Too large." }));
    throw error;
  }
  const { status, ...words } = stripeError;
  return { status, body: writeJson({ error: words }) };
}

/** Properties that may be expanded from an id to the object. */
const expandable: Readonly<Record<string, ObjectKind>> = {
  latest_charge: "charge",
  payment_intent: "payment_intent",
  charge: "charge",
};

function expanded(sandbox: StripeSandbox, object: JsonObject, form: FormTree): JsonObject {
  const result: Record<string, JsonObject[string]> = { ...object };
  for (const name of textsAt(form, "expand")) {
    const kind = Object.hasOwn(expandable, name) ? expandable[name] : undefined;
    if (kind === undefined) throw badParameter("expand", `This property cannot be expanded (${name}).`);
    const id = object[name];
    if (typeof id === "string") result[name] = sandbox.fetch(kind, id);
  }
  return result;
}

const eventsPerPage = { usual: 10, most: 100 } as const;

function eventList(sandbox: StripeSandbox, form: FormTree): JsonObject {
  const limit = readWhole(textAt(form, "limit"), "limit") ?? eventsPerPage.usual;
  if (limit < 1 || limit > eventsPerPage.most)
    throw badParameter("limit", "This value must be between 1 and 100.", "parameter_invalid_integer");
  const types = textsAt(form, "types");
  const type = textAt(form, "type");
  const { events, hasMore } = sandbox.events({
    from: readWhole(textAt(form, "created", "gte"), "created[gte]") ?? 0,
    to: readWhole(textAt(form, "created", "lt"), "created[lt]"),
    types: type === undefined ? types : [type],
    limit,
    after: textAt(form, "starting_after"),
  });
  return { object: "list", data: events, has_more: hasMore, url: "/v1/events" };
}

function disputeOf(form: FormTree): [reason: string, amount?: number] {
  const amount = readWhole(textAt(form, "amount"), "amount");
  const reason = textAt(form, "reason") ?? "fraudulent";
  return amount === undefined ? [reason] : [reason, amount];
}

function readWhole(text: string | undefined, param: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,12}$/.test(text)) throw badParameter(param, `Invalid integer: ${text}`, "parameter_invalid_integer");
  return Number(text);
}

/** The id of a route; routes without parameters have no record of them. */
function idIn(params: Readonly<Record<string, string>> | undefined): string {
  return params?.["id"] ?? "";
}
