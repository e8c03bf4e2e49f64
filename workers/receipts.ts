/**
 * Thread entry: signs receipts, because a signature takes milliseconds.
 * @module
 */
import { readFileSync } from "node:fs";
import { type ReceiptTerms, receiptMessage } from "../src/arweave/receipt.ts";
import { readWallet, type Wallet } from "../src/arweave/wallet.ts";
import { Failure } from "../src/failures.ts";
import { encodeBase64url } from "../src/lib/base64url.ts";
import { isJsonObject, readJson } from "../src/lib/json.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** Receipts to sign with the key of a file. */
export type SignReceiptsJob = Readonly<{ keyFile: string; receipts: readonly ReceiptTerms[] }>;

const wallets = new Map<string, Wallet>();

/**
 * Signs receipts. @returns Signatures in their order, base64url.
 * @throws Failure `malformed_input` when the file holds no RSA key; Error when it cannot be read.
 */
export function signReceipts({ keyFile, receipts }: SignReceiptsJob): string[] {
  const wallet = walletOf(keyFile);
  return receipts.map((terms) => encodeBase64url(wallet.sign(receiptMessage(terms))));
}

function walletOf(file: string): Wallet {
  const known = wallets.get(file);
  if (known !== undefined) return known;
  const jwk = readJson(readFileSync(file, "utf8"));
  const wallet = isJsonObject(jwk) ? readWallet(jwk, 0) : undefined;
  if (wallet?.type !== "rsa") throw new Failure("malformed_input", { reason: "receipts are signed with RSA", file });
  wallets.set(file, wallet);
  return wallet;
}
