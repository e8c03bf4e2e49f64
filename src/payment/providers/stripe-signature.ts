/**
 * Stripe's signatures: whether a webhook's body is what Stripe signed, and recently.
 *
 * The signature covers the body's bytes as they came, so it is checked before the body is read.
 * Source: Stripe's "Verify webhook signatures manually": HMAC-SHA-256 of `{t}.{body}`, hex, in `t=…,v1=…`.
 * @module
 */
import { timingSafeEqual } from "node:crypto";

/** How far a signature's time may lie from ours, either way. Seconds. */
export const toleranceSeconds = 300;

/** Signatures in one header: one for each secret in use while secrets are exchanged. */
const signaturesMax = 16;

const signatureSize = 32;

/** Longer headers carry no signature of Stripe's. Characters. */
const headerLengthMax = 2_048;

/**
 * Checks a webhook.
 *
 * @param body - The bytes as they came.
 * @param header - The `Stripe-Signature` header.
 * @param now - Unix ms.
 */
export function isSignedByStripe(body: Uint8Array, header: string | null, secret: string, now: number): boolean {
  const signed = header === null ? undefined : readHeader(header);
  if (signed === undefined || secret === "") return false;
  const age = BigInt(now) / 1_000n - signed.time;
  if (age > BigInt(toleranceSeconds) || age < -BigInt(toleranceSeconds)) return false;
  const expected = new Bun.CryptoHasher("sha256", secret).update(`${signed.time}.`).update(body).digest();
  return signed.signatures.some((signature) => timingSafeEqual(signature, expected));
}

function readHeader(header: string): Readonly<{ time: bigint; signatures: Uint8Array[] }> | undefined {
  if (header.length > headerLengthMax) return undefined;
  const parts = header.split(",").map((part) => part.trim().split("=", 2));
  const time = parts.find(([name]) => name === "t")?.[1] ?? "";
  const signatures = parts
    .filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value ?? ""))
    .slice(0, signaturesMax)
    .map(([, value]) => Uint8Array.fromHex(value ?? ""))
    .filter(({ length }) => length === signatureSize);
  return /^\d{1,15}$/.test(time) && signatures.length > 0 ? { time: BigInt(time), signatures } : undefined;
}
