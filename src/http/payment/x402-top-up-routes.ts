/**
 * `GET /x402/top-up`: credits for a payment that comes with the request.
 *
 * Without a payment the response is the price. With one, this GET settles it and so writes; a repeated request with the
 * same payment gets the same response.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { enumSchema } from "../../lib/value-schema.ts";
import { amountUpText, safeMax } from "../../payment/amounts.ts";
import { topUpPurpose, type X402, type X402Settled, type X402Want } from "../../payment/x402/x402.ts";
import type { X402Payment } from "../../payment/x402/x402-payment-reader.ts";
import type { X402Resource } from "../../payment/x402/x402-requirement.ts";
import { amountMax } from "../../store/ledger/ledger-database.ts";
import { queryParameter, requiredParameter } from "../parameter.ts";
import type { PublicUrl } from "../public-url.ts";
import { failureResponses, inHeader, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import {
  noPaymentMessage,
  rejectedPayment,
  x402PaymentOf,
  x402RequiredResponse,
  x402SettledHeaders,
} from "../x402-responses.ts";
import { winc } from "./payment-common.ts";

export type X402RoutesOptions = Readonly<{
  /** Undefined: x402 is off. */
  x402: X402 | undefined;
  /** Address of the payment service as the client reaches it. */
  publicUrl: PublicUrl;
}>;

const parameters = {
  type: requiredParameter(queryParameter("type", enumSchema(["bytes", "credits"]), "Unit of `qty`."), "bytes"),
  quantity: requiredParameter(
    queryParameter("qty", amountUpText, "Bytes to upload, or winc. The lowest price is a tenth of a cent."),
    "1048576",
  ),
} as const;

const base64 = (description: string): Schema => ({
  type: "string",
  description: `Base64 of JSON: ${description}`,
});

const requirementFields = {
  scheme: { type: "string", enum: ["exact"] },
  description: textSchema,
  network: textSchema,
  maxAmountRequired: { type: "string", pattern: "^[0-9]+$", description: "Smallest unit of the asset." },
  payTo: textSchema,
  asset: textSchema,
  resource: textSchema,
  mimeType: textSchema,
  maxTimeoutSeconds: { type: "integer" },
  extra: record({ name: textSchema, version: textSchema }, "The EIP-712 domain of the asset."),
} as const satisfies Readonly<Record<string, Schema>>;

/** The records of payments by x402, as components of the API reference. */
export const x402Schemas = {
  X402Requirement: record(requirementFields),
  X402Required: record(
    {
      ...requirementFields,
      x402Version: { type: "integer", enum: [1] },
      error: textSchema,
      accepts: { type: "array", items: ref("X402Requirement") },
    },
    "The requirement itself, and the same as version 1 of the protocol has it.",
  ),
  X402TopUp: record({
    walletAddress: { type: "string", description: "The payer, whose account was credited." },
    balance: { ...winc, pattern: "^-?[0-9]+$", description: "Balance of the account right after, in winc." },
    creditedWinc: winc,
    x402SettlementResponse: record({ transaction: textSchema, network: textSchema, payTo: textSchema }),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const responseHeaders = {
  "X-PAYMENT-RESPONSE": { schema: base64("the settlement, for a payment of version 1.") },
  "PAYMENT-RESPONSE": { schema: base64("the settlement, for a payment of version 2.") },
};

const ofTopUp: RouteDescription = {
  tag: "x402",
  summary: "Credits for a payment by x402",
  description:
    "Without a payment the response is the price; it is held for `maxTimeoutSeconds`. With one (an EIP-3009 " +
    "authorization of the asked amount) it settles the payment and credits the payer. The same payment sent again " +
    "gets the same response and credits nothing. While it is not known whether a payment was carried out, the " +
    "status is 503: sending the same payment again is safe, signing another one pays twice.",
  parameters: [
    parameters.type,
    parameters.quantity,
    inHeader("X-PAYMENT", base64("a payment of version 1."), "A payment."),
    inHeader("PAYMENT-SIGNATURE", base64("a payment of version 2."), "A payment; takes precedence."),
  ],
  responses: {
    200: { ...json("It is settled and credited.", ref("X402TopUp")), headers: responseHeaders },
    ...failureResponses(
      "invalid_quantity",
      "invalid_signature",
      "pricing_oracle_unavailable",
      "fiat_oracle_unavailable",
      "settlement_unknown",
      "payment_method_off",
      "database_unavailable",
    ),
    402: {
      ...json("The price; also when the payment did not settle: `Payment settlement failed`.", ref("X402Required")),
      headers: {
        "PAYMENT-REQUIRED": { schema: base64("the price, in the format of version 2.") },
        ...responseHeaders,
      },
    },
  },
};

export function createX402Routes({ x402, publicUrl }: X402RoutesOptions): AnyElysia {
  return new Elysia({ strictPath: true }).get(
    "/x402/top-up",
    async ({ request }) => {
      if (x402 === undefined) throw new Failure("payment_method_off", { method: "x402" });
      const want = readWant(contextOf(request).target.query);
      const payment = x402PaymentOf(request);
      const resource = resourceOf(publicUrl(request), want);
      if (payment !== undefined) return await paidResponse(x402, { payment, want, resource }, request.signal);
      const quote = await x402.quote(want, request.signal);
      return x402RequiredResponse({ terms: x402.terms, quote, resource, error: noPaymentMessage });
    },
    { detail: described(ofTopUp) },
  );
}

type TopUp = Exclude<X402Want, { kind: "dollars" }>;

type Paid = Readonly<{ payment: X402Payment; want: TopUp; resource: X402Resource }>;

async function paidResponse(x402: X402, { payment, want, resource }: Paid, signal: AbortSignal): Promise<Response> {
  try {
    const settled = await x402.settle({ payment, want, purpose: topUpPurpose, resource: resource.url }, signal);
    return jsonResponse(topUpRecord(x402, payment, settled), 200, x402SettledHeaders(payment, x402.terms, settled));
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "settlement_failed") throw error;
    const rejected = rejectedPayment(payment, error);
    const quote = await x402.quote(want, signal);
    return x402RequiredResponse({ terms: x402.terms, quote, resource, error: error.message, rejected });
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
  // A plus is part of the number, `1e+21`, and not the space of forms.
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
