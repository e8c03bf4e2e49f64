/**
 * Refunds that an operator wants: the card provider returns the money, and its report takes the credits back.
 *
 * The action is stored before the request to the provider, and completed after its report was settled. A crash between
 * repeats the request, which the provider ignores. Spent credits are taken back too: the account then has a debt, which
 * its next payments pay.
 * Source: docs/reference/payment.md#actions-of-operators.
 * @module
 */
import { Failure, rejected } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf } from "../../store/ledger/transfers.ts";
import { findPayment } from "../cards/card-event-store.ts";
import type { CardProvider } from "../cards/card-provider.ts";
import { type CardEvents, holderOf } from "../cards/card-settlement.ts";
import { writeMoney } from "../prices/price-types.ts";
import { findQuote, type Quote } from "../top-ups/quotes.ts";
import {
  type ActionOrder,
  beginAction,
  completeAction,
  type WaitingAction,
  withdrawAction,
} from "./operator-actions.ts";

export type RefundParts = Readonly<{
  ledger: LedgerDatabase;
  provider: CardProvider;
  events: Pick<CardEvents, "learn">;
  clock: Clock;
}>;

export type RefundOrder = ActionOrder & Readonly<{ id: string }>;

/**
 * Refunds a payment by card completely, once for its key; durable when it resolves.
 *
 * @throws Failure `payment_not_found`; `idempotency_conflict`; `payment_rejected` with the reason when the payment
 *   cannot be refunded; `payment_session_failed` when the provider does not respond: then the refund is repeated in
 *   the background.
 */
export async function refundPayment(parts: RefundParts, order: RefundOrder, signal: AbortSignal): Promise<JsonObject> {
  const { id, operator, reason, idempotencyKey } = order;
  const at = parts.clock();
  const action = { kind: "refund", subject: id, winc: 0n, operator, reason, idempotencyKey, at } as const;
  const begun = await parts.ledger.write(async (tx) => {
    const state = await beginAction(tx, action);
    if (state === "new") await checkRefundable(tx, id);
    return state;
  });
  if (typeof begun === "object") return begun;
  return await carryOut(parts, { idempotencyKey, subject: id, operator, reason, at }, signal);
}

/** @throws Failure when the payment cannot be refunded. */
async function checkRefundable(tx: Tx, id: string): Promise<void> {
  const quote = await findQuote(tx, id);
  if (quote?.paymentId === undefined) throw new Failure("payment_not_found", { id });
  if (quote.takenBackWinc >= quote.creditedWinc)
    throw rejected("The payment is refunded or disputed already: none of its credits are left to take back");
}

/** Carries out a refund that was begun; also after a crash or a fault of the provider. */
export async function carryOut(parts: RefundParts, action: WaitingAction, signal: AbortSignal): Promise<JsonObject> {
  const { ledger, provider, events } = parts;
  const quote = await ledger.read((tx) => findQuote(tx, action.subject));
  const paymentId = quote?.paymentId;
  assert(paymentId !== undefined, "a payment that is being refunded was credited");
  try {
    // A key of its own: an earlier refund of the payment may have failed since.
    await provider.refund(paymentId, `operator-${action.idempotencyKey}`, signal);
  } catch (error) {
    if (!isFinal(error)) throw error;
    await ledger.write((tx) => withdrawAction(tx, action.idempotencyKey));
    throw rejected(`The card provider rejects the refund: ${error.context["message"] ?? error.context["status"]}`);
  }
  const status = await provider.findPayment(paymentId, signal);
  const known = await ledger.read((tx) => findPayment(tx, paymentId));
  if (status !== undefined && known?.paid !== undefined) {
    // Not newer than the last report: the provider's own reports of later changes replace this one.
    const asOf = Math.max(known.paid.at, known.refundedAsOf);
    await events.learn({ kind: "refunded", paymentId, amount: status.amountRefunded, asOf });
  }
  return await ledger.write(async (tx) => {
    return await completeAction(tx, action.idempotencyKey, await responseOf(tx, action));
  });
}

/** Whether the provider has rejected a request for good. */
function isFinal(error: unknown): error is Failure {
  if (!(error instanceof Failure) || error.code !== "payment_session_failed") return false;
  const { status } = error.context;
  return typeof status === "number" && status >= 400 && status < 500 && ![401, 403, 408, 409, 429].includes(status);
}

async function responseOf(tx: Tx, { subject, at, operator, reason, idempotencyKey }: WaitingAction) {
  const quote = await findQuote(tx, subject);
  assert(quote !== undefined, "a credited quote stays");
  const balance = await balanceOf(tx, await holderOf(tx, quote));
  const owed = owedOf(quote, balance);
  return {
    kind: "refund",
    id: subject,
    account: quote.address ?? null,
    amount: quote.paymentAmount.toString(),
    currency: quote.currency,
    paid: writeMoney(quote.paymentAmount, quote.currency),
    winc: quote.takenBackWinc.toString(),
    spentWinc: owed.toString(),
    balance: balance.toString(),
    effect: effectText(quote, owed),
    at,
    operator,
    reason,
    idempotencyKey,
  };
}

/** The part of the withheld credits that the account does not have. */
function owedOf(quote: Quote, balance: bigint): bigint {
  const debt = balance < 0n ? -balance : 0n;
  return debt < quote.takenBackWinc ? debt : quote.takenBackWinc;
}

function effectText({ takenBackWinc }: Quote, owed: bigint): string {
  if (owed === 0n) return `${takenBackWinc} winc were taken back in all; none of them were spent`;
  return (
    `${takenBackWinc} winc were taken back in all; ${owed} of them were spent: the account owes them, ` +
    "can spend nothing, and its next payments pay the debt first"
  );
}
