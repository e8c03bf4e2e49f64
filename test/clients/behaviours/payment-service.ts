/**
 * Behaviours of the payment service's router tests: prices, rates, balances, top-ups, approvals, payments in tokens.
 * @module
 */
import { expect } from "bun:test";
import { alike, message, posted, type Table, unlike } from "./rows.ts";

const native = "N".repeat(42);
const topUp = (rest: string) => () => `/v1/top-up/${rest}`;
const nothingHeld = { givenApprovals: [], receivedApprovals: [] };

/** The rows. */
export const paymentService: Table = {
  suite: "payment service",
  rows: [
    ...alike(
      "payment",
      [
        "the price of bytes",
        "P1",
        "/v1/price/bytes/1024",
        { status: 200, json: { winc: expect.stringMatching(/^\d+$/), adjustments: [] } },
      ],
      [
        "the price of bytes, without the prefix",
        "P1",
        "/price/bytes/1024",
        { status: 200, has: { winc: expect.any(String) } },
      ],
      ["a negative number of bytes", "P1", "/v1/price/bytes/-1", message(400, "Invalid byte count")],
      ["a fraction of a byte", "P1", "/v1/price/bytes/1.5", message(400, "Invalid byte count")],
      ["bytes that are no number", "P1", "/v1/price/bytes/many", message(400, "Invalid byte count")],
      [
        "what dollars buy",
        "P2",
        "/v1/price/usd/1000",
        {
          status: 200,
          has: {
            winc: "1094285714286",
            actualPaymentAmount: 1000,
            quotedPaymentAmount: 1000,
            adjustments: [],
            fees: [expect.objectContaining({ operatorMagnitude: "0.766" })],
          },
        },
      ],
      [
        "an unknown currency",
        "P2",
        "/v1/price/xyz/1000",
        message(400, "The currency type 'xyz' is currently not supported by this API!"),
      ],
      ["what a token buys", "P2", "/v1/price/arweave/1000000000000", { status: 200, has: { winc: "766000000000" } }],
      [
        "an amount in exponent form, as the SDK writes large ones",
        "P2",
        "/v1/price/ethereum/1e+21",
        { status: 200, has: { winc: expect.stringMatching(/^\d+$/) } },
      ],
      [
        "a destination that is not a valid address, without promo codes",
        "P2",
        "/v1/price/usd/1000?destinationAddress=placeholder&",
        { status: 200, has: { winc: "1094285714286" } },
      ],
      [
        "rates of ten currencies",
        "P3",
        "/v1/rates",
        {
          status: 200,
          has: { fiat: { aud: expect.any(Number), usd: expect.any(Number), jpy: expect.any(Number) } },
        },
      ],
      ["the rate of a currency", "P3", "/v1/rates/usd", { status: 200, json: { currency: "usd", rate: 7 } }],
      ["the rate of an unknown currency", "P3", "/v1/rates/xyz", message(404, "Invalid currency")],
      [
        "currencies and their limits",
        "P3",
        "/v1/currencies",
        {
          status: 200,
          has: {
            supportedCurrencies: expect.arrayContaining(["usd", "jpy"]),
            limits: {
              usd: { minimumPaymentAmount: 500, zeroDecimalCurrency: false },
              jpy: { zeroDecimalCurrency: true },
            },
          },
        },
      ],
      ["countries", "P3", "/v1/countries", { status: 200, json: expect.arrayContaining(["United States", "Germany"]) }],
      [
        "a balance without a signature or an address",
        "P4",
        "/v1/balance",
        message(403, "Invalid signature or missing required headers"),
      ],
      [
        "the balance of an account",
        "P4",
        ({ address }) => `/v1/balance?address=${address}`,
        {
          status: 200,
          has: {
            winc: expect.stringMatching(/^\d+$/),
            controlledWinc: expect.stringMatching(/^\d+$/),
            effectiveBalance: expect.stringMatching(/^\d+$/),
            receivedApprovals: [],
          },
        },
      ],
      ["the balance of an unknown address", "P4", `/v1/balance?address=${native}8`, message(404, "User Not Found")],
      [
        "the balance that the SDK reads",
        "P4",
        ({ address }) => `/v1/account/balance/arweave?address=${address}`,
        { status: 200, has: { winc: expect.any(String) } },
      ],
      [
        "the balance of an address with any last character",
        "A1",
        `/v1/account/balance/arweave?address=${native}Z`,
        message(404, "User Not Found"),
      ],
      [
        "approvals of an address with any last character",
        "A1",
        `/v1/account/approvals/get?userAddress=${native}_`,
        { status: 200, json: nothingHeld },
      ],
      [
        "approvals between two addresses",
        "P5",
        `/v1/account/approvals?payingAddress=${native}Z&approvedAddress=${native}8`,
        { status: 200, json: { approvals: [], amount: "0" } },
      ],
      [
        "a top-up by checkout",
        "P6",
        topUp(`checkout-session/${native}8/usd/1000`),
        {
          status: 200,
          has: {
            topUpQuote: {
              destinationAddress: `${native}8`,
              paymentAmount: 1000,
              winstonCreditAmount: "1094285714286",
              paymentProvider: "stripe",
            },
            paymentSession: { id: expect.any(String), url: expect.stringMatching(/^http/) },
            adjustments: [],
            fees: expect.any(Array),
          },
        },
      ],
      [
        "a top-up of an address with any last character",
        "A1",
        topUp(`checkout-session/${native}b/usd/1000`),
        {
          status: 200,
          has: { topUpQuote: { destinationAddress: `${native}b`, destinationAddressType: "native" } },
        },
      ],
      [
        "a top-up by payment intent",
        "P6",
        topUp(`payment-intent/${native}8/usd/1000`),
        { status: 200, has: { paymentSession: { client_secret: expect.stringMatching(/./) } } },
      ],
      [
        "a top-up of an Ethereum address, in one case",
        "A5",
        topUp(`checkout-session/0x${"ab".repeat(20)}/usd/1000?token=ethereum`),
        {
          status: 200,
          has: { topUpQuote: { destinationAddress: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/) } },
        },
      ],
      [
        "a method that is invalid",
        "P6",
        topUp(`by-post/${native}8/usd/1000`),
        message(400, "Payment method must include one of: payment-intent,checkout-session!"),
      ],
      [
        "an address type that is invalid",
        "P6",
        topUp(`checkout-session/${native}8/usd/1000?destinationAddressType=x`),
        message(400, "Invalid destination address type: x"),
      ],
      [
        "an address that is invalid",
        "P6",
        topUp("checkout-session/short/usd/1000"),
        {
          status: 403,
          json: expect.stringMatching(/^Destination address is not a valid (native|supported native wallet) address!$/),
        },
      ],
      [
        "an unknown ui mode",
        "P6",
        topUp(`checkout-session/${native}8/usd/1000?uiMode=popup`),
        message(400, 'Invalid ui mode! Allowed modes: "hosted,embedded"'),
      ],
      [
        "a gift's message that is too long",
        "P6",
        topUp(`checkout-session/${native}8/usd/1000?giftMessage=${"g".repeat(251)}`),
        message(400, "Invalid gift message!"),
      ],
      [
        "a gift by email",
        "P6",
        topUp("checkout-session/a@example.org/usd/1000?destinationAddressType=email"),
        message(403, "Gifting by email is disabled!"),
      ],
      [
        "a payment without its transaction",
        "P7",
        () => posted("/v1/account/balance/arweave", {}),
        message(400, "Missing tx_id in request body"),
      ],
      [
        "a payment in an unknown token",
        "P7",
        () => posted("/v1/account/balance/doge", { tx_id: "x" }),
        message(400, "Token not supported"),
      ],
      [
        "a token payment of a transaction that is to another party",
        "P7",
        ({ transfer }) => posted("/v1/account/balance/arweave", { tx_id: transfer.id }),
        ({ transfer, stranger }) => ({
          status: 400,
          json: `Payment transaction '${transfer.id}' has wrong target address '${stranger}'`,
        }),
      ],
      [
        "a report of the card provider without its signature",
        "P8",
        () => posted("/v1/stripe-webhook", {}),
        { status: 400, json: expect.stringMatching(/^Webhook Error!/) },
      ],
      [
        "addresses to pay to",
        "P8",
        "/v1/info",
        {
          status: 200,
          has: { version: expect.any(String), addresses: { arweave: expect.stringMatching(/^[\w-]{43}$/) } },
        },
      ],
      [
        "the API's description",
        "P8",
        "/openapi.json",
        { status: 200, has: { openapi: expect.stringMatching(/^3\./) } },
      ],
    ),
    ...unlike(
      "payment",
      [
        "a price in more bytes than a number holds",
        "P1",
        `/v1/price/bytes/${2n ** 53n}`,
        message(400, "Invalid byte count"),
      ],
      [
        "the price of storage in rates, an integer",
        "P3",
        "/v1/rates",
        { status: 200, has: { winc: expect.any(Number) } },
      ],
      [
        "health, a record of what is wrong",
        "P8",
        "/health",
        {
          status: 200,
          has: { status: expect.stringMatching(/^(ok|unhealthy)$/), reasons: expect.any(Array) },
        },
      ],
      [
        "a fraction of a cent",
        "P2",
        "/v1/price/usd/1.5",
        { status: 400, json: expect.stringMatching(/^Payment Amount is Invalid/) },
      ],
      [
        "too small an amount",
        "P6",
        topUp(`checkout-session/${native}8/usd/1`),
        { status: 400, json: expect.stringMatching(/^Payment Amount is Invalid!/) },
      ],
      [
        "a payment of a transaction that is unknown",
        "P7",
        () => posted("/v1/account/balance/arweave", { tx_id: `${"F".repeat(42)}A` }),
        message(404, "Transaction ID not found!"),
      ],
      [
        "a body that is no JSON",
        "P7",
        () => ({ path: "/v1/account/balance/arweave", method: "POST", body: "{" }),
        message(400, "Malformed JSON body"),
      ],
      [
        "approvals of an invalid address",
        "P5",
        "/v1/account/approvals/get?userAddress=short",
        message(400, "Invalid paying address!"),
      ],
      [
        "approvals between one address and nothing",
        "P5",
        `/v1/account/approvals?payingAddress=${native}8`,
        message(400, "Invalid paying address!"),
      ],
      [
        "an address beside a bad signature",
        "P4",
        ({ address }) => ({
          path: `/v1/balance?address=${address}`,
          headers: { "x-signature": "AA", "x-nonce": "n", "x-public-key": "AA" },
        }),
        message(403, "Invalid signature or missing required headers"),
      ],
      [
        "an Ethereum address with a wrong checksum",
        "A5",
        `/v1/account/balance/ethereum?address=0x19e7E376E7C213B7E7e7e46cc70A5dD086DAff2a`,
        { status: 404 },
      ],
      ["a name to be bought with credits", "B1", "/v1/arns/price/Buy-Name/example", message(404, "Not Found")],
      [
        "a reservation by another service",
        "B2",
        "/v1/reserve-balance/arweave/x?byteCount=1",
        message(404, "Not Found"),
      ],
    ),
  ],
};
