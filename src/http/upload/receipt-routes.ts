/**
 * `GET /tx/{id}/receipt`: the first receipt of an item again, for a sender that lost it.
 *
 * Anybody may ask. A receipt discloses nothing that is not public by other routes: the item's id and owner, when it was
 * taken and what it cost (its status), and the approvals that its own tags gave or revoked (balances). It authorizes
 * nothing.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import type { Taken } from "../../upload/intake/charge.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { pathParameters } from "./parameters.ts";
import type { ReceiptWriter } from "./receipt-record.ts";

/** What the routes ask. */
export type ReceiptRoutesOptions = Readonly<{
  /** `undefined` for an item that was never taken here. Undefined itself: no wallet is set that could sign. */
  find: ((id: string) => Promise<Taken | undefined>) | undefined;
  writeReceipt: ReceiptWriter;
  /** Bounds the signatures at once: receipts of new uploads must not wait behind those that anybody asks for. */
  semaphore: Semaphore;
}>;

/** Receipts that are written again at once, and requests that may wait for it. */
export const receiptSemaphore = { atWorkMax: 2, waitingMax: 100 } as const;

/** Signing may wait behind others. */
const silenceSeconds = 60;

/** Creates the routes. */
export function createReceiptRoutes({ find, writeReceipt, semaphore }: ReceiptRoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).get("/tx/:token/receipt", async ({ request, params }) => {
    const id = params.token;
    if (find === undefined) throw new Failure("uploads_off", {});
    const taken = pathParameters.id.is(id) ? await find(id) : undefined;
    // An item that failed was paid back: nothing is promised for it any more.
    if (taken === undefined || taken.upload.state === "failed")
      throw new Failure("upload_not_found", { id: id.slice(0, 100) });
    contextOf(request).allowSilence(silenceSeconds);
    const turn = semaphore.take(request.signal);
    if (turn === undefined) throw new Failure("busy", { reason: "many receipts are asked for" });
    const release = await turn;
    try {
      return jsonResponse(await writeReceipt(taken, request), 200, { "Cache-Control": "no-store" });
    } finally {
      release();
    }
  });
}
