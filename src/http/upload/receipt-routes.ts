/**
 * `GET /tx/{id}/receipt`: the first receipt of an item again, for a sender that lost it.
 *
 * The route is public. A receipt discloses only what other routes do: the item's id and owner, its time and price (its
 * status), and the approvals that its tags gave or revoked (balances). It authorizes nothing.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import type { Taken } from "../../upload/intake/charge.ts";
import { failureResponses, json, ref } from "../reference/words.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import { describedAs, type PathDescription } from "../route-schema.ts";
import type { ReceiptWriter } from "./receipt-record.ts";
import { pathParameters } from "./upload-schemas.ts";

export type ReceiptRoutesOptions = Readonly<{
  /** Returns `undefined` for an item that was not uploaded here. Undefined itself when no wallet is set. */
  find: ((id: string) => Promise<Taken | undefined>) | undefined;
  writeReceipt: ReceiptWriter;
  /** Bounds concurrent signatures: receipts of new uploads must not wait behind repeated ones. */
  semaphore: Semaphore;
}>;

/** Concurrent repeated receipts, and requests that may wait. */
export const receiptSemaphore = { atWorkMax: 2, waitingMax: 100 } as const;

/** Signing can wait in a queue. */
const silenceSeconds = 60;

const ofReceipt: PathDescription = {
  path: "/tx/:id/receipt",
  tag: "Items",
  summary: "The receipt of an item again",
  description:
    "The first receipt, also of items that were uploaded in parts or paid for by x402 (then without the fields of " +
    "the payment). The route is public: a receipt discloses of an item only its status, its tags and the balances of " +
    "its approvals, and authorizes nothing. A failed item, which is refunded, has none. The receipt names the hosts " +
    "by which the client reaches the service.",
  parameters: [pathParameters.id],
  responses: {
    ...failureResponses("upload_not_found", "busy", "database_unavailable", "uploads_off"),
    200: json("The receipt.", ref("Receipt")),
  },
};

export function createReceiptRoutes({ find, writeReceipt, semaphore }: ReceiptRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).get(
    "/tx/:token/receipt",
    async ({ request, params }) => {
      const id = params.token;
      if (find === undefined) throw new Failure("uploads_off", {});
      const taken = pathParameters.id.is(id) ? await find(id) : undefined;
      // A failed item is refunded, so its receipt no longer holds.
      if (taken === undefined || taken.upload.state === "failed")
        throw new Failure("upload_not_found", { id: id.slice(0, 100) });
      contextOf(request).allowSilence(silenceSeconds);
      const permit = semaphore.take(request.signal);
      if (permit === undefined) throw new Failure("busy", { reason: "many receipts are asked for" });
      const release = await permit;
      try {
        return jsonResponse(await writeReceipt(taken, request), 200, { "Cache-Control": "no-store" });
      } finally {
        release();
      }
    },
    { detail: describedAs(ofReceipt) },
  );
}
