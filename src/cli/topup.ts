/**
 * `cairn topup`: credits by card. Prints the page to pay on, and waits until the credits are there.
 * @module
 */
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { sleep } from "../lib/stop.ts";
import { type AccountOptions, accountMeant, amountIn, askBalance } from "./balance.ts";
import { exitCodes, misuse } from "./complaints.ts";
import { durationText, wincText } from "./quantities.ts";
import { objectIn, openServiceClient, readServiceUrl, type ServiceClient } from "./service-client.ts";

/** The arguments as they were typed, and what stands where none was. */
export type TopUpOptions = AccountOptions &
  Readonly<{
    /** Whole units of the currency, with or without a fraction: `10` or `10.50`. */
    amount: string;
    currency: string;
    to: string;
    /** Seconds to wait for the credits; 0 does not wait. */
    wait: string | undefined;
    json: boolean;
  }>;

/** How long a payer is waited for unless told. Seconds: as long as a checkout page is open. */
const waitSecondsUsual = 30 * 60;

/** Between two looks at the balance. Milliseconds. */
const lookMs = 1_000;

/** Opens a checkout, prints it, waits for the credits. @returns The exit code: 0 credited, 1 not in time. */
export async function runTopUp(options: TopUpOptions): Promise<number> {
  const { address, type } = accountMeant(options);
  const waitSeconds = readWait(options.wait);
  const client = openServiceClient({ url: readServiceUrl(options.to) });
  const signal = new AbortController().signal;
  const print = (record: Printed) =>
    process.stdout.write(options.json ? `${JSON.stringify(record)}\n` : textOf(record));
  try {
    const currency = options.currency.toLowerCase();
    const amount = await smallestUnits(client, options.amount, currency, signal);
    const before = amountIn(await askBalance(client, address, signal), "winc");
    const path = `/v1/top-up/checkout-session/${address}/${currency}/${amount}?token=${type}`;
    const { quote, url } = checkoutIn(objectIn(await client.get(path, signal), client.url));
    const winc = amountIn(quote, "winstonCreditAmount").toString();
    print({ state: "open", address, url, winc, amount: options.amount, currency });
    if (waitSeconds === 0) return exitCodes.done;
    const balance = await balanceAfter(client, address, before, waitSeconds * 1_000, signal);
    print(
      balance === undefined
        ? { state: "late", waitSeconds }
        : { state: "credited", winc: balance.toString() },
    );
    return balance === undefined ? exitCodes.failed : exitCodes.done;
  } finally {
    client.close();
  }
}

/** What is printed, in turn. */
type Printed =
  | Readonly<{ state: "open"; address: string; url: string; winc: string; amount: string; currency: string }>
  | Readonly<{ state: "credited"; winc: string }>
  | Readonly<{ state: "late"; waitSeconds: number }>;

function textOf(printed: Printed): string {
  switch (printed.state) {
    case "open": {
      const { address, url, winc, amount, currency } = printed;
      const buys = `${amount} ${currency} buy ${wincText(BigInt(winc))} for ${address}`;
      return `  ${buys}\n  pay here  ${url}\n`;
    }
    case "credited":
      return `  credited  the balance is ${wincText(BigInt(printed.winc))} now\n`;
    case "late":
      return `  no credits within ${durationText(printed.waitSeconds * 1_000)}; cairn balance will show them\n`;
  }
}

/** What the service sells in, and in which units: the smallest one of some currencies is the whole one. */
async function smallestUnits(
  client: ServiceClient,
  amount: string,
  currency: string,
  signal: AbortSignal,
): Promise<bigint> {
  const { limits } = objectIn(await client.get("/v1/currencies", signal), client.url);
  const known = isJsonObject(limits) ? limits : {};
  const limit = known[currency];
  if (!isJsonObject(limit)) {
    const taken = Object.keys(known).join(", ");
    throw misuse(`"${currency}" is no currency that ${client.url} takes: ${taken === "" ? "none" : taken}`);
  }
  const digits = limit["zeroDecimalCurrency"] === true ? 0 : 2;
  const units = readUnits(amount, digits);
  if (units === undefined) {
    const shape = digits === 0 ? "a whole number" : `a number with at most ${digits} digits after the point`;
    throw misuse(`the amount of ${currency} must be ${shape}, got "${amount}"`);
  }
  return units;
}

/** An amount in its smallest units. @param digits - Digits after the point that it may have. */
export function readUnits(text: string, digits: number): bigint | undefined {
  const [, whole = "", fraction = ""] = /^(\d{1,12})(?:\.(\d{1,12}))?$/.exec(text) ?? [];
  if (whole === "" || fraction.length > digits) return undefined;
  const units = BigInt(whole + fraction.padEnd(digits, "0"));
  return units === 0n ? undefined : units;
}

function checkoutIn({
  topUpQuote,
  paymentSession,
}: JsonObject): Readonly<{ quote: JsonObject; url: string }> {
  const url = isJsonObject(paymentSession) ? paymentSession["url"] : undefined;
  const isPage = typeof url === "string" && URL.canParse(url);
  if (!isJsonObject(topUpQuote) || !isPage) throw new Error("the service opened a checkout without a page");
  return { quote: topUpQuote, url };
}

/** The balance when it is more than it was; `undefined` when it is not in time. */
async function balanceAfter(
  client: ServiceClient,
  address: string,
  before: bigint,
  waitMs: number,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  const until = performance.now() + waitMs;
  for (;;) {
    const now = amountIn(await askBalance(client, address, signal), "winc");
    if (now > before) return now;
    if (performance.now() > until) return undefined;
    await sleep(lookMs, signal);
  }
}

function readWait(text: string | undefined): number {
  if (text === undefined) return waitSecondsUsual;
  if (!/^\d{1,6}$/.test(text)) throw misuse(`--wait must be a number of seconds, got "${text}"`);
  return Number(text);
}
