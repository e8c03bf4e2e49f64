/**
 * What the card provider reports: checked over the bytes as they came, taken in before it is answered.
 *
 * 2xx is said only of what is on the disk; everything else makes the provider tell it again.
 * Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { readJson } from "../../lib/json.ts";
import type { CardEvents } from "../../payment/cards/card-settlement.ts";
import { isSignedByStripe, readEvent } from "../../payment/providers/stripe-objects.ts";
import { readBody } from "../body.ts";
import { limits } from "../limits.ts";
import { noStore } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the route asks. */
export type WebhookRoutesOptions = Readonly<{
  /** Undefined: no cards are taken. */
  events: Pick<CardEvents, "take"> | undefined;
  /** Any of them may have signed: two while they are exchanged. */
  secrets: readonly string[];
  clock: Clock;
}>;

/** Creates the route. */
export function createWebhookRoutes({ events, secrets, clock }: WebhookRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).post(
    "/stripe-webhook",
    async ({ request }) => {
      if (events === undefined) throw new Failure("fiat_off", {});
      const body = await readBody(request, limits.webhookBytesMax);
      const signature = request.headers.get("stripe-signature");
      const now = clock();
      if (!secrets.some((secret) => isSignedByStripe(body, signature, secret, now)))
        throw refused("the signature is missing, wrong or too old");
      // What is signed is text in UTF-8; what is not, becomes no event.
      const event = readEvent(readJson(new TextDecoder().decode(body)));
      if (event === undefined) throw refused("the body is no event");
      await fromLedger("database_unavailable", events.take(event));
      return new Response(null, { status: 200, headers: noStore });
    },
    { parse: "none" },
  );
}

/** The caller hears no more than that it was refused. */
function refused(fault: string): Failure {
  return new Failure("payment_rejected", { reason: "Webhook Error!", fault });
}
