/**
 * Nonces that were used: a signature that was seen once is worth nothing to whoever saw it.
 *
 * They are kept for ever, so that only accounts may use them up, and each only so many a day.
 * Source: contract.md §5 "Signature".
 * @module
 */
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import type { Tx } from "../store/ledger/database.ts";
import type { RequestSigner } from "./signed-request.ts";

/** Nonces that an account may use in one day of UTC. */
export const noncesPerDayMax = 10_000;

const dayMs = 86_400_000n;

/**
 * Claims a signer's nonce for this transaction. The caller has made sure that the signer has an account.
 *
 * @param now - Unix milliseconds.
 * @throws Failure `invalid_signature` when it was used before, `too_many_requests` when the day's are used up.
 */
export async function claimNonce(tx: Tx, signer: RequestSigner, now: number): Promise<void> {
  const { address, nonce } = signer;
  const claimed = await tx.run(
    "INSERT INTO nonces (digest) VALUES (?) ON CONFLICT (digest) DO NOTHING",
    // An address holds no line break, so two pairs never make the same text.
    encodeBase64url(sha256(utf8Bytes(`${address}\n${nonce}`))),
  );
  if (claimed !== 1) throw new Failure("invalid_signature", { reason: "the nonce was used before", address });
  const row = await tx.get<{ used: bigint }>(
    "INSERT INTO nonce_days (address, day, used) VALUES (?, ?, 1) ON CONFLICT (address) DO UPDATE SET " +
      "used = CASE WHEN nonce_days.day = excluded.day THEN nonce_days.used + 1 ELSE 1 END, day = excluded.day " +
      "RETURNING used",
    address,
    BigInt(now) / dayMs,
  );
  if (row === undefined || row.used > noncesPerDayMax)
    throw new Failure("too_many_requests", { reason: "the day's nonces are used up", address });
}
