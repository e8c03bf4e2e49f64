/**
 * `GET /x402/top-up`: credits for a payment that comes with the request.
 *
 * Without one the answer says what to pay. With one it settles it, so this GET writes; whoever repeats it with the same
 * payment gets the same answer.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { safeMax } from "../../payment/amounts.ts";
import {
  topUpPurpose,
  type X402,
  type X402Payment,
  type X402Resource,
  type X402Settled,
  type X402Want,
} from "../../payment/x402/x402.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import { contextOf } from "../context.ts";
import type { PublicUrl } from "../public-url.ts";
import { jsonResponse } from "../responses.ts";
import { x402PaymentOf, x402RequiredResponse, x402SettledHeaders } from "../x402-responses.ts";
import { x402Parameters as parameters } from "./parameters.ts";

/** What the route asks. */
export type X402RoutesOptions = Readonly<{
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
  /** Where a caller reaches the payment service. */
  publicUrl: PublicUrl;
}>;

/** What a first request is told. */
const noPaymentText = "X-PAYMENT header is required";

/** Creates the route. */
export function createX402Routes({ x402, publicUrl }: X402RoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).get("/x402/top-up", async ({ request }) => {
    if (x402 === undefined) throw new Failure("payment_method_off", { method: "x402" });
    const want = readWant(contextOf(request).target.query);
    const payment = x402PaymentOf(request);
    const resource = resourceOf(publicUrl(request), want);
    if (payment !== undefined) return await paidResponse(x402, { payment, want, resource }, request.signal);
    const quote = await x402.quote(want, request.signal);
    return x402RequiredResponse({ terms: x402.terms, quote, resource, error: noPaymentText });
  });
}

/** What a top-up may be for. */
type TopUp = Exclude<X402Want, { kind: "dollars" }>;

type Paid = Readonly<{ payment: X402Payment; want: TopUp; resource: X402Resource }>;

async function paidResponse(x402: X402, { payment, want, resource }: Paid, signal: AbortSignal): Promise<Response> {
  try {
    const settled = await x402.settle({ payment, want, purpose: topUpPurpose, resource: resource.url }, signal);
    return jsonResponse(topUpRecord(x402, payment, settled), 200, x402SettledHeaders(payment, x402.terms, settled));
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "settlement_failed") throw error;
    const refused = {
      version: payment.version,
      payer: payment.authorization.from,
      reason: String(error.context["reason"]),
    };
    const quote = await x402.quote(want, signal);
    return x402RequiredResponse({ terms: x402.terms, quote, resource, error: error.message, refused });
  }
}

function topUpRecord({ terms }: X402, { version }: X402Payment, settled: X402Settled) {
  return {
    walletAddress: settled.payer,
    balance: settled.balance.toString(),
    creditedWinc: settled.creditedWinc.toString(),
    x402SettlementResponse: {
      transaction: settled.transaction,
      network: version === 1 ? terms.network.nameV1 : terms.network.name,
      payTo: terms.payTo,
    },
  };
}

function readWant(query: string): TopUp {
  // A bare plus is meant as one, `1e+21`, and not as the space of forms.
  const asked = new URLSearchParams(query.replaceAll("+", "%2B"));
  const type = asked.get(parameters.type.name);
  const quantity = parameters.quantity.read(asked.get(parameters.quantity.name) ?? "");
  if (quantity !== undefined) {
    if (type === "bytes" && quantity <= safeMax) return { kind: "bytes", size: quantity };
    if (type === "credits" && quantity <= amountMax) return { kind: "credits", winc: quantity };
  }
  throw new Failure("invalid_quantity", { query: query.slice(0, 200) });
}

function resourceOf(publicUrl: string, want: TopUp): X402Resource {
  const quantity = want.kind === "bytes" ? want.size : want.winc;
  return {
    url: `${publicUrl}/v1/x402/top-up?type=${want.kind}&qty=${quantity}`,
    description:
      want.kind === "bytes" ? `Credits to upload ${quantity} bytes` : `Credits for uploads: ${quantity} winc`,
    mimeType: "application/json",
  };
}
