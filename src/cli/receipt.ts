/**
 * `cairn receipt verify`: are receipts signed by the keys that they name, and is that the key that was expected?
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { type Address, addressOf, type Id, readAddress, readId } from "../arweave/id.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { isJsonArray, isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import { jsonText, printable } from "../lib/printable.ts";
import { countText } from "./quantities.ts";
import { receiptFault } from "./receipt-fault.ts";
import { rowsText } from "./rows.ts";
import { readStoredReceipt } from "./stored-receipts.ts";

/** The arguments as they were typed. */
export type ReceiptOptions = Readonly<{
  /** What to do; `verify` is all there is. */
  action: string;
  /** A file with a receipt, or with what an upload printed; `-` is standard input; or an item's id. */
  file: string;
  /** Address of the wallet that must have signed. */
  signer: string | undefined;
  json: boolean;
  /** Where receipts are kept. */
  stateFolder: string;
}>;

/** The file handle from which a pipe is read. */
const standardInput = 0;

/** Receipts have about two kilobytes, and an upload may have printed thousands. */
const receiptBytesMax = 256 * 2 ** 20;

/** One as it was found. */
type Found = Readonly<{
  receipt: JsonObject;
  /** Where there should be one and is none that can be read: why; of the receipt the id is known. */
  damage?: string;
}>;

/** What came of one. */
type Verified = Readonly<{ receipt: JsonObject; by: Address | undefined; fault: string | undefined }>;

/** Verifies, prints, and answers the exit code: 0 signed, all of them; 1 not. */
export function runReceipt(options: ReceiptOptions): number {
  const { action, signer, json } = options;
  if (action !== "verify") throw misuse(`${action} is no action of receipt; verify is`);
  const expected = readSigner(signer);
  const verified = readReceipts(options).map(({ receipt, damage }): Verified => {
    const fault = damage ?? receiptFault(receipt) ?? signerFault(receipt, expected);
    return { receipt, by: signerOf(receipt), fault };
  });
  process.stdout.write(json ? `${recordsText(verified)}\n` : page(verified, expected !== undefined));
  return verified.every(({ fault }) => fault === undefined) ? exitCodes.done : exitCodes.failed;
}

function recordsText(verified: readonly Verified[]): string {
  const [first, ...others] = verified.map(recordOf);
  return jsonText(others.length === 0 ? first : [first, ...others]);
}

function recordOf({ receipt, by, fault }: Verified) {
  const { id, timestamp, deadlineHeight } = receipt;
  const valid = fault === undefined;
  return { valid, id, signer: by, timestamp, deadlineHeight, ...(valid ? {} : { fault }) };
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

/** One receipt of a file, or those of all items that an upload has told of; or the one that is kept of an item. */
function readReceipts({ file, stateFolder }: ReceiptOptions): readonly Found[] {
  const id = existsSync(file) ? undefined : readId(file);
  return id === undefined ? readTold(file) : [readStored(stateFolder, id)];
}

function readStored(stateFolder: string, id: Id): Found {
  const stored = readStoredReceipt(stateFolder, id);
  if (stored === undefined) throw misuse(`no receipt of ${id} is kept in ${stateFolder}`);
  return stored.kind === "damaged" ? { receipt: { id }, damage: stored.fault } : { receipt: stored.receipt };
}

function readTold(file: string): readonly Found[] {
  const text = readText(file);
  if (text.length > receiptBytesMax) throw misuse(`${file} is larger than any receipt`);
  const value = readJson(text);
  if (!isJsonObject(value)) throw misuse(`${file} is no receipt: that is a JSON object`);
  const { items, manifest } = value;
  if (!isJsonArray(items)) return [{ receipt: value }];
  const told = [...items, ...(manifest === undefined ? [] : [manifest])].filter(isJsonObject);
  const receipts = told.flatMap(({ id = "", receipt, receiptFault: damage }): Found[] => {
    if (typeof damage === "string") return [{ receipt: { id }, damage }];
    return isJsonObject(receipt) ? [{ receipt }] : [];
  });
  if (receipts.length === 0) throw misuse(`${file} tells of items, but has no receipts of them`);
  return receipts;
}

function readText(file: string): string {
  try {
    return readFileSync(file === "-" ? standardInput : file, "utf8");
  } catch (error) {
    throw misuse(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function page(verified: readonly Verified[], isPinned: boolean): string {
  const [first] = verified;
  if (first !== undefined && verified.length === 1) return pageOfOne(first, isPinned);
  const faults = verified.flatMap(({ receipt, fault }) =>
    fault === undefined ? [] : [`  ${printable(String(receipt["id"]))}  ${printable(fault)}`],
  );
  const signers = new Set(verified.map(({ by }) => by));
  const by = `signed by  ${[...signers].join(", ")}${isPinned ? "" : unpinned}`;
  const count = `${verified.length - faults.length} of ${verified.length} receipts`;
  if (faults.length === 0) return `valid, ${countText(verified.length, "receipt")}\n  ${by}\n`;
  return `not valid: ${count} are good, and these are not\n${faults.join("\n")}\n`;
}

const unpinned = ", which the receipt itself names: give --signer to pin it";

function pageOfOne({ receipt, by, fault }: Verified, isPinned: boolean): string {
  if (fault !== undefined) return `not valid: ${printable(fault)}\n`;
  const { id, timestamp, deadlineHeight } = receipt;
  const rows: (readonly [string, string])[] = [
    ["item", String(id)],
    ["taken", new Date(Number(timestamp)).toISOString()],
    ["promised", `on the chain by height ${String(deadlineHeight)}`],
    ["signed by", `${by}${isPinned ? "" : unpinned}`],
  ];
  return `valid\n${rowsText(rows, 10)}`;
}
