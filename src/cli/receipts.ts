/**
 * Receipts of uploads: verification (`cairn receipt verify`), and the copies that this user stores, one file each.
 * @module
 */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exitCodes, misuse } from "../app/complaints.ts";
import { type Address, addressOf, type Id, readAddress, readId } from "../arweave/id.ts";
import { type ReceiptTerms, receiptVersion, verifyReceipt } from "../arweave/receipt.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { invalidValue, jsonText, printable } from "../lib/printable.ts";
import { countText } from "../lib/quantity-text.ts";
import { print } from "./print.ts";
import { rowsText } from "./terminal.ts";

export type ReceiptOptions = Readonly<{
  /** Only `verify`. */
  action: string;
  /** A file with a receipt or with the output of `cairn upload --json`; `-` is standard input; or an item's id. */
  file: string;
  /** Expected address of the signing wallet. */
  signer: string | undefined;
  json: boolean;
  /** Folder of stored receipts. */
  stateFolder: string;
}>;

const standardInput = 0;

/** Receipts have about two kilobytes, and an upload may have printed thousands. */
const receiptBytesMax = 256 * 2 ** 20;

/** A receipt that was read. */
type Found = Readonly<{
  receipt: JsonObject;
  /** Why the stored receipt cannot be read; `receipt` then has only the id. */
  damage?: string;
}>;

/** A verified receipt. */
type Verified = Readonly<{ receipt: JsonObject; by: Address | undefined; fault: string | undefined }>;

/** Verifies receipts and prints the result. @returns The exit code: 0 when all are valid. */
export function runReceipt(options: ReceiptOptions): number {
  const { action, signer, json } = options;
  if (action !== "verify") throw misuse(invalidValue("<action>", action, "verify"));
  const expected = readSigner(signer);
  const verified = readReceipts(options).map(({ receipt, damage }): Verified => {
    const fault = damage ?? receiptFault(receipt) ?? signerFault(receipt, expected);
    return { receipt, by: signerOf(receipt), fault };
  });
  print(json ? `${recordsText(verified)}\n` : page(verified, expected !== undefined));
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

/** The address of the key in a receipt. */
function signerOf({ public: publicKey }: JsonObject): Address | undefined {
  const modulus = typeof publicKey === "string" ? decodeBase64url(publicKey) : undefined;
  return modulus === undefined ? undefined : addressOf(modulus);
}

function signerFault(receipt: JsonObject, expected: Address | undefined): string | undefined {
  return expected === undefined || signerOf(receipt) === expected ? undefined : "it is signed by another wallet";
}

function readSigner(text: string | undefined): Address | undefined {
  const signer = text === undefined ? undefined : readAddress(text);
  if (text !== undefined && signer === undefined)
    throw misuse(invalidValue("--signer", text, "an address of 43 base64url characters"));
  return signer;
}

/** The receipts of a file, or the stored receipt of an item. */
function readReceipts({ file, stateFolder }: ReceiptOptions): readonly Found[] {
  const id = existsSync(file) ? undefined : readId(file);
  return id === undefined ? readFile(file) : [readStored(stateFolder, id)];
}

function readStored(stateFolder: string, id: Id): Found {
  const stored = readStoredReceipt(stateFolder, id);
  if (stored === undefined) throw misuse(`no receipt of ${id} is stored in ${stateFolder}`);
  return stored.kind === "damaged" ? { receipt: { id }, damage: stored.fault } : { receipt: stored.receipt };
}

function readFile(file: string): readonly Found[] {
  const text = textOf(file);
  if (text.length > receiptBytesMax) throw misuse(`${file} is too large for a receipt`);
  const value = readJson(text);
  if (!isJsonObject(value)) throw misuse(`${file} is not a receipt: expected a JSON object`);
  const { items, manifest } = value;
  if (!isJsonArray(items)) return [{ receipt: value }];
  const entries = [...items, ...(manifest === undefined ? [] : [manifest])].filter(isJsonObject);
  const receipts = entries.flatMap(({ id = "", receipt, receiptFault: damage }): Found[] => {
    if (typeof damage === "string") return [{ receipt: { id }, damage }];
    return isJsonObject(receipt) ? [{ receipt }] : [];
  });
  if (receipts.length === 0) throw misuse(`${file} lists items without receipts`);
  return receipts;
}

function textOf(file: string): string {
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
  return `not valid: ${count} are valid; invalid are\n${faults.join("\n")}\n`;
}

const unpinned = ", according to the receipt itself; set --signer to verify the address";

function pageOfOne({ receipt, by, fault }: Verified, isPinned: boolean): string {
  if (fault !== undefined) return `not valid: ${printable(fault)}\n`;
  const { id, timestamp, deadlineHeight } = receipt;
  const rows: (readonly [string, string])[] = [
    ["item", String(id)],
    ["accepted", new Date(Number(timestamp)).toISOString()],
    ["promised", `on the chain by height ${String(deadlineHeight)}`],
    ["signed by", `${by}${isPinned ? "" : unpinned}`],
  ];
  return `valid\n${rowsText(rows, 10)}`;
}

/** Why a receipt is not valid, or `undefined`: checks its fields and the signature by the key in the receipt. */
export function receiptFault(receipt: JsonObject): string | undefined {
  const { version, public: publicKey, signature } = receipt;
  if (version === undefined) return "it is not a receipt: it has no version";
  if (version !== receiptVersion) return `its version is not ${receiptVersion}`;
  const terms = termsOf(receipt);
  if (terms === undefined) return "its id, timestamp or deadlineHeight is missing";
  if (typeof publicKey !== "string" || typeof signature !== "string") return "its key or signature is missing";
  return verifyReceipt(terms, publicKey, signature) ? undefined : "its signature does not match its key";
}

function termsOf({ id, timestamp, deadlineHeight }: JsonObject): ReceiptTerms | undefined {
  const known = typeof id === "string" ? readId(id) : undefined;
  if (known === undefined || !isWhole(timestamp) || !isWhole(deadlineHeight)) return undefined;
  return { id: known, timestamp, deadlineHeight };
}

/** The last millisecond of a Date. */
const wholeMax = 8_640_000_000_000_000;

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= wholeMax;
}

/** A stored receipt with the service that issued it, or the fault of its file. */
export type StoredReceipt =
  | Readonly<{ kind: "receipt"; receipt: JsonObject; from: JsonValue | undefined }>
  | Readonly<{ kind: "damaged"; fault: string }>;

export type StoredReceipts = Readonly<{
  folder: string;
  /** Stores a verified receipt. @param to - The service that issued it. */
  save: (receipt: JsonObject, to: string) => void;
  /** The last receipt that a service issued for an item; a damaged file is returned for any service. */
  find: (id: Id, to: string) => StoredReceipt | undefined;
}>;

function receiptFile(stateFolder: string, id: string): string {
  return join(stateFolder, "receipts", `${id}.json`);
}

/**
 * Creates the folder if needed: a folder that is not writable is reported before anything is paid for.
 *
 * @throws Misuse when the folder cannot be created or written.
 */
export function createStoredReceipts(stateFolder: string): StoredReceipts {
  const folder = join(stateFolder, "receipts");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw misuse(`receipts cannot be stored; set XDG_STATE_HOME to use another folder: ${why}`);
  }
  return {
    folder,
    save: (receipt, to) => {
      const file = receiptFile(stateFolder, String(receipt["id"]));
      // Another run may store the same receipt at this moment.
      const part = `${file}.${process.pid}`;
      writeFileSync(part, JSON.stringify({ ...receipt, to }));
      renameSync(part, file);
    },
    find: (id, to) => {
      const stored = readStoredReceipt(stateFolder, id);
      return stored?.kind === "receipt" && stored.from !== to ? undefined : stored;
    },
  };
}

/**
 * Reads the stored receipt of an item.
 *
 * @returns `undefined` when none is stored on this machine. The signature of a returned receipt is valid.
 */
export function readStoredReceipt(stateFolder: string, id: Id): StoredReceipt | undefined {
  const file = receiptFile(stateFolder, id);
  const damaged = (what: string) => ({ kind: "damaged", fault: `${file} ${what}` }) as const;
  let value: JsonValue | undefined;
  try {
    value = readJson(readFileSync(file, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    return damaged(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isJsonObject(value)) return damaged("is not a receipt any more: expected a JSON object");
  const { to: from, ...receipt } = value;
  const fault = receiptFault(receipt) ?? (receipt["id"] === id ? undefined : "it is for another item");
  return fault === undefined ? { kind: "receipt", receipt, from } : damaged(`is not valid: ${fault}`);
}
