/**
 * A price feed that speaks CoinGecko's `/simple/price` and whose prices stand still: so that a development stack
 * works without a network, and gives the same price for the same thing every day.
 * Source: docs/reference/payment.md#price-feed.
 * @module
 */

/** Prices of coins by their names at the feed, of currencies by their codes; as the digits that are sent. */
export type FixedPrices = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Prices as they have been, but round. */
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

/** Paths that are served: with and without the prefix of the public feed. */
const paths = ["/simple/price", "/api/v3/simple/price"];

/** Names in one question. */
const namesMax = 250;

/** Creates the feed: responds to its own requests; undefined for all others. */
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

/** What is known of a coin in some currencies; as at the public feed, others are left out. */
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
