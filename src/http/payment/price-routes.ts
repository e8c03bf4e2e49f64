/**
 * Prices over HTTP: of bytes, of credits, of tokens; rates, and what payments may be.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { isSigned, readSigner } from "../../payment/access/signed-request.ts";
import { readAddress, readToken, type UserAddress } from "../../payment/addresses.ts";
import { invalidAmountText } from "../../payment/amounts.ts";
import type { Buyer, Prices } from "../../payment/prices/price-types.ts";
import { contextOf } from "../context.ts";
import { jsonResponse, jsonTextResponse } from "../responses.ts";
import { priceParameters } from "./parameters.ts";
import { bytesPriceRecord, currenciesRecord, paymentPriceRecord, ratesText, rateText } from "./price-records.ts";
import type { PromoGuard } from "./promo-guard.ts";
import { noStore, signedRequestOf } from "./signer.ts";

/** What the routes ask. */
export type PriceRoutesOptions = Readonly<{
  prices: Prices;
  promoGuard: PromoGuard;
}>;

/** How long others may keep an answer: prices change with every question to the feed, limits by the hour. */
const ofMinutes = { "Cache-Control": "public, max-age=60" } as const;
const ofHours = { "Cache-Control": "public, max-age=3600" } as const;

/** The currency that the word stands for which is none. */
const fiatWord = "fiat";
const fiatCurrency = "usd";

/** Creates the routes. */
export function createPriceRoutes({ prices, promoGuard }: PriceRoutesOptions): AnyElysia {
  const ofBytes = async (text: string, request: Request): Promise<Response> => {
    const size = priceParameters.bytes.read(text);
    if (size === undefined) throw new Failure("invalid_byte_count", { text: text.slice(0, 100) });
    const price = await prices.bytes(size, request.signal);
    return jsonResponse(bytesPriceRecord(price), 200, ageOf(request));
  };

  const ofToken = async (word: string, text: string, request: Request): Promise<Response | undefined> => {
    const token = readToken(word);
    if (token === undefined) return undefined;
    const amount = priceParameters.amount.read(text);
    if (amount === undefined) throw new Failure("price_amount_invalid", { reason: invalidAmountText(text) });
    const price = await prices.token(token, amount, request.signal);
    return jsonResponse(paymentPriceRecord(price), 200, ageOf(request));
  };

  const ofFiat = async (word: string, text: string, request: Request): Promise<Response> => {
    const currency = word === fiatWord ? fiatCurrency : word.toLowerCase();
    const buyer = buyerOf(request);
    const ask = () => prices.fiat(currency, text, buyer, request.signal);
    const hasCodes = buyer !== nobody;
    const price = await (hasCodes ? promoGuard.guarded(request, ask) : ask());
    return jsonResponse(paymentPriceRecord(price), 200, hasCodes ? noStore : ageOf(request));
  };

  return new Elysia({ strictPath: true })
    .get("/price/bytes/:amount", ({ params, request }) => ofBytes(params.amount, request))
    .get("/price/:type", ({ params, request }) => ofBytes(params.type, request))
    .get(
      "/price/:type/:amount",
      async ({ params, request }) =>
        (await ofToken(params.type, params.amount, request)) ?? (await ofFiat(params.type, params.amount, request)),
    )
    .get("/rates", async ({ request }) =>
      jsonTextResponse(ratesText(await prices.rates(request.signal)), 200, ageOf(request)),
    )
    .get("/rates/:currency", async ({ params, request }) => {
      const currency = params.currency.toLowerCase();
      return jsonTextResponse(rateText(currency, await prices.rate(currency, request.signal)), 200, ageOf(request));
    })
    .get("/currencies", async ({ request }) =>
      jsonResponse(currenciesRecord(await prices.limits(request.signal)), 200, ofHours),
    );
}

/** Nobody but its caller may keep what a signed request is answered with. */
function ageOf(request: Request): Readonly<{ "Cache-Control": string }> {
  return isSigned(request.headers) ? noStore : ofMinutes;
}

/** A question without promo codes: then it is the same for everybody. */
const nobody: Buyer = {};

/** Who asks for promo codes. @throws Failure `invalid_signature`. */
function buyerOf(request: Request): Buyer {
  const { query } = contextOf(request).target;
  if (query === "") return nobody;
  const parameters = new URLSearchParams(query);
  const promoCodes = readPromoCodes(parameters);
  if (promoCodes.length === 0) return nobody;
  return { promoCodes, address: addressOf(parameters.get("destinationAddress"), request) };
}

/** The address that is named, which stands before the signer's; text that is no address is nobody's. */
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
