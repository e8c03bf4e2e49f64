/**
 * The wallet that pays for bundles and signs receipts: the operator's, or under `dev` one that is made and kept.
 * @module
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readWallet, type Wallet } from "../arweave/wallet.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { type MakeRsaJwk, makeRsaJwk } from "../lib/rsa.ts";
import { badSettings } from "./complaints.ts";

/** A wallet and the file of its key. */
export type UploadWallet = Readonly<{ file: string; wallet: Wallet }>;

/**
 * Reads the wallet of a setting.
 *
 * @param name - The setting's name, for the complaint.
 * @throws Misuse when the file cannot be read or holds no RSA key.
 */
export function readUploadWallet(name: string, file: string): UploadWallet {
  try {
    const jwk = readJson(readFileSync(file, "utf8"));
    if (!isJsonObject(jwk)) throw new Error("it is no JSON Web Key");
    const wallet = readWallet(jwk);
    if (wallet.type !== "rsa") throw new Error("receipts and bundles are signed with RSA");
    return { file, wallet };
  } catch (error) {
    throw badSettings([`${name}: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** The wallet that is kept in a folder, made of a new key when there is none. */
export function storedUploadWallet(folder: string, makeKey: MakeRsaJwk): Promise<UploadWallet> {
  return storedWallet(folder, "upload-wallet.json", makeKey);
}

/**
 * The wallet that signs items for those who upload without a key, made when there is none. It is never the one that
 * pays: strangers choose what it signs, and nothing may belong to it.
 */
export function storedSigningWallet(folder: string): Promise<UploadWallet> {
  return storedWallet(folder, "signing-wallet.json", makeRsaJwk);
}

async function storedWallet(folder: string, name: string, makeKey: MakeRsaJwk): Promise<UploadWallet> {
  const file = join(folder, name);
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.part`, JSON.stringify(await makeKey()), { mode: 0o600, flush: true });
    renameSync(`${file}.part`, file);
  }
  return readUploadWallet("WALLET_FILE", file);
}
