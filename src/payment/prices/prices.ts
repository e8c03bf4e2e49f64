/**
 * Prices of bytes, fiat payments and token payments, from the rules, the network, the feed and promo codes.
 * Source: docs/reference/payment.md#prices-of-storage.
 * @module
 */
import { winc } from "../../arweave/winston.ts";
import { Failure, rejected } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Token } from "../addresses.ts";
import { invalidAmountText, readAmount, safeMax } from "../amounts.ts";
import type { Promos } from "../top-ups/promo.ts";
import { decimalsOf, type FeeRule, feedIdOf, inForce, type PriceRules, type PromoRule } from "./price-rules.ts";
import type { FeedPair, NetworkPrice, PriceFeed } from "./price-sources.ts";
import {
  bytesPrice,
  fiatPrice,
  isEnoughFor,
  type Money,
  storagePrice,
  type TokenRate,
  tokenAmountFor,
  tokenPrice,
  tokenRate,
  wincOfUsdCent,
} from "./price-steps.ts";
import type { Buyer, CurrencyLimits, PaymentPrice, Prices } from "./price-types.ts";
import { divide, larger, multiply, nearest, one, type Rational, rational, writeDecimal } from "./rational.ts";

type PricingParts = FiatPricesParts & Readonly<{ network: Pick<NetworkPrice, "price"> }>;

/** The size of the rates. Bytes. */
const gibibyte = 2n ** 30n;

/** Decimal places of the rates: those of a winc. */
const wincPlaces = 12n;

/** Every pair that prices need from a feed: AR in every currency, the other tokens in dollars. */
export function feedPairsOf(rules: PriceRules): FeedPair[] {
  const native = feedIdOf(rules, "native");
  const coins = new Set([...rules.tokens.values()].map(({ feedId }) => feedId));
  coins.delete(native);
  return [
    ...[...rules.currencies.keys()].map((currency) => ({ coin: native, currency })),
    ...[...coins].map((coin) => ({ coin, currency: "usd" })),
  ];
}

export function createPrices(parts: PricingParts): Prices {
  const { rules, network, clock } = parts;
  const { money, ...fiatPrices } = createFiatPrices(parts);
  const bytes = async (size: bigint, signal: AbortSignal) => {
    const price = await network.price(signal);
    return bytesPrice(price, size, inForce(rules.uploads, BigInt(clock())));
  };
  return {
    bytes,
    ...fiatPrices,
    ...createTokenPrices(parts),
    rates: async (signal) => {
      const [{ winc, adjustments }, currencies] = await Promise.all([bytes(gibibyte, signal), money(signal)]);
      const fees = inForce(rules.fees, BigInt(clock())).filter(({ payments }) => payments.has("fiat"));
      const rows = [...currencies].map(([currency, each]) => {
        const cost = storagePrice(winc, each, fees);
        return [currency, writeDecimal(cost, wincPlaces)] as const;
      });
      return { winc, fiat: new Map(rows), adjustments };
    },
  };
}

// Prices of payments in tokens.
// Source: docs/reference/payment.md#prices-of-payments-in-tokens.

type TokenPricesParts = Readonly<{
  rules: PriceRules;
  feed: Pick<PriceFeed, "prices">;
  clock: Clock;
}>;

function createTokenPrices(parts: TokenPricesParts): Pick<Prices, "token" | "tokenFor"> {
  const { rules, feed, clock } = parts;
  const feesOf = (token: Token) => inForce(rules.fees, BigInt(clock())).filter(({ payments }) => payments.has(token));

  const rateOf = async (token: Token, fees: readonly FeeRule[], signal: AbortSignal): Promise<TokenRate> => {
    const exponent = decimalsOf(rules, token);
    if (exponent === undefined) throw new Failure("payment_rejected", { reason: unknownCurrencyText(token) });
    const needsFeed = token !== "native" || fees.some(({ operator }) => operator === "add");
    // The value of AR in AR does not depend on the feed.
    if (!needsFeed) return tokenRate(one, exponent, () => one);
    const coins = [feedIdOf(rules, token), feedIdOf(rules, "native")];
    const [own, ar] = await feed.prices(
      coins.map((coin) => ({ coin, currency: "usd" })),
      signal,
    );
    assert(own !== undefined && ar !== undefined, "the feed has every pair");
    return tokenRate(token === "native" ? one : divide(own, ar), exponent, () => wincOfUsdCent(ar));
  };

  return {
    token: async (token, amount, signal) => {
      const fees = feesOf(token);
      const price = tokenPrice(amount, await rateOf(token, fees, signal), fees);
      if (price === undefined) throw new Failure("price_amount_invalid", { reason: tooSmallText });
      return price;
    },
    tokenFor: async (token, wanted, signal) => {
      const fees = feesOf(token);
      return tokenAmountFor(winc(wanted), await rateOf(token, fees, signal), fees);
    },
  };
}

const tooSmallText = "Crypto payment amount is too small! Token value must convert to at least one winc";

type FiatPricesParts = Readonly<{
  rules: PriceRules;
  feed: Pick<PriceFeed, "prices">;
  promos: Pick<Promos, "find">;
  clock: Clock;
}>;

/** Prices in fiat money. */
type FiatPrices = Pick<Prices, "fiat" | "topUp" | "rate" | "limits"> &
  Readonly<{
    /** The current price of one AR in each currency. @throws Failure `fiat_oracle_unavailable`. */
    money: (signal: AbortSignal) => Promise<ReadonlyMap<string, Money>>;
  }>;

/** Decimal places of a feed's price: more than the feed has. */
const ratePlaces = 60n;

/** Characters of a client's text that a message echoes. */
const echoedMax = 64;

/** The failure code of the request; the two requests have different messages. */
type Asked = "price_amount_invalid" | "top_up_amount_invalid";

function createFiatPrices(parts: FiatPricesParts): FiatPrices {
  const { rules, feed } = parts;
  const native = feedIdOf(rules, "native");

  const money = async (signal: AbortSignal): Promise<ReadonlyMap<string, Money>> => {
    const currencies = [...rules.currencies];
    const pairs = currencies.map(([currency]) => ({ coin: native, currency }));
    const prices = await feed.prices([...pairs, { coin: native, currency: "usd" }], signal);
    const usd = prices.at(-1);
    assert(usd !== undefined, "the feed has every pair");
    const rows = currencies.map(([currency, { isZeroDecimal }], index) => {
      const here = prices[index] ?? usd;
      return [currency, { isZeroDecimal, rates: { here, usd } }] as const;
    });
    return new Map(rows);
  };

  const limits = async (signal: AbortSignal): Promise<ReadonlyMap<string, CurrencyLimits>> => {
    const usd = rules.currencies.get("usd");
    assert(usd !== undefined, "the dollar is always there");
    const rows = [...(await money(signal))].map(([currency, { rates }]) => {
      const own = rules.currencies.get(currency) ?? usd;
      return [currency, currencyLimits(own, usd, divide(rates.here, rates.usd))] as const;
    });
    return new Map(rows);
  };

  const priceOf = async (question: Question, buyer: Buyer, signal: AbortSignal): Promise<PaymentPrice> => {
    const pairs = [question.currency, "usd"].map((currency) => ({ coin: native, currency }));
    const [here, usd] = await feed.prices(pairs, signal);
    assert(here !== undefined && usd !== undefined, "the feed has every pair");
    const { isZeroDecimal } = question.own;
    return await fiatPriceFor(question.amount, { isZeroDecimal, rates: { here, usd } }, buyer, parts);
  };

  return {
    money,
    limits,
    fiat: async (currency, text, buyer, signal) =>
      await priceOf(readQuestion(rules, currency, text, buyer, "price_amount_invalid"), buyer, signal),
    topUp: async (currency, text, buyer, signal) => {
      const question = readQuestion(rules, currency, text, buyer, "top_up_amount_invalid");
      checkLimits(question, (await limits(signal)).get(currency) ?? question.own);
      const price = await priceOf(question, buyer, signal);
      const { stripeMinimum } = question.own;
      // The discounted amount must reach the card provider's minimum.
      if (price.actualPaymentAmount < stripeMinimum) throw tooSmall(currency, price.actualPaymentAmount, stripeMinimum);
      return price;
    },
    rate: async (currency, signal) => {
      if (!rules.currencies.has(currency)) throw new Failure("invalid_currency", { currency });
      const [price] = await feed.prices([{ coin: native, currency }], signal);
      assert(price !== undefined, "the feed has every pair");
      return writeDecimal(price, ratePlaces);
    },
  };
}

/** The specification's text for an unsupported currency or token. @param word - From the request. */
function unknownCurrencyText(word: string): string {
  return `The currency type '${word.slice(0, echoedMax)}' is currently not supported by this API!`;
}

/** A parsed request. */
type Question = Readonly<{ currency: string; own: CurrencyLimits; amount: bigint }>;

/** @throws Failure `payment_rejected`, `code`. */
function readQuestion(
  rules: PriceRules,
  currency: string,
  text: string,
  { promoCodes = [], address }: Buyer,
  code: Asked,
): Question {
  if (promoCodes.length > 0 && address === undefined) throw rejected(noAccountText);
  const own = rules.currencies.get(currency);
  if (own === undefined) throw rejected(unknownCurrencyText(currency));
  const amount = readAmount(text);
  if (amount === undefined || amount > safeMax) throw new Failure(code, { reason: invalidAmountText(text) });
  return { currency, own, amount };
}

/** The price for a buyer with promo codes. @throws Failure `payment_rejected`. */
async function fiatPriceFor(
  amount: bigint,
  money: Money,
  { promoCodes = [], address }: Buyer,
  { rules, promos, clock }: FiatPricesParts,
): Promise<PaymentPrice> {
  const codes: readonly PromoRule[] =
    promoCodes.length === 0 || address === undefined ? [] : await promos.find(address, promoCodes);
  const unmet = codes.find((rule) => !isEnoughFor(rule, amount, money));
  if (unmet !== undefined)
    throw rejected(`The promo code '${unmet.code}' can only used on payments above '${unmet.usdCentsMin}'`);
  const now = BigInt(clock());
  const fees = inForce(rules.fees, now).filter(({ payments }) => payments.has("fiat"));
  return fiatPrice(amount, money, [...inForce(rules.discounts, now), ...codes], fees);
}

const noAccountText = "Promo codes must be applied to a specific `destinationAddress` or to the request signer";

/** @throws Failure `top_up_amount_invalid`. */
function checkLimits({ currency, amount }: Question, { minimum, maximum }: CurrencyLimits): void {
  if (amount < minimum) throw tooSmall(currency, amount, minimum);
  if (amount <= maximum) return;
  const reason =
    `The provided payment amount (${amount}) is too large for the currency type "${currency}"; ` +
    `it must be below or equal to ${maximum}!`;
  throw new Failure("top_up_amount_invalid", { reason });
}

function tooSmall(currency: string, amount: bigint, minimum: bigint): Failure {
  const reason =
    `The provided payment amount (${amount}) is too small for the currency type "${currency}"; ` +
    `it must be above ${minimum}!`;
  return new Failure("top_up_amount_invalid", { reason });
}

// Limits of one payment in a currency at today's rates: the dollar's limits, converted to the currency and rounded,
// unless the rules' limits are about the same.
// Source: docs/reference/payment.md#limits-of-payments.

/** The card provider accepts at most eight digits; the maximum is the largest round amount. */
const providerDigitsMax = 8;
const providerMaximum = 99_000_000n;

/**
 * Limits of one currency.
 *
 * @param own - The rules' limits. @param usd - The rules' limits for the dollar.
 * @param perDollar - The price of one dollar in the currency, whole units.
 */
function currencyLimits(own: CurrencyLimits, usd: CurrencyLimits, perDollar: Rational): CurrencyLimits {
  const cent = rational(1n, own.isZeroDecimal ? 100n : 1n);
  // The lowest limit is one smallest unit, whatever its value.
  const ofUsdCents = (cents: bigint) => larger(nearest(multiply(multiply(rational(cents), cent), perDollar)), 1n);
  const minimum = preferred(own.minimum, roundUp(ofUsdCents(usd.minimum)));
  const maximum = preferred(own.maximum, roundDown(ofUsdCents(usd.maximum)), providerMaximum);
  const fit = own.suggested.every((amount) => amount >= minimum && amount <= maximum);
  const suggested = fit ? own.suggested : [minimum, 2n * minimum, 4n * minimum];
  return { ...own, minimum, maximum, suggested };
}

/** The rules' value while today's differs by at most a tenth; else today's, or the provider's bound. */
function preferred(own: bigint, today: bigint, bound?: bigint): bigint {
  const difference = today > own ? today - own : own - today;
  if (difference * 10n <= own) return own;
  return bound !== undefined && today.toString().length > providerDigitsMax ? bound : today;
}

/** To two digits, up. */
function roundUp(amount: bigint): bigint {
  const grid = gridOf(amount);
  return ((amount + grid - 1n) / grid) * grid;
}

/** To two digits, down. */
function roundDown(amount: bigint): bigint {
  const grid = gridOf(amount);
  return (amount / grid) * grid;
}

function gridOf(amount: bigint): bigint {
  const digits = BigInt(amount.toString().length);
  return digits > 2n ? 10n ** (digits - 2n) : 1n;
}
