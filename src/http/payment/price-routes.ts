/**
 * Prices over HTTP: of bytes, of payments, exchange rates, and limits of payments.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import { isSigned, readSigner } from "../../payment/access/signed-request.ts";
import { readAddress, readToken, type UserAddress } from "../../payment/addresses.ts";
import { amountText, byteCountText, invalidAmountText } from "../../payment/amounts.ts";
import type { Buyer, Prices } from "../../payment/prices/price-types.ts";
import { pathParameter } from "../parameter.ts";
import { failureResponses, inPath, inQuery, json, ref, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, jsonTextResponse, noStore } from "../responses.ts";
import { described, parsedText, plainText, type RouteDescription } from "../route-schema.ts";
import type { FailedAttemptGuard } from "./client-guards.ts";
import { signatureHeaders, signedRequestOf } from "./payment-common.ts";
import { bytesPriceRecord, currenciesRecord, paymentPriceRecord, ratesText, rateText } from "./payment-records.ts";

export type PriceRoutesOptions = Readonly<{
  prices: Prices;
  promoGuard: FailedAttemptGuard;
}>;

/** How long shared caches may store a response: rates change with the feed, limits by the hour. */
const cachedMinute = { "Cache-Control": "public, max-age=60" } as const;
const cachedHour = { "Cache-Control": "public, max-age=3600" } as const;

/** The currency of the word `fiat`. */
const fiatWord = "fiat";
const fiatCurrency = "usd";

const byteCount = parsedText(
  { description: "Bytes.", example: "1048576" },
  {
    schema: byteCountText.schema,
    parse: byteCountText.read,
    invalid: (text) => new Failure("invalid_byte_count", { text: text.slice(0, 100) }),
  },
);

/** Amount of a payment; the token decides how it is parsed, so the handler does. */
export const paymentAmount = pathParameter(
  "amount",
  amountText,
  "1000",
  "In the smallest unit; an exponent is allowed, as in `1e+21`.",
);

const tag = "Prices";
const feedFault = failureResponses("fiat_oracle_unavailable");

const ofBytes: RouteDescription = {
  tag,
  summary: "Price of an upload in bytes",
  responses: {
    200: json("The price.", ref("BytesPrice")),
    ...failureResponses("invalid_byte_count", "pricing_oracle_unavailable"),
  },
};

const ofPayment: RouteDescription = {
  tag,
  summary: "Credits that a payment buys",
  description: "Promo codes apply to the given destination address, or to the address that signed the request.",
  parameters: [
    inPath("type", textSchema, "usd", "A currency, `fiat` for US dollars, or a token."),
    paymentAmount,
    inQuery("promoCode", textSchema, "Promo codes, separated by commas; currencies only."),
    inQuery("destinationAddress", textSchema, "The account to credit; it takes precedence over the one that signed."),
    ...signatureHeaders,
  ],
  responses: {
    200: json("The credits.", ref("PaymentPrice")),
    ...failureResponses("price_amount_invalid", "payment_rejected", "invalid_signature", "too_many_requests"),
    ...feedFault,
  },
};

const ofRates: RouteDescription = {
  tag,
  summary: "Price of a gibibyte in every currency",
  responses: {
    200: json("The rates.", ref("Rates")),
    ...failureResponses("pricing_oracle_unavailable", "fiat_oracle_unavailable"),
  },
};

const ofRate: RouteDescription = {
  tag,
  summary: "Price of one native token, without fees",
  responses: { 200: json("The rate.", ref("Rate")), ...failureResponses("invalid_currency"), ...feedFault },
};

const ofCurrencies: RouteDescription = {
  tag,
  summary: "Currencies, and limits of payments in them",
  responses: { 200: json("The limits, at the present rates.", ref("Currencies")), ...feedFault },
};

export function createPriceRoutes({ prices, promoGuard }: PriceRoutesOptions): AnyElysia {
  const bytesPrice = async (size: bigint, request: Request): Promise<Response> =>
    jsonResponse(bytesPriceRecord(await prices.bytes(size, request.signal)), 200, cacheOf(request));

  const tokenPrice = async (word: string, text: string, request: Request): Promise<Response | undefined> => {
    const token = readToken(word);
    if (token === undefined) return undefined;
    const amount = amountText.read(text);
    if (amount === undefined) throw new Failure("price_amount_invalid", { reason: invalidAmountText(text) });
    const price = await prices.token(token, amount, request.signal);
    return jsonResponse(paymentPriceRecord(price), 200, cacheOf(request));
  };

  const fiatPrice = async (word: string, text: string, request: Request): Promise<Response> => {
    const currency = word === fiatWord ? fiatCurrency : word.toLowerCase();
    const buyer = buyerOf(request);
    const quote = () => prices.fiat(currency, text, buyer, request.signal);
    const hasCodes = buyer !== anyBuyer;
    const price = await (hasCodes ? promoGuard.guarded(request, quote) : quote());
    return jsonResponse(paymentPriceRecord(price), 200, hasCodes ? noStore : cacheOf(request));
  };

  return new Elysia({ strictPath: true })
    .get("/price/bytes/:amount", ({ params, request }) => bytesPrice(params.amount, request), {
      params: t.Object({ amount: byteCount }),
      detail: described(ofBytes),
    })
    .get("/price/:type", ({ params, request }) => bytesPrice(params.type, request), {
      params: t.Object({ type: byteCount }),
      detail: described(ofBytes),
    })
    .get(
      "/price/:type/:amount",
      async ({ params, request }) =>
        (await tokenPrice(params.type, params.amount, request)) ??
        (await fiatPrice(params.type, params.amount, request)),
      { detail: described(ofPayment) },
    )
    .get(
      "/rates",
      async ({ request }) => jsonTextResponse(ratesText(await prices.rates(request.signal)), 200, cacheOf(request)),
      { detail: described(ofRates) },
    )
    .get(
      "/rates/:currency",
      async ({ params, request }) => {
        const currency = params.currency.toLowerCase();
        const text = rateText(currency, await prices.rate(currency, request.signal));
        return jsonTextResponse(text, 200, cacheOf(request));
      },
      {
        params: t.Object({ currency: plainText({ description: "A currency.", example: "usd" }) }),
        detail: described(ofRate),
      },
    )
    .get(
      "/currencies",
      async ({ request }) => jsonResponse(currenciesRecord(await prices.limits(request.signal)), 200, cachedHour),
      { detail: described(ofCurrencies) },
    );
}

/** Only the client itself may store the response to a signed request. */
function cacheOf(request: Request): Readonly<{ "Cache-Control": string }> {
  return isSigned(request.headers) ? noStore : cachedMinute;
}

/** The buyer of a request without promo codes: the price is then the same for every buyer. */
const anyBuyer: Buyer = {};

/** The promo codes and the account of a request. @throws Failure `invalid_signature`. */
function buyerOf(request: Request): Buyer {
  const { query } = contextOf(request).target;
  if (query === "") return anyBuyer;
  const parameters = new URLSearchParams(query);
  const promoCodes = readPromoCodes(parameters);
  if (promoCodes.length === 0) return anyBuyer;
  return { promoCodes, address: addressOf(parameters.get("destinationAddress"), request) };
}

/** The given address takes precedence over the signer's address; undefined if it is invalid. */
function addressOf(named: string | null, request: Request): UserAddress | undefined {
  if (named !== null) return readAddress(named)?.address;
  return isSigned(request.headers) ? readSigner(signedRequestOf(request)).address : undefined;
}

/** Promo codes of a query, separated by commas, in order. */
export function readPromoCodes(parameters: URLSearchParams): readonly string[] {
  return parameters
    .getAll("promoCode")
    .flatMap((codes) => codes.split(","))
    .map((code) => code.trim())
    .filter((code) => code !== "");
}
