/**
 * `cairn receipt verify`: is this receipt signed by the key that it names, and is that the key that was expected?
 * @module
 */
import { readFileSync } from "node:fs";
import { type Address, addressOf, readAddress, readId } from "../arweave/id.ts";
import { type ReceiptTerms, receiptVersion, verifyReceipt } from "../arweave/receipt.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import { exitCodes, misuse } from "./complaints.ts";

/** The arguments as they were typed. */
export type ReceiptOptions = Readonly<{
  /** What to do; `verify` is all there is. */
  action: string;
  /** A file with the receipt's JSON; `-` is standard input. */
  file: string;
  /** Address of the wallet that must have signed. */
  signer: string | undefined;
  json: boolean;
}>;

/** The file handle from which a pipe is read. */
const standardInput = 0;

/** Receipts have about two kilobytes. */
const receiptBytesMax = 256 * 1_024;

/** Verifies, prints, and answers the exit code: 0 signed, 1 not. */
export function runReceipt(options: ReceiptOptions): number {
  const { action, file, signer, json } = options;
  if (action !== "verify") throw misuse(`${action} is no action of receipt; verify is`);
  const expected = readSigner(signer);
  const receipt = readReceiptFile(file);
  const fault = receiptFault(receipt) ?? signerFault(receipt, expected);
  const { id, deadlineHeight, timestamp } = receipt;
  const by = signerOf(receipt);
  const record = {
    valid: fault === undefined,
    id,
    signer: by,
    timestamp,
    deadlineHeight,
    ...(fault === undefined ? {} : { fault }),
  };
  process.stdout.write(
    json ? `${JSON.stringify(record)}\n` : page(receipt, by, fault, expected !== undefined),
  );
  return fault === undefined ? exitCodes.done : exitCodes.failed;
}

/** Why a receipt is not good, or `undefined`: its fields, and the signature over them by the key that it names. */
export function receiptFault(receipt: JsonObject): string | undefined {
  const { version, public: publicKey, signature } = receipt;
  if (version !== receiptVersion) return `its version is not ${receiptVersion}`;
  const terms = termsOf(receipt);
  if (terms === undefined) return "its id, timestamp or deadlineHeight is missing";
  if (typeof publicKey !== "string" || typeof signature !== "string")
    return "its key or signature is missing";
  return verifyReceipt(terms, publicKey, signature) ? undefined : "its signature is not that of its key";
}

function termsOf({ id, timestamp, deadlineHeight }: JsonObject): ReceiptTerms | undefined {
  const known = typeof id === "string" ? readId(id) : undefined;
  if (known === undefined || !isWhole(timestamp) || !isWhole(deadlineHeight)) return undefined;
  return { id: known, timestamp, deadlineHeight };
}

/** Also the last millisecond that a date can have. */
const wholeMax = 8_640_000_000_000_000;

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= wholeMax;
}

/** The address of the key that a receipt names. */
function signerOf({ public: publicKey }: JsonObject): Address | undefined {
  const modulus = typeof publicKey === "string" ? decodeBase64url(publicKey) : undefined;
  return modulus === undefined ? undefined : addressOf(modulus);
}

function signerFault(receipt: JsonObject, expected: Address | undefined): string | undefined {
  return expected === undefined || signerOf(receipt) === expected ? undefined : "another wallet signed it";
}

function readSigner(text: string | undefined): Address | undefined {
  const signer = text === undefined ? undefined : readAddress(text);
  if (text !== undefined && signer === undefined)
    throw misuse(`"${text}" is no address: those have 43 characters of base64url`);
  return signer;
}

function readReceiptFile(file: string): JsonObject {
  const text = readText(file);
  if (text.length > receiptBytesMax) throw misuse(`${file} is larger than any receipt`);
  const value = readJson(text);
  if (!isJsonObject(value)) throw misuse(`${file} is no receipt: that is a JSON object`);
  return value;
}

function readText(file: string): string {
  try {
    return readFileSync(file === "-" ? standardInput : file, "utf8");
  } catch (error) {
    throw misuse(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function page(
  receipt: JsonObject,
  by: string | undefined,
  fault: string | undefined,
  isPinned: boolean,
): string {
  if (fault !== undefined) return `not valid: ${fault}\n`;
  const { id, timestamp, deadlineHeight } = receipt;
  const rows: (readonly [string, string])[] = [
    ["item", String(id)],
    ["taken", new Date(Number(timestamp)).toISOString()],
    ["promised", `on the chain by height ${String(deadlineHeight)}`],
    ["signed by", `${by}${isPinned ? "" : ", which the receipt itself names: give --signer to pin it"}`],
  ];
  return `valid\n${rows.map(([name, text]) => `  ${name.padEnd(10)} ${text}`).join("\n")}\n`;
}
