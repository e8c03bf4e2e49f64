/**
 * What the API reference says of payments by x402.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import { x402Parameters } from "../payment/parameters.ts";
import { type Description, inHeader, json, record, ref, refusals, type Schema, textSchema } from "./words.ts";

const winc: Schema = { type: "string", pattern: "^[0-9]+$", description: "Winc." };
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
  extra: record({ name: textSchema, version: textSchema }, "What the asset's signatures are bound to (EIP-712)."),
} as const satisfies Readonly<Record<string, Schema>>;

/** Records that the descriptions below refer to. */
export const paymentX402Records = {
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
    balance: { ...winc, pattern: "^-?[0-9]+$", description: "Winc in the account right after." },
    creditedWinc: winc,
    x402SettlementResponse: record({ transaction: textSchema, network: textSchema, payTo: textSchema }),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const responseHeaders = {
  "X-PAYMENT-RESPONSE": { schema: base64("the settlement, for a payment of version 1.") },
  "PAYMENT-RESPONSE": { schema: base64("the settlement, for a payment of version 2.") },
};

/** Every route of payments by x402. */
export const paymentX402Descriptions: readonly Description[] = [
  {
    method: "GET",
    path: "/x402/top-up",
    tag: "x402",
    summary: "Credits for a payment by x402",
    description:
      "Without a payment it answers what to pay; the price is held for `maxTimeoutSeconds`. With one (an EIP-3009 " +
      "authorization of the asked amount) it settles the payment and credits the payer. The same payment sent again " +
      "is answered the same again and credits nothing. While it is not known whether a payment was carried out, the " +
      "answer is 503: sending the same payment again is safe, signing another one pays twice.",
    parameters: [
      x402Parameters.type,
      x402Parameters.quantity,
      inHeader("X-PAYMENT", base64("a payment of version 1."), "A payment."),
      inHeader("PAYMENT-SIGNATURE", base64("a payment of version 2."), "A payment; stands before the other."),
    ],
    responses: {
      200: { ...json("It is settled and credited.", ref("X402TopUp")), headers: responseHeaders },
      ...refusals(
        "invalid_quantity",
        "invalid_signature",
        "pricing_oracle_unavailable",
        "fiat_oracle_unavailable",
        "settlement_unknown",
        "payment_method_off",
        "database_unavailable",
      ),
      402: {
        ...json("What to pay; also when the payment did not settle: `Payment settlement failed`.", ref("X402Required")),
        headers: {
          "PAYMENT-REQUIRED": { schema: base64("what to pay, as version 2 has it.") },
          ...responseHeaders,
        },
      },
    },
  },
];
