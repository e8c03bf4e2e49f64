/**
 * The API reference of the payment service: its routes, and what holds for all of them.
 * Source: docs/reference/payment.md.
 * @module
 */
import type { Reference } from "./document.ts";
import { paymentAccountDescriptions, paymentAccountRecords } from "./payment-account-descriptions.ts";
import { paymentPriceDescriptions, paymentPriceRecords } from "./payment-price-descriptions.ts";
import { paymentTokenDescriptions, paymentTokenRecords } from "./payment-token-descriptions.ts";
import { paymentTopUpDescriptions, paymentTopUpRecords } from "./payment-top-up-descriptions.ts";
import { paymentX402Descriptions, paymentX402Records } from "./payment-x402-descriptions.ts";

const introduction = `Credits for storage: what it costs, how to pay, what an account holds.

Every path is also answered below \`/v1\`. Amounts of credit are winc, 10⁻¹² of the credit for what one native token
stores, as decimal strings. Failures are a JSON string. A signed request carries \`x-signature\`, \`x-nonce\` and
\`x-public-key\`; \`x-signature-type\` is 1 (Arweave) unless it says 3 (Ethereum) or 4 (Solana).`;

export const paymentReference: Reference = {
  title: "Cairn payment service",
  introduction,
  descriptions: [
    ...paymentPriceDescriptions,
    ...paymentAccountDescriptions,
    ...paymentTokenDescriptions,
    ...paymentTopUpDescriptions,
    ...paymentX402Descriptions,
  ],
  records: {
    ...paymentPriceRecords,
    ...paymentAccountRecords,
    ...paymentTokenRecords,
    ...paymentTopUpRecords,
    ...paymentX402Records,
  },
  securitySchemes: {
    token: {
      type: "http",
      scheme: "bearer",
      description: "The token that a signed `GET /balance` is answered with",
    },
  },
};
