/**
 * Funded wallets for tests, as JSON Web Keys that any client of the chain loads.
 *
 * The keys of the ECDSA wallet and of the miner are derived from the seed. No library derives an RSA key from a seed,
 * so the first start generates one and stores it beside the chain.
 * @module
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../../arweave/id.ts";
import { ecdsaWallet, readWallet, type Wallet } from "../../arweave/wallet.ts";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import type { MakeRsaJwk } from "../../lib/rsa.ts";
import { secp256k1 } from "../../lib/secp256k1.ts";
import { replaceFile } from "../../store/durable-file.ts";

/** A funded wallet. Its private key is printed: it has no value outside this chain. */
export type TestWallet = Readonly<{
  name: string; // "rsa", "ecdsa", or the name of a given wallet
  type: "rsa" | "ecdsa";
  address: Address;
  jwk: JsonObject;
  file: string | undefined; // path of the key file
}>;

export type GivenWallet = Readonly<{ name: string; jwk: JsonObject }>;

/** The key that signs the blocks of every chain with this seed. */
export function minerWallet(seed: string): Wallet {
  return ecdsaWallet(derivePrivateKey(seed, "miner"));
}

/** Describes a given wallet. @throws Failure `malformed_input` for an invalid key. */
export function givenWallet({ name, jwk }: GivenWallet): TestWallet {
  const { type, address } = readWallet(jwk);
  return { name, type, address, jwk, file: undefined };
}

/**
 * Loads or creates the wallets of the chain: one RSA, one ECDSA.
 *
 * @param dir - The chain's folder, which exists; `undefined` stores no keys.
 * @param makeRsaKey - Called only without an RSA wallet.
 * @throws Failure `malformed_input` when the stored file is not a valid key.
 */
export async function ownWallets(dir: string | undefined, seed: string, makeRsaKey: MakeRsaJwk): Promise<TestWallet[]> {
  return [
    await storedWallet(dir, "rsa", makeRsaKey),
    await storedWallet(dir, "ecdsa", async () => ecdsaJwk(derivePrivateKey(seed, "wallet"))),
  ];
}

async function storedWallet(
  dir: string | undefined,
  name: string,
  make: () => Promise<JsonObject>,
): Promise<TestWallet> {
  if (dir === undefined) return givenWallet({ name, jwk: await make() });
  const file = join(dir, `wallet-${name}.json`);
  if (!existsSync(file)) replaceFile(file, JSON.stringify(await make()));
  const jwk = readJson(readFileSync(file, "utf8"));
  if (!isJsonObject(jwk))
    throw new Failure("malformed_input", { reason: "the wallet file is not a JSON Web Key", file });
  return { ...givenWallet({ name, jwk }), file };
}

/** SHA-256 misses the valid range of private keys with a probability of 2^-128. */
function derivePrivateKey(seed: string, purpose: string): Uint8Array {
  return createHash("sha256").update(`cairn devnet ${purpose}\n${seed}`).digest();
}

async function ecdsaJwk(privateKey: Uint8Array): Promise<JsonObject> {
  const point = secp256k1.publicKeyOf(privateKey);
  return {
    kty: "EC",
    crv: "secp256k1",
    x: encodeBase64url(point.subarray(1, 33)),
    y: encodeBase64url(point.subarray(33, 65)),
    d: encodeBase64url(privateKey),
  };
}
