/**
 * The parts of the payment service's API reference that are not of one route.
 * Source: docs/reference/payment.md.
 * @module
 */
import type { Reference } from "../reference/document.ts";
import { healthSchema, paymentInfoSchema } from "../service-information.ts";
import { accountHistorySchemas } from "./account-history-routes.ts";
import { paymentHistorySchemas } from "./account-routes.ts";
import { giftSchemas } from "./gift-routes.ts";
import { creditSchemas, priceSchemas, tokenSchemas } from "./payment-records.ts";
import { quoteSchemas } from "./quote-routes.ts";
import { solvencySchemas } from "./solvency-routes.ts";
import { topUpSchemas } from "./top-up-routes.ts";
import { x402Schemas } from "./x402-top-up-routes.ts";

const introduction = `Credits for storage: prices, payments and balances.

Every path also exists below \`/v1\`. Amounts of credit are winc, 10⁻¹² of the credit for what one native token
stores, as decimal strings. Failures are a JSON string. A signed request carries \`x-signature\`, \`x-nonce\` and
\`x-public-key\`; \`x-signature-type\` is 1 (Arweave) unless it says 3 (Ethereum) or 4 (Solana).`;

export const paymentReference: Reference = {
  title: "Cairn payment service",
  introduction,
  records: {
    ...priceSchemas,
    Health: healthSchema,
    PaymentInfo: paymentInfoSchema,
    ...creditSchemas,
    ...paymentHistorySchemas,
    ...accountHistorySchemas,
    ...solvencySchemas,
    ...tokenSchemas,
    ...topUpSchemas,
    ...quoteSchemas,
    ...giftSchemas,
    ...x402Schemas,
  },
  securitySchemes: {
    token: { type: "http", scheme: "bearer", description: "The token in the response to a signed `GET /balance`." },
  },
};
