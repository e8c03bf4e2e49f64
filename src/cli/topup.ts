/**
 * `cairn topup`: credits by card. Prints the page to pay on, and waits until the credits are there.
 * @module
 */

import { exitCodes, misuse } from "../app/complaints.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { jsonText, printable, printableLines } from "../lib/printable.ts";
import { sleep } from "../lib/stop.ts";
import { type AccountOptions, accountMeant, amountIn, askBalance } from "./balance.ts";
import { durationText, wincText } from "./quantities.ts";
import { objectIn, openServiceClient, readServiceUrl, type ServiceClient, sayRetry, webUrl } from "./service-client.ts";

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

/** Of the currencies that a service names, what is shown. Characters. */
const currenciesShownMax = 300;

/** Between two looks. Milliseconds. */
const lookMs = 1_000;

/** Opens a checkout, prints it, waits for the credits. @returns The exit code: 0 credited, 1 not in time. */
export async function runTopUp(options: TopUpOptions): Promise<number> {
  const { address, type } = accountMeant(options);
  const waitSeconds = readWait(options.wait);
  const client = openServiceClient({ url: readServiceUrl(options.to), onRetry: sayRetry });
  const signal = new AbortController().signal;
  const print = (record: Printed) =>
    process.stdout.write(options.json ? `${jsonText(record)}\n` : printableLines(textOf(record)));
  try {
    const currency = options.currency.toLowerCase();
    const amount = await smallestUnits(client, options.amount, currency, signal);
    const before = amountIn(await askBalance(client, address, signal), "winc");
    const path = `/v1/top-up/checkout-session/${address}/${currency}/${amount}?token=${type}`;
    const { quote, url } = checkoutIn(objectIn(await client.get(path, signal), client.url));
    const winc = amountIn(quote, "winstonCreditAmount").toString();
    print({ state: "open", address, url, winc, amount: options.amount, currency });
    if (waitSeconds === 0) return exitCodes.done;
    const watched = { client, address, before, quoteId: String(quote["topUpQuoteId"]) };
    const ended = await endOf(watched, waitSeconds * 1_000, signal);
    if (ended.state !== "credited") {
      print(ended.state === "open" ? { state: "late", waitSeconds } : { state: ended.state });
      return exitCodes.failed;
    }
    const balance = amountIn(await askBalance(client, address, signal), "winc").toString();
    print({ state: "credited", winc: ended.winc.toString(), balance });
    return exitCodes.done;
  } finally {
    client.close();
  }
}

/** What is printed, in turn. */
type Printed =
  | Readonly<{ state: "open"; address: string; url: string; winc: string; amount: string; currency: string }>
  | Readonly<{ state: "credited"; winc: string; balance: string }>
  | Readonly<{ state: "expired" | "failed" }>
  | Readonly<{ state: "late"; waitSeconds: number }>;

function textOf(printed: Printed): string {
  switch (printed.state) {
    case "open": {
      const { address, url, winc, amount, currency } = printed;
      const buys = `${amount} ${currency} buy ${wincText(BigInt(winc))} for ${address}`;
      return `  ${buys}\n  pay here  ${url}\n`;
    }
    case "credited": {
      const { winc, balance } = printed;
      return `  credited  ${wincText(BigInt(winc))}; the balance is ${wincText(BigInt(balance))} now\n`;
    }
    case "expired":
      return "  expired   nobody paid in time; run it again for another page\n";
    case "failed":
      return "  failed    the payment was given up\n";
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
    const taken = printable(Object.keys(known).join(", ")).slice(0, currenciesShownMax);
    throw misuse(`"${currency}" is no currency that ${client.url} takes: ${taken === "" ? "none" : taken}`);
  }
  const digits = limit["zeroDecimalCurrency"] === true ? 0 : 2;
  const units = readUnits(amount, digits);
  if (units === undefined) {
    const shape = digits === 0 ? "a whole number" : `a number with at most ${digits} digits after the point`;
    throw misuse(`the amount of ${currency} must be ${shape}, got "${amount}"`);
  }
  const [least, most] = ["minimumPaymentAmount", "maximumPaymentAmount"].map((name) => unitsIn(limit[name]));
  if ((least !== undefined && units < least) || (most !== undefined && units > most)) {
    const bounds = `${unitsText(least ?? 1n, digits)} to ${most === undefined ? "any" : unitsText(most, digits)}`;
    throw misuse(`${client.url} takes ${bounds} ${currency} at once, got ${amount}`);
  }
  return units;
}

function unitsIn(value: JsonValue | undefined): bigint | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function unitsText(units: bigint, digits: number): string {
  const text = units.toString().padStart(digits + 1, "0");
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** An amount in its smallest units. @param digits - Digits after the point that it may have. */
export function readUnits(text: string, digits: number): bigint | undefined {
  const [, whole = "", fraction = ""] = /^(\d{1,12})(?:\.(\d{1,12}))?$/.exec(text) ?? [];
  if (whole === "" || fraction.length > digits) return undefined;
  const units = BigInt(whole + fraction.padEnd(digits, "0"));
  return units === 0n ? undefined : units;
}

function checkoutIn({ topUpQuote, paymentSession }: JsonObject): Readonly<{ quote: JsonObject; url: string }> {
  const text = isJsonObject(paymentSession) ? paymentSession["url"] : undefined;
  const url = typeof text === "string" ? webUrl(text) : undefined;
  if (!isJsonObject(topUpQuote) || url === undefined)
    throw new Failure("source_failed", { reason: "the service opened a checkout without a page" });
  return { quote: topUpQuote, url };
}

/** The quote that is waited for, and what the account had before. */
type Watched = Readonly<{ client: ServiceClient; address: string; before: bigint; quoteId: string }>;

/** How it stands: `open` is when there was not time enough. */
type Standing = Readonly<{ state: "open" | "expired" | "failed" }> | Readonly<{ state: "credited"; winc: bigint }>;

/** Looks until the quote is paid, has ended without, or time is up. */
async function endOf(watched: Watched, waitMs: number, signal: AbortSignal): Promise<Standing> {
  const until = performance.now() + waitMs;
  for (;;) {
    const standing = await look(watched, signal);
    if (standing.state !== "open" || performance.now() > until) return standing;
    await sleep(lookMs, signal);
  }
}

/** Asks how the quote stands; of a service that does not say, whether the balance has grown. */
async function look({ client, address, before, quoteId }: Watched, signal: AbortSignal): Promise<Standing> {
  const response = await client.get(`/v1/top-up-quote/${quoteId}`, signal);
  if (response.status === 404) {
    const grown = amountIn(await askBalance(client, address, signal), "winc") - before;
    return grown > 0n ? { state: "credited", winc: grown } : { state: "open" };
  }
  const record = objectIn(response, client.url);
  const { status } = record;
  if (status === "paid") return { state: "credited", winc: amountIn(record, "wincCredited") };
  return { state: status === "expired" || status === "failed" ? status : "open" };
}

function readWait(text: string | undefined): number {
  if (text === undefined) return waitSecondsUsual;
  if (!/^\d{1,6}$/.test(text)) throw misuse(`--wait must be a number of seconds, got "${text}"`);
  return Number(text);
}
