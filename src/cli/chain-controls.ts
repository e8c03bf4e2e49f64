/**
 * `cairn mine` and `cairn mint`: controls of the development chain of a running `cairn dev`.
 * @module
 */
import { exitCodes, misuse } from "../app/complaints.ts";
import { readAddress } from "../arweave/id.ts";
import { winstonPerAr } from "../arweave/winston.ts";
import { Failure } from "../failures.ts";
import { isJsonObject } from "../lib/json.ts";
import { invalidValue } from "../lib/printable.ts";
import { arText, countText } from "../lib/quantity-text.ts";
import { print } from "./print.ts";
import { failedResponse, openServiceClient, readServiceUrl, type ServiceResponse } from "./service-client.ts";

/** URL of the chain's node. */
type At = Readonly<{ node: string }>;

/** Mining is not repeated after a failure: it may have happened. */
const plan = { attempts: 1, firstMs: 0, longestMs: 0 } as const;

/** Mines blocks, and prints the new height. @returns The exit code. @throws Misuse. */
export async function runMine({ node, count = "1" }: At & Readonly<{ count: string | undefined }>): Promise<number> {
  if (!/^[1-9]\d{0,8}$/.test(count))
    throw misuse(invalidValue("<count>", count, "a whole number of blocks, 1 or more"));
  const { value } = await control(node, `/mine/${count}`);
  const height = isJsonObject(value) ? value["height"] : undefined;
  if (typeof height !== "number") throw foreignResponse(node);
  print(`${countText(Number(count), "block")} mined, height ${height}\n`);
  return exitCodes.done;
}

/** Gives new AR to an address, and prints its balance. @returns The exit code. @throws Misuse. */
export async function runMint(options: At & Readonly<{ address: string; amount: string }>): Promise<number> {
  const address = readAddress(options.address);
  if (address === undefined)
    throw misuse(invalidValue("<address>", options.address, "an address of 43 base64url characters"));
  const { text } = await control(options.node, `/mint/${address}/${readAmount(options.amount)}`);
  if (!/^\d{1,40}$/.test(text)) throw foreignResponse(options.node);
  const balance = BigInt(text);
  print(`${address} has ${arText(balance)} AR (${balance} winston)\n`);
  return exitCodes.done;
}

/** Winston as digits, or AR with up to 12 digits after the point, such as `1.5AR`. @throws Misuse. */
function readAmount(text: string): bigint {
  const [, whole, fraction = "", unit] = /^(\d{1,18})(?:\.(\d{1,12}))?(AR)?$/.exec(text) ?? [];
  if (whole === undefined || (unit === undefined && fraction !== "") || /^[0.]+(AR)?$/.test(text))
    throw misuse(invalidValue("<amount>", text, "winston such as 1000000, or AR such as 1.5AR"));
  return unit === undefined ? BigInt(whole) : BigInt(whole) * winstonPerAr + BigInt(fraction.padEnd(12, "0"));
}

/** For a 200 response of something else than `cairn dev`. */
function foreignResponse(node: string): Failure {
  return new Failure("source_failed", { reason: `${node} did not respond as a development chain does` });
}

async function control(node: string, path: string): Promise<ServiceResponse> {
  const client = openServiceClient({ url: readServiceUrl(node, "--node"), plan });
  try {
    const response = await client.post(path, new Uint8Array(0), {}, AbortSignal.timeout(600_000));
    if (response.status !== 200) throw failedResponse(response, client.url);
    return response;
  } finally {
    client.close();
  }
}
