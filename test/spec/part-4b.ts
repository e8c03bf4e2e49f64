/**
 * Specification part 4B, the records of part 2 in its responses, and its rows of part 7, as tables: what the tests of
 * the walk and of the API reference go by.
 * @module
 */
import { list, named, record as recordOf, type Schema, text } from "./record-schemas.ts";

/** Every row of part 4B: method and path. */
export const endpoints: readonly (readonly [method: string, path: string])[] = [
  ["GET", "/top-up/{method}/{address}/{currency}/{amount}"],
  ["POST", "/account/balance/{token}"],
  ["GET", "/x402/top-up"],
  ["GET", "/account/approvals"],
  ["GET", "/account/approvals/get"],
  ["GET", "/currencies"],
  ["GET", "/countries"],
  ["GET", "/rates"],
  ["GET", "/rates/{currency}"],
  ["GET", "/price/bytes/{byteCount}"],
  ["GET", "/price/{type}/{amount}"],
  ["GET", "/balance"],
];

/** The messages of part 7 that belong to the payment service, by endpoint, each with its status. */
export const messages: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  "GET /top-up/{method}/{address}/{currency}/{amount}": {
    "Payment Amount is Invalid!": [400],
    "Destination address is not a valid native address!": [403],
    "Fiat Oracle Unavailable": [503],
  },
  "POST /account/balance/{token}": {
    "Transaction ID not found!": [404],
    "Error while processing transaction!": [503],
    "Transaction has already failed!": [400],
  },
  "GET /x402/top-up": {
    "Invalid quantity parameter": [400],
    "Invalid signature or missing required headers": [403],
    "Payment settlement failed": [402, 503],
  },
  "GET /account/approvals": { "Invalid paying address!": [400], "Internal server error": [503] },
  "GET /account/approvals/get": { "Invalid paying address!": [400], "Internal server error": [503] },
  "GET /rates/{currency}": { "Invalid currency": [404] },
  "GET /price/bytes/{byteCount}": { "Invalid byte count": [400], "Pricing Oracle Unavailable": [503] },
  "GET /price/{type}/{amount}": { "Payment Amount is Invalid": [400], "Fiat Oracle Unavailable": [503] },
  "GET /balance": {
    "Invalid signature or missing required headers": [403],
    "User Not Found": [404],
    "Cloud Database Unavailable": [503],
  },
};

/** Messages after which a cause may follow, and those beyond part 7. */
export const prefixes: ReadonlySet<string> = new Set(["Payment Amount is Invalid!", "Payment Amount is Invalid"]);
export const beyond: Readonly<Record<string, readonly string[]>> = {
  "GET /top-up/{method}/{address}/{currency}/{amount}": [
    "Payment method must include one of: payment-intent,checkout-session!",
    'Invalid ui mode! Allowed modes: "hosted,embedded"',
    "The currency type 'xyz' is currently not supported by this API!",
    "No promo code found with code 'NOPE'",
    "Not Found",
  ],
  "POST /account/balance/{token}": [
    "Missing tx_id in request body",
    "Token not supported",
    "Malformed JSON body",
    "Payload too large",
    "Not Found",
  ],
  "GET /rates/{currency}": ["Fiat Oracle Unavailable", "Not Found"],
  "GET /price/bytes/{byteCount}": ["Not Found"],
  "GET /price/{type}/{amount}": [
    "The currency type 'xyz' is currently not supported by this API!",
    "Promo codes must be applied to a specific `destinationAddress` or to the request signer",
    "Invalid signature or missing required headers",
    "Not Found",
  ],
};

const integer: Schema = { type: "integer" };
const number: Schema = { type: "number" };
const winc: Schema = { type: "string", pattern: "^-?[0-9]+$" };
const date: Schema = { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d" };

/** A record with these fields and no others. */
const record = (fields: Readonly<Record<string, Schema>>): Schema => recordOf(fields, { additionalProperties: false });

const currencies = ["aud", "brl", "cad", "eur", "gbp", "hkd", "inr", "jpy", "sgd", "usd"];
const transaction = {
  transactionId: text,
  transactionQuantity: integer,
  createdAt: date,
  tokenType: text,
  destinationAddress: text,
  destinationAddressType: text,
  winstonCreditAmount: winc,
  adjustments: list(named("Adjustment")),
  // Beyond part 2: docs/reference/payment.md.
  createdDate: date,
  "transactionSenderAddress?": text,
};
const priced = {
  winc,
  adjustments: list(named("Adjustment")),
  fees: list(named("Adjustment")),
  actualPaymentAmount: integer,
  quotedPaymentAmount: integer,
};
const held = { controlledWinc: winc, winc, effectiveBalance: winc };
const approvals = { givenApprovals: list(named("Approval")), receivedApprovals: list(named("Approval")) };

/** The records of part 2, and what may be absent. */
export const records: Schema = {
  Adjustment: record({
    name: text,
    description: text,
    operatorMagnitude: { type: "string", pattern: "^\\d+(\\.\\d+)?$" },
    operator: text,
    adjustmentAmount: winc,
    "promoCode?": text,
  }),
  Approval: record({
    approvalDataItemId: text,
    approvedAddress: text,
    payingAddress: text,
    approvedWincAmount: winc,
    usedWincAmount: winc,
    creationDate: date,
    "expirationDate?": date,
  }),
  Limits: record({
    minimumPaymentAmount: integer,
    maximumPaymentAmount: integer,
    zeroDecimalCurrency: { type: "boolean" },
    suggestedPaymentAmounts: list(integer),
    stripeMinimumPaymentAmount: integer,
  }),
  Transaction: record(transaction),
  Credited: record({ ...transaction, blockHeight: integer, creditedAt: date, creditedDate: date }),
  Failed: record({
    ...transaction,
    failedAt: date,
    failureReason: text,
    failedDate: date,
    failedReason: text,
  }),
  TopUp: record({
    paymentSession: record({ id: text, client_secret: text, url: text }),
    topUpQuote: record({
      topUpQuoteId: text,
      destinationAddress: text,
      destinationAddressType: text,
      paymentAmount: integer,
      quotedPaymentAmount: integer,
      currencyType: text,
      winstonCreditAmount: winc,
      quoteExpirationDate: date,
      paymentProvider: text,
    }),
    adjustments: list(named("Adjustment")),
    fees: list(named("Adjustment")),
  }),
};

/** What success is, by endpoint; where there are several, by what the response holds. */
export const responses: Readonly<Record<string, Schema>> = {
  "GET /top-up/{method}/{address}/{currency}/{amount}": named("TopUp"),
  "POST /account/balance/{token}": {
    oneOf: [
      record({ message: text, creditedTransaction: named("Credited") }),
      record({ message: text, pendingTransaction: named("Transaction") }),
      record({ message: text, failedTransaction: named("Failed") }),
    ],
  },
  "GET /x402/top-up": record({
    walletAddress: text,
    balance: winc,
    creditedWinc: winc,
    x402SettlementResponse: record({ transaction: text, network: text, payTo: text }),
  }),
  "GET /account/approvals": record({
    approvals: list(named("Approval")),
    amount: winc,
    "expiresBy?": integer,
  }),
  "GET /account/approvals/get": record(approvals),
  "GET /currencies": record({
    supportedCurrencies: list(text),
    limits: record(Object.fromEntries(currencies.map((currency) => [currency, named("Limits")]))),
  }),
  "GET /countries": list(text),
  "GET /rates": record({
    winc: integer,
    fiat: record(Object.fromEntries(currencies.map((currency) => [currency, number]))),
    adjustments: list(named("Adjustment")),
  }),
  "GET /rates/{currency}": record({ currency: text, rate: number }),
  "GET /price/bytes/{byteCount}": record({ winc, adjustments: list(named("Adjustment")) }),
  "GET /price/{type}/{amount}": record(priced),
  "GET /balance": record({ ...held, ...approvals }),
};

/** The requirements of `GET /x402/top-up` without a payment; versions 1 and 2 of x402 are beside them. */
export const requirement: Schema = record({
  scheme: text,
  description: text,
  network: text,
  maxAmountRequired: winc,
  payTo: text,
  asset: text,
  resource: text,
  mimeType: text,
  maxTimeoutSeconds: integer,
  extra: { type: "object" },
  x402Version: integer,
  error: text,
  accepts: { type: "array" },
  "outputSchema?": {},
});
