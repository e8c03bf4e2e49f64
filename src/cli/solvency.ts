/**
 * `cairn solvency`: the signed root of all balances, proofs of inclusion, and their verification.
 *
 * `root` and `prove` read the ledger, also beside the program that uses it; `verify` needs only the proof.
 * @module
 */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { exitCodes, misuse } from "../app/complaints.ts";
import { dataFolderAt, existingDataFolder } from "../app/data-folder.ts";
import { storedKey } from "../app/keys.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import { invalidValue, jsonText } from "../lib/printable.ts";
import { countText } from "../lib/quantity-text.ts";
import { readAddress } from "../payment/addresses.ts";
import {
  proveInclusion,
  readBalances,
  rootRecord,
  rootTags,
  type SolvencyVerdict,
  settledMs,
  solvencyRoot,
  verifySolvency,
  writeRoot,
} from "../payment/operator/solvency.ts";
import { findRoot, publishedRoot } from "../payment/operator/solvency-roots.ts";
import { isSameNode } from "../payment/operator/solvency-tree.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { openLedger } from "../store/ledger/open-ledger.ts";
import { momentText, signedWincText } from "./operator-client.ts";
import { print } from "./print.ts";
import { objectIn, openServiceClient, printRetry } from "./service-client.ts";
import { type PageRow, rowsText } from "./terminal.ts";
import { signBytes } from "./upload/local-item.ts";
import { readSigningWallet } from "./wallet-file.ts";

export type SolvencyOptions = Readonly<{
  /** `root`, `prove` or `verify`. */
  action: string;
  /** `prove`: an address. `verify`: a file with a root or a proof. */
  subject: string | undefined;
  /** `prove`: the file of the root; undefined: the newest that the program published. */
  root: string | undefined;
  wallet: string | undefined;
  /** `root`: URL of the upload service that publishes it; undefined: it is only signed. */
  publishTo: string | undefined;
  output: string | undefined;
  /** `verify`: expected address of the signing wallet. */
  signer: string | undefined;
  json: boolean;
  /** Unix milliseconds. */
  now: number;
}>;

/** A file of a root or a proof. Bytes. */
const recordBytesMax = 2 ** 20;

const publishMsMax = 120_000;

/** Runs the action. @returns The exit code. @throws Misuse. */
export async function runSolvency(config: Config, options: SolvencyOptions): Promise<number> {
  switch (options.action) {
    case "root":
      return await makeRoot(config, options);
    case "prove":
      return await prove(config, options);
    case "verify":
      return verify(options);
    default:
      throw misuse(invalidValue("<action>", options.action, "root, prove or verify"));
  }
}

async function makeRoot(config: Config, options: SolvencyOptions): Promise<number> {
  const { signer } = readSigningWallet(options.wallet ?? config.WALLET_FILE, config.DATA_DIR);
  const at = options.now - settledMs;
  const balances = await withLedger(config, (ledger, secret) => readBalances(ledger, at, secret()));
  const root = solvencyRoot(balances);
  const item = signBytes(writeRoot(root), rootTags, signer);
  const record = rootRecord(root, item.id, item.bytes);
  if (options.publishTo !== undefined) await publish(options.publishTo, item.bytes);
  writeRecord(record, options.output);
  const done = options.publishTo === undefined ? "signed, not published" : `published at ${options.publishTo}`;
  const owed = `${signedWincText(root.root.winc)} to ${countText(root.accounts, "account")} at ${momentText(at)}`;
  process.stderr.write(`root ${item.id}: ${owed}; ${done}\n`);
  return exitCodes.done;
}

async function publish(url: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const client = openServiceClient({ url, onRetry: printRetry });
  try {
    const headers = { "content-type": "application/octet-stream" };
    objectIn(await client.post("/tx", bytes, headers, AbortSignal.timeout(publishMsMax)), url);
  } finally {
    client.close();
  }
}

async function prove(config: Config, { subject, root: file, output }: SolvencyOptions): Promise<number> {
  const address = subject === undefined ? undefined : readAddress(subject)?.address;
  if (address === undefined) throw misuse(invalidValue("<subject>", subject ?? "", "the address of an account"));
  const named = file === undefined ? undefined : readRecord(file);
  const { item, at, balances } = await withLedger(config, async (ledger, secret) => {
    const record = named ?? (await publishedRecord(ledger));
    const verdict = verifySolvency(record);
    if (verdict.fault !== undefined) throw misuse(`${file ?? "the published root"}: ${verdict.fault}`);
    const { id, at, root } = verdict.root;
    // A root that the program published has its own secret in the ledger.
    const stored = await ledger.read((tx) => findRoot(tx, id));
    const balances = await readBalances(ledger, at, stored?.secret ?? secret());
    if (!isSameNode(solvencyRoot(balances).root, root))
      throw failed(`the ledger of ${config.DATA_DIR} does not have this root: it is another ledger's`);
    return { item: String(record["item"]), at, balances };
  });
  const proof = proveInclusion(balances, address, item);
  if (proof === undefined) throw failed(`${address} had no credits at ${momentText(at)}`);
  writeRecord(proof, output);
  return exitCodes.done;
}

async function publishedRecord(ledger: LedgerDatabase): Promise<JsonObject> {
  const published = await ledger.read(publishedRoot);
  if (published === undefined)
    throw misuse("--root is missing: the file that 'cairn solvency root' wrote; the program has published no root");
  return { item: published.item };
}

function verify({ subject: file, signer, json }: SolvencyOptions): number {
  if (file === undefined) throw misuse("missing argument <subject>: the file of a proof or a root");
  const verdict = signedBy(verifySolvency(readRecord(file)), signer);
  if (verdict.fault !== undefined) {
    const { fault } = verdict;
    print(json ? `${jsonText({ valid: false, fault })}\n` : rowsText([["failed", fault]], 10));
    return exitCodes.failed;
  }
  const { root, included } = verdict;
  const { at, accounts, id } = root;
  const sum = root.root.winc;
  const proven = included && { account: included.account, balance: included.winc.toString() };
  const record = { valid: true, id, signer: root.signer, at, accounts, winc: sum.toString(), ...(proven ?? {}) };
  const rows: PageRow[] = [
    ["valid", included === undefined ? "the signature of the root" : "the signature of the root, and the proof"],
    ["root", `${id}, signed by ${root.signer}${signer === undefined ? " (not compared: --signer)" : ""}`],
    ["owed", `${signedWincText(sum)} to ${accounts} accounts at ${momentText(at)}`],
    ...(included === undefined
      ? []
      : [["included", `${signedWincText(included.winc)} of ${included.account}`] as const]),
  ];
  print(json ? `${jsonText(record)}\n` : rowsText(rows, 10));
  return exitCodes.done;
}

/** @param signer - The expected address; undefined: any. */
function signedBy(verdict: SolvencyVerdict, signer: string | undefined): SolvencyVerdict {
  if (verdict.fault !== undefined || signer === undefined || signer === verdict.root.signer) return verdict;
  return { fault: "the root is signed by another wallet" };
}

/** @param work - Also gets the secret of the data folder, which is created when it is first used. */
async function withLedger<Result>(
  config: Config,
  work: (ledger: LedgerDatabase, secret: () => Uint8Array) => Promise<Result>,
): Promise<Result> {
  const url = config.LEDGER_URL;
  const { ledger: path, keys } = (url === undefined ? existingDataFolder : dataFolderAt)(config.DATA_DIR);
  if (url === undefined && !existsSync(path)) throw misuse(`there is no ledger in ${config.DATA_DIR}`);
  const ledger = await openLedger({ url, path });
  try {
    return await work(ledger, () => storedKey(keys, "solvency-salts"));
  } finally {
    await ledger.close();
  }
}

function readRecord(file: string): JsonObject {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined || size > recordBytesMax) throw misuse(`${file} cannot be read, or is too large for a proof`);
  const value = readJson(readFileSync(file, "utf8"));
  if (!isJsonObject(value)) throw misuse(`${file} is not a proof: expected a JSON object`);
  return value;
}

function writeRecord(record: JsonObject, output: string | undefined): void {
  const text = `${jsonText(record)}\n`;
  if (output === undefined) {
    print(text);
    return;
  }
  try {
    writeFileSync(output, text);
  } catch (error) {
    throw new Failure("source_failed", { reason: `${output} cannot be written: ${String(error)}` }, error);
  }
}

function failed(reason: string): Failure {
  return new Failure("source_failed", { reason });
}
