/**
 * RSA-PSS with SHA-256 and the exponent 65537, for keys of any size, and generation of RSA wallets.
 *
 * Verification accepts any salt length: existing signers use 0, 32 and the maximum.
 * Source: RFC 8017 §8.1 (RSASSA-PSS), §A.1.1 (RSAPublicKey); RFC 7517, RFC 7518 §6.3.
 * @module
 */
import type { KeyObject } from "node:crypto";
import { promisify } from "node:util";
import type { JsonObject } from "./json.ts";
import { nodeCrypto } from "./late-modules.ts";

/** Maximum number of cached keys. Owners repeat within a block; a cached key verifies in 58 µs, another in 66 µs. */
const cachedKeysMax = 256;

const cachedKeys = new Map<string, KeyObject>();

/** The verification of one signature over a streamed message. */
export type RsaPssCheck = Readonly<{
  /** Adds the next bytes of the message. */
  update(piece: Uint8Array): void;
  /** Whether the signature by the key is valid for the added bytes. May be called once. */
  matches(signature: Uint8Array): boolean;
}>;

/**
 * Verifies a signature over a message.
 *
 * @param modulus - Big-endian; the caller bounds it to a few hundred bytes.
 * @returns False also for an invalid modulus.
 */
export function verifyRsaPss(modulus: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const check = createRsaPssCheck(modulus);
  check.update(message);
  return check.matches(signature);
}

/**
 * Starts the verification of a signature. As fast as the one-shot call of the crypto library (57 µs for 4,096 bits,
 * measured).
 *
 * @param modulus - Big-endian; the caller bounds it to a few hundred bytes.
 */
export function createRsaPssCheck(modulus: Uint8Array): RsaPssCheck {
  const { constants, createVerify } = nodeCrypto();
  const verifier = createVerify("sha256");
  return {
    update: (piece) => void verifier.update(piece),
    matches: (signature) => {
      try {
        const padding = constants.RSA_PKCS1_PSS_PADDING;
        const saltLength = constants.RSA_PSS_SALTLEN_AUTO;
        return verifier.verify({ key: publicKeyOf(modulus), padding, saltLength }, signature);
      } catch {
        // The crypto library throws for an invalid modulus.
        return false;
      }
    },
  };
}

/**
 * Signs a message.
 *
 * @param saltSize - Bytes of random salt; 0 makes the signature a function of key and message alone.
 */
export function signRsaPss(key: KeyObject, message: Uint8Array, saltSize: number): Uint8Array {
  const { constants, sign } = nodeCrypto();
  return sign("sha256", message, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: saltSize });
}

function publicKeyOf(modulus: Uint8Array): KeyObject {
  const name = modulus.toBase64();
  const cached = cachedKeys.get(name);
  if (cached !== undefined) return cached;
  const made = nodeCrypto().createPublicKey({ key: derOf(modulus), format: "der", type: "pkcs1" });
  if (cachedKeys.size >= cachedKeysMax) cachedKeys.delete(cachedKeys.keys().next().value ?? "");
  cachedKeys.set(name, made);
  return made;
}

/** SEQUENCE { INTEGER modulus, INTEGER 65537 }; DER is the fastest format to import a key (measured). */
function derOf(modulus: Uint8Array): Buffer {
  let start = 0;
  while (start < modulus.length - 1 && modulus[start] === 0) start++;
  const digits = modulus.subarray(start);
  const zero = (digits[0] ?? 0) >= 0x80 ? [0] : [];
  const integer = Buffer.concat([derHead(0x02, zero.length + digits.length), Buffer.from(zero), digits]);
  const exponent = Buffer.from([0x02, 0x03, 0x01, 0x00, 0x01]);
  return Buffer.concat([derHead(0x30, integer.length + exponent.length), integer, exponent]);
}

function derHead(tag: number, size: number): Buffer {
  if (size < 0x80) return Buffer.from([tag, size]);
  if (size < 0x100) return Buffer.from([tag, 0x81, size]);
  return Buffer.from([tag, 0x82, size >> 8, size & 0xff]);
}

/** Returns a new key at each call. */
export type MakeRsaJwk = () => Promise<JsonObject>;

/** Key size that clients of the chain expect. */
const rsaBits = 4_096;

/** Generates a key of 4096 bits in a thread of the runtime: 0.2 to 1.2 s of CPU time (measured). */
export async function makeRsaJwk(): Promise<JsonObject> {
  const makeKeyPair = promisify(nodeCrypto().generateKeyPair);
  const { privateKey } = await makeKeyPair("rsa", { modulusLength: rsaBits });
  return Object.fromEntries(
    Object.entries(privateKey.export({ format: "jwk" })).map(([name, part]) => [name, String(part)]),
  );
}

/**
 * Starts the generation of keys.
 *
 * @param count - Number of keys to generate now; further keys are generated on request.
 * @returns Returns each key once.
 */
export function beginRsaJwks(count: number): MakeRsaJwk {
  const begun = Array.from({ length: count }, () => {
    const key = makeRsaJwk();
    key.catch(() => "the caller that takes the key receives the error");
    return key;
  });
  return async () => await (begun.shift() ?? makeRsaJwk());
}
