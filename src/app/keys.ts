/**
 * Keys and wallets: the operator's, or generated ones that are stored in the data folder, readable by its owner only.
 * @module
 */

import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { readWallet, type Wallet } from "../arweave/wallet.ts";
import type { Config } from "../config/settings.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { type MakeRsaJwk, makeRsaJwk } from "../lib/rsa.ts";
import { badSettings } from "./complaints.ts";

const keyBytes = 32;

/**
 * Returns the key of that name, and creates it when there is none. Concurrent processes get the same one.
 *
 * @throws Error when the file is no key, or cannot be written.
 */
export function storedKey(folder: string, name: string): Uint8Array {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const stored = read(path);
  if (stored !== undefined) return stored;
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  writeDurably(draft, randomBytes(keyBytes).toString("hex"));
  try {
    // A link is made whole or not at all, and never over one that is there.
    linkSync(draft, path);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const made = read(path);
  if (made === undefined) throw new Error(`the key ${path} vanished while it was made`);
  return made;
}

function read(path: string): Uint8Array | undefined {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} is no key: remove it, and another one is made`);
    return Uint8Array.fromHex(text);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function writeDurably(path: string, text: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

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

/** The wallet that is stored in a folder, created with a new key when there is none. */
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

/** A key, and what of it may be printed: nothing of one that the operator knows already. */
export type AdminKey = Readonly<{ key: string; shown: Readonly<{ adminKey?: string }> }>;

/** The key in force. An unset or empty setting never opens a door. */
export function adminKeyOf(config: Config): AdminKey {
  if (config.ADMIN_API_KEY !== undefined) return { key: config.ADMIN_API_KEY, shown: {} };
  const key = randomBytes(32).toString("base64url");
  return { key, shown: { adminKey: key } };
}
