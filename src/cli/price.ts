/**
 * `cairn price`: the price of an upload of a number of bytes, a file or a folder.
 * @module
 */
import { existsSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { invalidValue, jsonText } from "../lib/printable.ts";
import { arText, bytesText, countText, readBytes, wincText } from "../lib/quantity-text.ts";
import { amountIn } from "./credit-commands.ts";
import { print } from "./print.ts";
import { objectIn, openServiceClient, printRetry, readServiceUrl, type ServiceClient } from "./service-client.ts";
import { rowsText } from "./terminal.ts";
import { listLocalFiles } from "./upload/local-files.ts";

export type PriceOptions = Readonly<{
  /** A size such as `10GiB`, or the path of a file or folder. */
  subject: string;
  to: string;
  json: boolean;
}>;

type Subject = Readonly<{ bytes: number; files: number }>;

/** Prints the price. @returns The exit code. @throws Misuse for a subject that is neither a size nor a path. */
export async function runPrice({ subject, to, json }: PriceOptions): Promise<number> {
  const { bytes, files } = readSubject(subject);
  const client = openServiceClient({ url: readServiceUrl(to), onRetry: printRetry });
  try {
    const signal = new AbortController().signal;
    const price = objectIn(await client.get(`/v1/price/bytes/${bytes}`, signal), client.url);
    const winc = amountIn(price, "winc", client.url);
    const fiat = fiatOf(await ratesOf(client, signal), winc);
    if (json) {
      print(`${jsonText({ bytes, files, to: client.url, winc: `${winc}`, fiat })}\n`);
      return exitCodes.done;
    }
    const rows: (readonly [string, string])[] = [
      ["size", `${bytesText(bytes)}${files > 1 ? ` in ${countText(files, "file")}` : ""}`],
      ["price", `${wincText(winc)}  (${arText(winc)} AR)`],
      ...Object.entries(fiat).map(([currency, amount]) => [currency, amount.toFixed(4)] as const),
    ];
    print(rowsText(rows, 5));
    return exitCodes.done;
  } finally {
    client.close();
  }
}

/** A path wins over a size of the same text only when it is written as one: `./10GiB`. */
function readSubject(subject: string): Subject {
  const bytes = readBytes(subject);
  if (bytes !== undefined) return { bytes, files: 1 };
  if (!existsSync(subject))
    throw misuse(invalidValue("<subject>", subject, "a size such as 10GiB, a file or a folder"));
  const { files } = listLocalFiles(subject, { hidden: true, outside: true, paths: [], isKey: () => false });
  return { bytes: files.reduce((sum, { size }) => sum + size, 0), files: files.length };
}

/** The rates of a service with a price feed; `undefined` for one without. */
async function ratesOf(client: ServiceClient, signal: AbortSignal): Promise<JsonObject | undefined> {
  const { status, value } = await client.get("/v1/rates", signal);
  return status === 200 && isJsonObject(value) ? value : undefined;
}

/** The price in each currency of the rates, which are of one GiB with fees. Whole units. */
function fiatOf(rates: JsonObject | undefined, winc: bigint): Readonly<Record<string, number>> {
  const fiat = rates?.["fiat"];
  // A number on the wire.
  const share = Number(winc) / Number(rates?.["winc"]);
  if (!isJsonObject(fiat) || !Number.isFinite(share)) return {};
  const amounts = Object.entries(fiat).flatMap(([currency, amount]) =>
    typeof amount === "number" ? [[currency, amount * share] as const] : [],
  );
  return Object.fromEntries(amounts);
}
