/**
 * `cairn balance`: the credits of an account, what it may spend of others, and how much can be stored for them.
 * @module
 */

import { exitCodes, misuse } from "../app/complaints.ts";
import { readWinc } from "../arweave/winston.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../lib/json.ts";
import { jsonText } from "../lib/printable.ts";
import { readAddress, type TypedAddress } from "../payment/addresses.ts";
import { bytesText, wincText } from "./quantities.ts";
import { rowsText } from "./rows.ts";
import {
  objectIn,
  openServiceClient,
  readServiceUrl,
  refusal,
  type ServiceClient,
  sayRetry,
} from "./service-client.ts";
import { readSigningWallet } from "./wallet-file.ts";

/** Whose account is meant: an address, or that of a wallet. */
export type AccountOptions = Readonly<{
  address: string | undefined;
  wallet: string | undefined;
  /** Where a development chain may lie, whose wallet is meant when neither is named. */
  dataDir: string;
}>;

/** The arguments as they were typed, and what stands where none was. */
export type BalanceOptions = AccountOptions & Readonly<{ to: string; json: boolean }>;

const gibibyte = 2n ** 30n;

/** Asks, prints, and answers the exit code. */
export async function runBalance(options: BalanceOptions): Promise<number> {
  const { address } = accountMeant(options);
  const client = openServiceClient({ url: readServiceUrl(options.to), onRetry: sayRetry });
  try {
    const signal = new AbortController().signal;
    const balance = await askBalance(client, address, signal);
    if (options.json) process.stdout.write(`${jsonText({ address, to: client.url, ...balance })}\n`);
    else process.stdout.write(page(address, balance, await priceOfGibibyte(client, signal)));
    return exitCodes.done;
  } finally {
    client.close();
  }
}

/**
 * The account that is meant.
 *
 * @throws Misuse when an address is none, or both an address and a wallet are named.
 */
export function accountMeant({ address, wallet, dataDir }: AccountOptions): TypedAddress {
  if (address !== undefined && wallet !== undefined) throw misuse("give an address or --wallet, not both");
  const text = address ?? readSigningWallet(wallet, dataDir).address;
  const read = readAddress(text);
  if (read === undefined) throw misuse(`"${text}" is no address of a wallet${checksumHint(text)}`);
  return read;
}

/** Capitals are the checksum of an Ethereum address: where only they do not fit, a character is mistyped. */
function checksumHint(text: string): string {
  return readAddress(text.toLowerCase()) === undefined ? "" : ": its capital letters do not fit the rest";
}

/** An account's balance as the service tells it; that of one that never had any is nothing. */
export async function askBalance(client: ServiceClient, address: string, signal: AbortSignal): Promise<JsonObject> {
  const response = await client.get(`/v1/account/balance?address=${address}`, signal);
  if (response.status === 404 && response.value === "User Not Found") return nothing;
  return objectIn(response, client.url);
}

/** An amount of a record, winc. */
export function amountIn(record: JsonObject, name: string): bigint {
  const text = record[name];
  return (typeof text === "string" ? readWinc(text) : undefined) ?? 0n;
}

const nothing: JsonObject = {
  winc: "0",
  controlledWinc: "0",
  effectiveBalance: "0",
  givenApprovals: [],
  receivedApprovals: [],
};

/** `undefined` where no price is known: a balance is worth telling without. */
async function priceOfGibibyte(client: ServiceClient, signal: AbortSignal): Promise<bigint | undefined> {
  const response = await client.get(`/v1/price/bytes/${gibibyte}`, signal);
  if (response.status !== 200) throw refusal(response, client.url);
  const price = isJsonObject(response.value) ? amountIn(response.value, "winc") : 0n;
  return price === 0n ? undefined : price;
}

function page(address: string, balance: JsonObject, price: bigint | undefined): string {
  const own = amountIn(balance, "winc");
  const effective = amountIn(balance, "effectiveBalance");
  const stored =
    price === undefined || effective === 0n
      ? ""
      : `  (about ${bytesText(Number((effective * gibibyte) / price))} of storage)`;
  const rows: (readonly [string, string])[] = [
    ["account", address],
    ["balance", `${wincText(own)}${effective === own ? stored : ""}`],
    ...(effective === own ? [] : [["to spend", `${wincText(effective)}${stored}`] as const]),
    ...approvalRows("given", "approvedAddress", balance["givenApprovals"]),
    ...approvalRows("received", "payingAddress", balance["receivedApprovals"]),
  ];
  return rowsText(rows, 9);
}

function approvalRows(name: string, party: string, value: JsonValue | undefined): (readonly [string, string])[] {
  if (!isJsonArray(value)) return [];
  return value.filter(isJsonObject).map((approval) => {
    const left = amountIn(approval, "approvedWincAmount") - amountIn(approval, "usedWincAmount");
    const expires = approval["expirationDate"];
    const until = typeof expires === "string" ? ` until ${expires}` : "";
    return [name, `${wincText(left)} ${name === "given" ? "to" : "from"} ${String(approval[party])}${until}`] as const;
  });
}
