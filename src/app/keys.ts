/**
 * Keys and wallets: the operator's, or generated ones that are stored in the data folder, readable by its owner only.
 * @module
 */
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readWallet, type Wallet } from "../arweave/wallet.ts";
import type { Config } from "../config/settings.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { type MakeRsaJwk, makeRsaJwk } from "../lib/rsa.ts";
import { replaceFile, syncFolder, writeSynced } from "../store/durable-file.ts";
import { badSettings } from "./complaints.ts";
import { systemRandomBytes } from "./random.ts";

const keyBytes = 32;

/**
 * Returns a stored key, and creates it if it is absent. Concurrent processes get the same key.
 *
 * @throws Error when the file is not a valid key, or cannot be written.
 */
export function storedKey(folder: string, name: string): Uint8Array {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const stored = read(path);
  if (stored !== undefined) return stored;
  const draft = `${path}.${systemRandomBytes(8).toHex()}`;
  writeSynced(draft, systemRandomBytes(keyBytes).toHex(), 0o600);
  try {
    // A link is atomic and never replaces a file.
    linkSync(draft, path);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(folder);
  const made = read(path);
  if (made === undefined) throw new Error(`the key ${path} disappeared while it was created`);
  return made;
}

function read(path: string): Uint8Array | undefined {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (!/^[0-9a-f]{64}$/.test(text))
      throw new Error(`${path} is not a valid key: remove it, and a new one is created`);
    return Uint8Array.fromHex(text);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

export type UploadWallet = Readonly<{ file: string; wallet: Wallet }>;

/** Reads the wallet of a setting. @throws Misuse when the file cannot be read or has no RSA key. */
export function readUploadWallet(name: string, file: string): UploadWallet {
  try {
    const jwk = readJson(readFileSync(file, "utf8"));
    if (!isJsonObject(jwk)) throw new Error("the file is not a JSON Web Key");
    const wallet = readWallet(jwk);
    if (wallet.type !== "rsa") throw new Error("receipts and bundles are signed with RSA");
    return { file, wallet };
  } catch (error) {
    throw badSettings([`${name}: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** Reads the wallet that is stored in a folder, or creates it with a new key. */
export function storedUploadWallet(folder: string, makeKey: MakeRsaJwk): Promise<UploadWallet> {
  return storedWallet(folder, "upload-wallet.json", makeKey);
}

/**
 * Reads or creates the wallet that signs items for clients without a key. Strangers choose the items, so this wallet
 * owns nothing and is never the wallet that pays.
 */
export function storedSigningWallet(folder: string): Promise<UploadWallet> {
  return storedWallet(folder, "signing-wallet.json", makeRsaJwk);
}

async function storedWallet(folder: string, name: string, makeKey: MakeRsaJwk): Promise<UploadWallet> {
  const file = join(folder, name);
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    replaceFile(file, JSON.stringify(await makeKey()));
  }
  return readUploadWallet("WALLET_FILE", file);
}

/** An admin key. Only a generated key is printed. */
export type AdminKey = Readonly<{ key: string; shown: Readonly<{ adminKey?: string }> }>;

const adminKeyFile = "admin-key";

/** The key of the settings, or the stored one of the data folder: without a key the admin API is not open. */
export function adminKeyOf(config: Config, folder: string): AdminKey {
  if (config.ADMIN_API_KEY !== undefined) return { key: config.ADMIN_API_KEY, shown: {} };
  const key = textOfAdminKey(folder);
  return { key, shown: { adminKey: key } };
}

/** The stored admin key, for commands on this machine; undefined if no gateway has made one in the folder. */
export function storedAdminKey(folder: string): string | undefined {
  return existsSync(join(folder, adminKeyFile)) ? textOfAdminKey(folder) : undefined;
}

function textOfAdminKey(folder: string): string {
  return storedKey(folder, adminKeyFile).toBase64({ alphabet: "base64url", omitPadding: true });
}
