/**
 * Reads a key file, of any chain whose keys sign data items, into a signer.
 *
 * Signatures are deterministic: the same content and tags always give the same id.
 * @module
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { misuse } from "../app/complaints.ts";
import { dataFolderAt } from "../app/data-folder.ts";
import { createArweaveSigner } from "../arweave/signers/arweave.ts";
import { createSolanaSigner } from "../arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../arweave/signers/ethereum.ts";
import type { Signer } from "../arweave/signers/scheme.ts";
import { Failure } from "../failures.ts";
import { decodeBase58 } from "../lib/base-encodings.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { equalBytes } from "../lib/bytes.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { readAddress, type UserAddress } from "../payment/addresses.ts";

/** The name of the wallet's token at services. */
export type WalletToken = "arweave" | "ethereum" | "solana";

export type SigningWallet = Readonly<{
  /** Path of the key file. */
  file: string;
  token: WalletToken;
  address: UserAddress;
  signer: Signer;
  /** Text of the file, to recognise copies of the key. */
  text: string;
}>;

/** Key files have a few kilobytes. Bytes. */
const walletBytesMax = 64 * 1_024;

const secretSize = 32;

/** A Solana key file holds the seed and the public key. */
const solanaPairSize = 64;

/** Base58 of 64 bytes takes at most this many characters. */
const solanaTextLengthMax = 88;

const shapes = "an RSA or secp256k1 JSON Web Key, an Ethereum key of 64 hexadecimal digits, or a Solana key pair";

/**
 * Reads the wallet of a command: the named file, or the first wallet of a development chain in the data folder.
 *
 * @throws Misuse when the file is missing or not a key.
 */
export function readSigningWallet(named: string | undefined, dataDir: string): SigningWallet {
  const file = named ?? devWalletFile(dataDir);
  if (file === undefined)
    throw misuse(
      `missing option --wallet <file>: there is no development chain in ${dataDir} whose wallet could be used`,
    );
  const text = readText(file);
  const found = walletOf(text);
  if (found === undefined) throw misuse(`${file} is not a valid wallet: expected ${shapes}`);
  const address = readAddress(found.signer.scheme.nativeAddress(found.signer.owner));
  if (address === undefined) throw misuse(`${file} has a key without an account address`);
  return { file, ...found, address: address.address, text };
}

/** The funded wallet of the development chain in a data folder, if there is one. */
export function devWalletFile(dataDir: string): string | undefined {
  const file = join(dataFolderAt(dataDir).devnet, "wallet-rsa.json");
  return existsSync(file) ? file : undefined;
}

/** The account address of a funded wallet of the development chain. */
export function accountOfKey(jwk: JsonObject): UserAddress | undefined {
  const signer = keyOf(jwk)?.signer;
  return signer === undefined ? undefined : readAddress(signer.scheme.nativeAddress(signer.owner))?.address;
}

/** Whether a text is the base58 of a Solana key pair. */
export function solanaKeyIn(text: string): boolean {
  const pair = base58Of(text);
  return pair?.length === solanaPairSize && solanaKey(pair) !== undefined;
}

type Key = Readonly<{ token: WalletToken; signer: Signer }>;

function readText(file: string): string {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw misuse(`${file} cannot be read`);
  if (size > walletBytesMax) throw misuse(`${file} has ${size} bytes, the maximum of a wallet is ${walletBytesMax}`);
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw misuse(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function walletOf(text: string): Key | undefined {
  const hex = /^\s*(?:0x)?([0-9a-f]{64})\s*$/i.exec(text)?.[1];
  if (hex !== undefined) return ethereumKey(Uint8Array.fromHex(hex));
  const value = readJson(text);
  if (isJsonObject(value)) return keyOf(value);
  const pair = isJsonArray(value) ? bytesOf(value) : base58Of(text.trim());
  return pair?.length === solanaPairSize ? solanaKey(pair) : undefined;
}

function keyOf(jwk: JsonObject): Key | undefined {
  if (jwk["kty"] !== "EC") return arweaveKey(jwk);
  const { crv, d } = jwk;
  const secret = crv === "secp256k1" && typeof d === "string" ? decodeBase64url(d) : undefined;
  return secret?.length === secretSize ? ethereumKey(secret) : undefined;
}

function arweaveKey(jwk: JsonObject): Key | undefined {
  try {
    const parts = Object.fromEntries(Object.entries(jwk).filter(([, part]) => typeof part === "string"));
    return { token: "arweave", signer: createArweaveSigner({ kty: "RSA", e: "AQAB", ...parts }, 0) };
  } catch (error) {
    // The caller reports the valid formats.
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** Nearly every number of 32 bytes is a key; the curve's code rejects the others. */
function ethereumKey(secret: Uint8Array): Key | undefined {
  try {
    return { token: "ethereum", signer: createEthereumSigner(secret) };
  } catch {
    // The caller reports the valid formats.
    return undefined;
  }
}

/** The second half of a key pair must be the public key of the first half. */
function solanaKey(pair: Uint8Array): Key | undefined {
  const signer = createSolanaSigner(pair.subarray(0, secretSize));
  return equalBytes(signer.owner, pair.subarray(secretSize)) ? { token: "solana", signer } : undefined;
}

function base58Of(text: string): Uint8Array | undefined {
  return text.length <= solanaTextLengthMax ? decodeBase58(text) : undefined;
}

function bytesOf(values: readonly JsonValue[]): Uint8Array | undefined {
  const areBytes = values.length === solanaPairSize && values.every(isByte);
  return areBytes ? Uint8Array.from(values, Number) : undefined;
}

function isByte(value: JsonValue): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;
}
