/**
 * Behaviours that turbo-sdk's node tests check against its services, as the requests that the SDK makes.
 * @module
 */
import { expect } from "bun:test";
import { alike, message, sent, type Table, unlike } from "./rows.ts";

const zeros = "0".repeat(40);

/** The rows. */
export const turboSdk: Table = {
  suite: "turbo-sdk",
  rows: [
    ...alike(
      "payment",
      ["getFiatRates", "P3", "/v1/rates", { status: 200, has: { fiat: expect.any(Object), adjustments: [] } }],
      ["getFiatToAR", "P3", "/v1/rates/eur", { status: 200, has: { currency: "eur", rate: expect.any(Number) } }],
      ["getSupportedCountries", "P3", "/v1/countries", { status: 200, json: expect.any(Array) }],
      [
        "getSupportedCurrencies",
        "P3",
        "/v1/currencies",
        { status: 200, has: { supportedCurrencies: expect.any(Array) } },
      ],
      ["getUploadCosts of nothing", "P1", "/v1/price/bytes/0", { status: 200, has: { winc: "0" } }],
      [
        "getWincForFiat, unauthenticated",
        "P2",
        "/v1/price/usd/1000?destinationAddress=placeholder&",
        { status: 200, has: { winc: "1094285714286" } },
      ],
      [
        "getWincForFiat with an unknown promo code",
        "P2",
        ({ address }) => `/v1/price/usd/1000?destinationAddress=${address}&promoCode=NOPE`,
        message(400, "No promo code found with code 'NOPE'"),
      ],
      [
        "getWincForToken",
        "P2",
        "/v1/price/arweave/1000000000000",
        {
          status: 200,
          has: { winc: "766000000000", actualPaymentAmount: expect.anything(), fees: expect.any(Array) },
        },
      ],
      [
        "getBalance of a wallet that never paid",
        "P4",
        `/v1/account/balance/ethereum?address=0x${zeros}`,
        { status: 404 },
      ],
      [
        "getCreditShareApprovals of a wallet that has none",
        "P5",
        ({ stranger }) => `/v1/account/approvals/get?userAddress=${stranger}`,
        { status: 200, json: { givenApprovals: [], receivedApprovals: [] } },
      ],
      [
        "getBalance of an address with any last character, to which credits are shared",
        "A1",
        ({ approved }) => `/v1/account/balance/arweave?address=${approved}`,
        ({ approved, address }) => ({
          status: 200,
          has: {
            winc: "0",
            effectiveBalance: "1000",
            receivedApprovals: [{ approvedAddress: approved, payingAddress: address }],
          },
        }),
      ],
      [
        "getCreditShareApprovals of it",
        "A1",
        ({ approved }) => `/v1/account/approvals/get?userAddress=${approved}`,
        ({ approved }) => ({
          status: 200,
          has: {
            receivedApprovals: [{ approvedAddress: approved, approvedWincAmount: "1000", usedWincAmount: "0" }],
          },
        }),
      ],
      [
        "getBalance of another spelling of it, which is another account",
        "A2",
        ({ approved }) => `/v1/account/balance/arweave?address=${approved.slice(0, -1)}8`,
        { status: 404 },
      ],
      ["getTurboCryptoWallets", "P8", "/v1/info", { status: 200, has: { addresses: { arweave: expect.any(String) } } }],
      [
        "createCheckoutSession, hosted",
        "P6",
        ({ address }) => `/v1/top-up/checkout-session/${address}/usd/1000?token=arweave&uiMode=hosted`,
        { status: 200, has: { paymentSession: { url: expect.stringMatching(/^http/), client_secret: "" } } },
      ],
      [
        "createCheckoutSession, embedded",
        "P6",
        ({ address }) => `/v1/top-up/checkout-session/${address}/usd/1000?token=arweave&uiMode=embedded`,
        { status: 200, has: { paymentSession: { client_secret: expect.stringMatching(/./), url: "" } } },
      ],
      [
        "createCheckoutSession with an unknown promo code",
        "P6",
        ({ address }) => `/v1/top-up/checkout-session/${address}/usd/1000?promoCode=NOPE`,
        message(400, "No promo code found with code 'NOPE'"),
      ],
      [
        "getFreeStatus",
        "P4",
        ({ address }) => `/v1/account/free?address=${address}`,
        { status: 200, has: { bytesRemaining: null } },
      ],
    ),
    ...alike(
      "upload",
      [
        "uploadSignedDataItem with empty tag names and values",
        "D1",
        ({ signedItem }) =>
          sent(
            "/v1/tx/arweave",
            signedItem([
              { name: "", value: "" },
              { name: "Empty", value: "" },
            ]),
            { "content-type": "application/octet-stream" },
          ),
        { status: 200, has: { id: expect.stringMatching(/^[\w-]{43}$/) } },
      ],
      [
        "shareCredits with an address that is invalid",
        "U6",
        ({ signedItem }) =>
          sent(
            "/v1/tx/arweave",
            signedItem([
              { name: "x-approve-payment", value: "stubAddress" },
              { name: "x-amount", value: "100" },
            ]),
          ),
        message(400, "Unable to create delegated payment approval : Invalid approved address"),
      ],
      [
        "revokeCredits where nothing is shared",
        "U6",
        ({ signedItem, stranger }) =>
          sent("/v1/tx/arweave", signedItem([{ name: "x-delete-payment-approval", value: stranger }])),
        { status: 400, json: expect.stringMatching(/No valid approvals found for approved address/) },
      ],
      [
        "upload without credits",
        "U4",
        ({ unpaidItem }) => sent("/v1/tx/arweave", unpaidItem),
        { status: 402, has: { message: "Insufficient balance" } },
      ],
      [
        "an upload in parts",
        "U5",
        () => ({
          path: "/v1/chunks/arweave/-1/-1?chunkSize=5242880",
          headers: { "x-chunking-version": "2" },
        }),
        { status: 200, has: { id: expect.any(String) } },
      ],
      ["the status of an unknown upload in parts", "U5", "/v1/chunks/arweave/unknown/status", { status: 404 }],
    ),
    ...unlike(
      "payment",
      [
        "error bodies, which are JSON strings",
        "P9",
        "/v1/price/bytes/x",
        {
          status: 400,
          text: '"Invalid byte count"',
          headers: { "content-type": "application/json; charset=utf-8" },
        },
      ],
      ["winc of getFiatRates, an integer", "P3", "/v1/rates", { status: 200, text: /"winc":\d+/ }],
      [
        "submitFundTransaction of an unknown transaction",
        "P7",
        () => ({
          path: "/v1/account/balance/arweave",
          method: "POST",
          body: JSON.stringify({ tx_id: `${"H".repeat(42)}A` }),
        }),
        message(404, "Transaction ID not found!"),
      ],
      [
        "amounts below a currency's least",
        "P6",
        ({ address }) => `/v1/top-up/checkout-session/${address}/usd/100`,
        { status: 400, json: expect.stringMatching(/^Payment Amount is Invalid!/) },
      ],
    ),
  ],
};
