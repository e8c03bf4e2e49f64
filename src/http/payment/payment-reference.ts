/**
 * The parts of the payment service's API reference that are not of one route.
 * Source: docs/reference/payment.md.
 * @module
 */
import type { Reference } from "../reference/document.ts";
import { creditSchemas } from "./credit-records.ts";
import { giftSchemas } from "./gift-routes.ts";
import { paymentHistorySchemas } from "./history-routes.ts";
import { informationSchemas } from "./information-routes.ts";
import { priceSchemas } from "./price-records.ts";
import { quoteSchemas } from "./quote-routes.ts";
import { tokenSchemas } from "./token-records.ts";
import { topUpSchemas } from "./top-up-routes.ts";
import { x402Schemas } from "./x402-routes.ts";

const introduction = `Credits for storage: prices, payments and balances.

Every path also exists below \`/v1\`. Amounts of credit are winc, 10⁻¹² of the credit for what one native token
stores, as decimal strings. Failures are a JSON string. A signed request carries \`x-signature\`, \`x-nonce\` and
\`x-public-key\`; \`x-signature-type\` is 1 (Arweave) unless it says 3 (Ethereum) or 4 (Solana).`;

export const paymentReference: Reference = {
  title: "Cairn payment service",
  introduction,
  descriptions: [],
  records: {
    ...priceSchemas,
    ...informationSchemas,
    ...creditSchemas,
    ...paymentHistorySchemas,
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
