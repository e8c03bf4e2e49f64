/**
 * `cairn balance`: the credits of an account, its approvals, and the storage that they pay for. `cairn topup`: credits
 * by card; prints the payment page and waits for the credits.
 * @module
 */
import { exitCodes, misuse } from "../app/complaints.ts";
import { readWinc } from "../arweave/winston.ts";
import { Failure } from "../failures.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { invalidValue, jsonText, printable, printableLines } from "../lib/printable.ts";
import { bytesText, durationText, wincText } from "../lib/quantity-text.ts";
import { sleep } from "../lib/stop.ts";
import { readAddress, type TypedAddress } from "../payment/addresses.ts";
import { print } from "./print.ts";
import {
  objectIn,
  openServiceClient,
  printRetry,
  readServiceUrl,
  type ServiceClient,
  webUrl,
} from "./service-client.ts";
import { rowsText } from "./terminal.ts";
import { readSigningWallet } from "./wallet-file.ts";

/** The account: an address, or the address of a wallet. */
export type AccountOptions = Readonly<{
  address: string | undefined;
  wallet: string | undefined;
  /** Data folder of a development chain, whose wallet is used by default. */
  dataDir: string;
}>;

export type BalanceOptions = AccountOptions & Readonly<{ to: string; json: boolean }>;

const gibibyte = 2n ** 30n;

/** Prints the balance. @returns The exit code. */
export async function runBalance(options: BalanceOptions): Promise<number> {
  const { address } = accountMeant(options);
  const client = openServiceClient({ url: readServiceUrl(options.to), onRetry: printRetry });
  try {
    const signal = new AbortController().signal;
    const balance = await askBalance(client, address, signal);
    if (options.json) print(`${jsonText({ address, to: client.url, ...balance })}\n`);
    else print(page(address, balance, await priceOfGibibyte(client, signal), client.url));
    return exitCodes.done;
  } finally {
    client.close();
  }
}

/** The account to use. @throws Misuse for an invalid address, or an address together with a wallet. */
export function accountMeant({ address, wallet, dataDir }: AccountOptions): TypedAddress {
  if (address !== undefined && wallet !== undefined) throw misuse("an address and --wallet exclude each other");
  const text = address ?? readSigningWallet(wallet, dataDir).address;
  const read = readAddress(text);
  if (read === undefined) throw misuse(invalidValue("<address>", text, `a wallet address${checksumHint(text)}`));
  return read;
}

/** The case of an Ethereum address is its checksum: if only the case is wrong, a character is mistyped. */
function checksumHint(text: string): string {
  return readAddress(text.toLowerCase()) === undefined
    ? ""
    : ", with a valid checksum (the case of its characters is wrong)";
}

/** The balance of an account; an account that the service does not know has zero. */
export async function askBalance(client: ServiceClient, address: string, signal: AbortSignal): Promise<JsonObject> {
  const response = await client.get(`/v1/account/balance?address=${address}`, signal);
  if (response.status === 404 && response.value === "User Not Found") return nothing;
  const balance = objectIn(response, client.url);
  balanceIn(balance, "winc", client.url);
  return balance;
}

/** The balance of an account, winc. */
async function askWinc(client: ServiceClient, address: string, signal: AbortSignal): Promise<bigint> {
  return balanceIn(await askBalance(client, address, signal), "winc", client.url);
}

/** An amount that a response must have, winc. @throws Failure when it is absent or not an amount. */
export function amountIn(record: JsonObject, name: string, url: string): bigint {
  const text = record[name];
  const amount = typeof text === "string" ? readWinc(text) : undefined;
  if (amount === undefined)
    throw new Failure("source_failed", { reason: `${url} responded without an amount "${name}"` });
  return amount;
}

/** As `amountIn`; below 0 for a debt: a refund or a dispute takes spent credits back too. */
function balanceIn(record: JsonObject, name: string, url: string): bigint {
  const text = record[name];
  const isDebt = typeof text === "string" && text.startsWith("-");
  return isDebt ? -amountIn({ [name]: text.slice(1) }, name, url) : amountIn(record, name, url);
}

const nothing: JsonObject = {
  winc: "0",
  controlledWinc: "0",
  effectiveBalance: "0",
  givenApprovals: [],
  receivedApprovals: [],
};

/** The price of one GiB; `undefined` when it is free. */
async function priceOfGibibyte(client: ServiceClient, signal: AbortSignal): Promise<bigint | undefined> {
  const response = await client.get(`/v1/price/bytes/${gibibyte}`, signal);
  const price = amountIn(objectIn(response, client.url), "winc", client.url);
  return price === 0n ? undefined : price;
}

/** The lines of a balance. @param url - Of the service; one without approvals sends no `effectiveBalance`. */
function page(address: string, balance: JsonObject, price: bigint | undefined, url: string): string {
  const own = balanceIn(balance, "winc", url);
  const effective = balance["effectiveBalance"] === undefined ? own : balanceIn(balance, "effectiveBalance", url);
  const stored =
    price === undefined || effective <= 0n
      ? ""
      : `  (about ${bytesText(Number((effective * gibibyte) / price))} of storage)`;
  const rows: (readonly [string, string])[] = [
    ["account", address],
    ["balance", `${wincText(own)}${effective === own ? stored : ""}`],
    ...(effective === own ? [] : [["to spend", `${wincText(effective)}${stored}`] as const]),
    ...approvalRows("given", "approvedAddress", balance["givenApprovals"], url),
    ...approvalRows("received", "payingAddress", balance["receivedApprovals"], url),
  ];
  return rowsText(rows, 9);
}

function approvalRows(
  name: string,
  party: string,
  value: JsonValue | undefined,
  url: string,
): (readonly [string, string])[] {
  if (!isJsonArray(value)) return [];
  return value.filter(isJsonObject).map((approval) => {
    const left = amountIn(approval, "approvedWincAmount", url) - amountIn(approval, "usedWincAmount", url);
    const expires = approval["expirationDate"];
    const until = typeof expires === "string" ? ` until ${expires}` : "";
    return [name, `${wincText(left)} ${name === "given" ? "to" : "from"} ${String(approval[party])}${until}`] as const;
  });
}

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

/** Default of `--wait`: as long as a checkout page is open. Seconds. */
const waitSecondsDefault = 35 * 60;

/** Maximum length of the list of currencies in a message. Characters. */
const currenciesShownMax = 300;

/** Interval between requests for the status. Milliseconds. */
const pollMs = 1_000;

/** Opens a checkout, prints it, waits for the credits. @returns The exit code: 0 credited, 1 not in time. */
export async function runTopUp(options: TopUpOptions): Promise<number> {
  const { address, type } = accountMeant(options);
  const waitSeconds = readWait(options.wait);
  const client = openServiceClient({ url: readServiceUrl(options.to), onRetry: printRetry });
  const signal = new AbortController().signal;
  const tell = (record: Printed) => print(options.json ? `${jsonText(record)}\n` : printableLines(textOf(record)));
  try {
    const currency = options.currency.toLowerCase();
    const amount = await smallestUnits(client, options.amount, currency, signal);
    const before = await askWinc(client, address, signal);
    const path = `/v1/top-up/checkout-session/${address}/${currency}/${amount}?token=${type}`;
    const { quote, url } = checkoutIn(objectIn(await client.get(path, signal), client.url));
    const winc = amountIn(quote, "winstonCreditAmount", client.url).toString();
    tell({ state: "open", address, url, winc, amount: options.amount, currency });
    if (waitSeconds === 0) return exitCodes.done;
    const watched = { client, address, before, quoteId: String(quote["topUpQuoteId"]) };
    const ended = await endOf(watched, waitSeconds * 1_000, signal);
    if (ended.state !== "credited") {
      tell(ended.state === "open" ? { state: "late", waitSeconds } : { state: ended.state });
      return exitCodes.failed;
    }
    const balance = (await askWinc(client, address, signal)).toString();
    tell({ state: "credited", winc: ended.winc.toString(), balance });
    return exitCodes.done;
  } finally {
    client.close();
  }
}

/** The records that are printed, in order. */
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
      return "  expired   not paid in time; run it again for another page\n";
    case "failed":
      return "  failed    the payment failed\n";
    case "late":
      return `  no credits within ${durationText(printed.waitSeconds * 1_000)}; cairn balance will show them\n`;
  }
}

/** Converts the amount to the smallest unit of the currency; some currencies have no fraction. */
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
    const accepted = printable(Object.keys(known).join(", ")).slice(0, currenciesShownMax);
    throw misuse(invalidValue("<currency>", currency, `one of ${accepted === "" ? "none" : accepted} (${client.url})`));
  }
  const digits = limit["zeroDecimalCurrency"] === true ? 0 : 2;
  const units = readUnits(amount, digits);
  if (units === undefined) {
    const shape = digits === 0 ? "a whole number" : `a number with at most ${digits} digits after the point`;
    throw misuse(invalidValue("<amount>", amount, shape));
  }
  const [least, most] = ["minimumPaymentAmount", "maximumPaymentAmount"].map((name) => unitsIn(limit[name]));
  if ((least !== undefined && units < least) || (most !== undefined && units > most)) {
    const bounds = `${unitsText(least ?? 1n, digits)} to ${most === undefined ? "any" : unitsText(most, digits)}`;
    throw misuse(invalidValue("<amount>", amount, `${bounds} ${currency} (${client.url})`));
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
    throw new Failure("source_failed", { reason: "the service returned a checkout without a page" });
  return { quote: topUpQuote, url };
}

/** The pending quote, and the balance of the account before it. */
type Watched = Readonly<{ client: ServiceClient; address: string; before: bigint; quoteId: string }>;

/** The status of the quote. */
type QuoteStatus = Readonly<{ state: "open" | "expired" | "failed" }> | Readonly<{ state: "credited"; winc: bigint }>;

/** Polls until the quote is paid, expires or fails, or the time is over. */
async function endOf(watched: Watched, waitMs: number, signal: AbortSignal): Promise<QuoteStatus> {
  const until = performance.now() + waitMs;
  for (;;) {
    const status = await askStatus(watched, signal);
    if (status.state !== "open" || performance.now() > until) return status;
    await sleep(pollMs, signal);
  }
}

/** Requests the status of the quote; for a service without that route, compares the balance. */
async function askStatus({ client, address, before, quoteId }: Watched, signal: AbortSignal): Promise<QuoteStatus> {
  const response = await client.get(`/v1/top-up-quote/${quoteId}`, signal);
  if (response.status === 404) {
    const grown = (await askWinc(client, address, signal)) - before;
    return grown > 0n ? { state: "credited", winc: grown } : { state: "open" };
  }
  const record = objectIn(response, client.url);
  const { status } = record;
  if (status === "paid") return { state: "credited", winc: amountIn(record, "wincCredited", client.url) };
  return { state: status === "expired" || status === "failed" ? status : "open" };
}

function readWait(text: string | undefined): number {
  if (text === undefined) return waitSecondsDefault;
  if (!/^\d{1,6}$/.test(text)) throw misuse(invalidValue("--wait", text, "a whole number of seconds"));
  return Number(text);
}
