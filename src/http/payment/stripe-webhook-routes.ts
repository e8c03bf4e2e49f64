/**
 * Webhooks of the card provider: the signature covers the raw bytes, and the event is stored before the response.
 *
 * 2xx confirms that the event is on the disk; after any other status the provider sends it again.
 * Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { readJson } from "../../lib/json.ts";
import type { CardEvents } from "../../payment/cards/card-settlement.ts";
import { isSignedByStripe, readEvent } from "../../payment/cards/stripe-objects.ts";
import { empty, failureResponses, inHeader, textSchema } from "../reference/openapi-types.ts";
import { readBody } from "../request-body.ts";
import { limits } from "../request-limits.ts";
import { noStore } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import { fromLedger } from "./payment-common.ts";

export type WebhookRoutesOptions = Readonly<{
  /** Undefined when cards are off. */
  events: Pick<CardEvents, "take"> | undefined;
  /** Any of these may have signed: there are two during a rotation. */
  secrets: readonly string[];
  clock: Clock;
}>;

const ofWebhook: RouteDescription = {
  tag: "Top-ups",
  summary: "Webhook of Stripe",
  description: "Signed by Stripe; the response is sent when the event and its effects are on the disk.",
  parameters: [inHeader("stripe-signature", textSchema, "`t=…,v1=…`")],
  body: { type: "application/json", schema: { type: "object" }, example: {} },
  responses: {
    200: empty("The event is stored, now or before."),
    ...failureResponses("payment_rejected", "too_large", "fiat_off", "database_unavailable"),
  },
};

export function createWebhookRoutes({ events, secrets, clock }: WebhookRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).post(
    "/stripe-webhook",
    async ({ request }) => {
      if (events === undefined) throw new Failure("fiat_off", {});
      const body = await readBody(request, limits.webhookBytesMax);
      const signature = request.headers.get("stripe-signature");
      const now = clock();
      if (!secrets.some((secret) => isSignedByStripe(body, signature, secret, now)))
        throw rejection("the signature is missing, wrong or too old");
      // Bytes that are not UTF-8 give no valid event.
      const event = readEvent(readJson(new TextDecoder().decode(body)));
      if (event === undefined) throw rejection("the body is not an event");
      await fromLedger("database_unavailable", events.take(event));
      return new Response(null, { status: 200, headers: noStore });
    },
    { parse: "none", detail: described(ofWebhook) },
  );
}

/** The response gives no reason. */
function rejection(fault: string): Failure {
  return new Failure("payment_rejected", { reason: "Webhook Error!", fault });
}
