/**
 * A price feed with CoinGecko's `/simple/price` and constant prices, so that a development stack works offline with
 * stable prices.
 * Source: docs/reference/payment.md#price-feed.
 * @module
 */

/** Prices by coin name and currency code, as the text that is sent. */
export type FixedPrices = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Past prices, rounded. */
export const sandboxPrices: FixedPrices = {
  arweave: {
    aud: "10.5",
    brl: "38.5",
    cad: "9.8",
    eur: "6.3",
    gbp: "5.25",
    hkd: "54.6",
    inr: "588",
    jpy: "1050",
    sgd: "9.1",
    usd: "7",
  },
  ethereum: { usd: "2800" },
  "l2-standard-bridged-weth-base": { usd: "2800" },
  "matic-network": { usd: "0.35" },
  "polygon-ecosystem-token": { usd: "0.35" },
  solana: { usd: "140" },
  "kyve-network": { usd: "0.014" },
  "ar-io-network": { usd: "0.0105" },
  "usd-coin": { usd: "1" },
};

/** The served paths: with and without the prefix of the public feed. */
const paths = ["/simple/price", "/api/v3/simple/price"];

/** Maximum number of names in a request. */
const namesMax = 250;

/** Creates the feed. It returns `undefined` for requests that are not for the feed. */
export function createSandboxPriceFeed(
  prices: FixedPrices = sandboxPrices,
): (request: Request) => Response | undefined {
  return (request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (!paths.includes(pathname)) return undefined;
    if (request.method !== "GET") return Response.json({ error: "method not allowed" }, { status: 405 });
    const [coins, currencies] = [namesIn(searchParams, "ids"), namesIn(searchParams, "vs_currencies")];
    if (coins.length === 0) return invalidParameter("Missing parameter ids");
    if (currencies.length === 0) return invalidParameter("Missing parameter vs_currencies");
    const known = coins.filter((coin) => Object.hasOwn(prices, coin));
    const records = known.map((coin) => `${JSON.stringify(coin)}:${recordOf(prices[coin] ?? {}, currencies)}`);
    return new Response(`{${records.join(",")}}`, {
      headers: { "Content-Type": "application/json; charset=utf-8" },
    });
  };
}

/** The prices of a coin in some currencies; unknown currencies are omitted, as by the public feed. */
function recordOf(prices: Readonly<Record<string, string>>, currencies: readonly string[]): string {
  const known = currencies.filter((currency) => Object.hasOwn(prices, currency));
  return `{${known.map((currency) => `${JSON.stringify(currency)}:${prices[currency]}`).join(",")}}`;
}

function namesIn(parameters: URLSearchParams, key: string): string[] {
  const names = (parameters.get(key) ?? "").split(",", namesMax).map((name) => name.trim().toLowerCase());
  return [...new Set(names)].filter((name) => name !== "");
}

function invalidParameter(error: string): Response {
  return Response.json({ error }, { status: 422 });
}
