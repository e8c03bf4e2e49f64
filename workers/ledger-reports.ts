/**
 * Thread entry: reports over the whole ledger, read over its own connection: statements, roots of solvency and proofs.
 *
 * A report reads every account. Each job opens the ledger and closes it, so that an idle thread holds nothing open.
 * @module
 */
import { readFileSync } from "node:fs";
import { createDataItem } from "../src/arweave/data-item.ts";
import { idOfSignature } from "../src/arweave/id.ts";
import { createArweaveSigner } from "../src/arweave/signers/arweave.ts";
import { encodeBase64url } from "../src/lib/base64url.ts";
import type { JsonObject } from "../src/lib/json.ts";
import { readAddress } from "../src/payment/addresses.ts";
import {
  proveInclusion,
  readBalances,
  rootTags,
  type SolvencyBalances,
  solvencyRoot,
  writeRoot,
} from "../src/payment/operator/solvency.ts";
import { publishedRoot } from "../src/payment/operator/solvency-roots.ts";
import { type Month, readStatement, writeStatement } from "../src/payment/operator/statement.ts";
import type { LedgerDatabase } from "../src/store/ledger/ledger-database.ts";
import { type LedgerPlace, openLedger } from "../src/store/ledger/open-ledger.ts";
import { giveWay } from "../src/threads/give-way.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

// A report takes seconds; the clients of all other requests wait for milliseconds.
giveWay();

type LedgerJob = Readonly<{ ledger: LedgerPlace }>;

/** A moment, Unix milliseconds, and the secret of the salts. */
type MomentJob = LedgerJob & Readonly<{ at: number; secret: Uint8Array }>;

/** The statement of a month as CSV. */
export async function statement({ ledger, month }: LedgerJob & Readonly<{ month: Month }>): Promise<string> {
  return writeStatement(month, await withLedger(ledger, ({ read }) => read((tx) => readStatement(tx, month))));
}

/** The root of a moment: the payload of its data item, unsigned. */
export async function rootAt({ ledger, at, secret }: MomentJob): Promise<string> {
  return writeRoot(solvencyRoot(await withLedger(ledger, (opened) => readBalances(opened, at, secret))));
}

/** Signs the root of a moment with the RSA key of a file. @returns The id and the bytes of its data item, base64url. */
export async function signRoot({
  keyFile,
  ...job
}: MomentJob & Readonly<{ keyFile: string }>): Promise<Readonly<{ id: string; item: string }>> {
  const signer = createArweaveSigner(JSON.parse(readFileSync(keyFile, "utf8")));
  const bytes = createDataItem({ data: await rootAt(job), tags: rootTags }, signer);
  const signature = bytes.subarray(typeSize, typeSize + signer.scheme.signatureSize);
  return { id: idOfSignature(signature), item: encodeBase64url(bytes) };
}

/** Of the signature type, before the signature. Bytes. */
const typeSize = 2;

/** The balances of the newest published root, for the next proof. A thread without jobs ends with them. */
let last: Readonly<{ id: string; balances: SolvencyBalances }> | undefined;

/** The proof of an account in the newest published root; or what is missing. */
export async function prove({
  ledger,
  account,
}: LedgerJob & Readonly<{ account: string }>): Promise<JsonObject | "no root" | "no credits"> {
  const address = readAddress(account)?.address;
  return await withLedger(ledger, async (opened) => {
    const root = await opened.read(publishedRoot);
    if (root === undefined) return "no root";
    const { id, at, secret, item } = root;
    if (last?.id !== id) last = { id, balances: await readBalances(opened, at, secret) };
    return (address && proveInclusion(last.balances, address, item)) ?? "no credits";
  });
}

async function withLedger<Result>(
  place: LedgerPlace,
  work: (ledger: LedgerDatabase) => Promise<Result>,
): Promise<Result> {
  const ledger = await openLedger(place);
  try {
    return await work(ledger);
  } finally {
    await ledger.close();
  }
}
