/**
 * Nonces that were used, and what was signed with them: a signature that was seen once is worth nothing to whoever saw
 * it.
 *
 * Those of accounts are stored for ever, so each account may use only so many a day. Of strangers there is no end: the
 * newest of all of them are stored, so that a signature that was caught before its key had an account is not good
 * later.
 * Source: docs/reference/payment.md#signed-requests.
 * @module
 */
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, utf8Bytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";
import type { Tx } from "../../store/ledger/ledger-database.ts";
import type { UserAddress } from "../addresses.ts";
import type { RequestSigner } from "./signed-request.ts";

/** Nonces that an account may use in one day of UTC. */
export const noncesPerDayMax = 10_000;

/** Nonces of strangers that are stored: 15 MB. */
export const strangersNoncesMax = 100_000;

const dayMs = 86_400_000n;

/**
 * Claims a nonce of a signer who has an account, for this transaction.
 *
 * @param now - Unix milliseconds.
 * @throws Failure `invalid_signature` when it was used before, also while the signer was a stranger;
 *   `too_many_requests` when the day's are used up.
 */
export async function claimNonce(tx: Tx, signer: RequestSigner, now: number): Promise<void> {
  const { address } = signer;
  for (const digest of digestsOf(signer)) {
    if (await isStrangers(tx, digest)) throw usedBefore(address);
    const claimed = await tx.run("INSERT INTO nonces (digest) VALUES (?) ON CONFLICT (digest) DO NOTHING", digest);
    if (claimed !== 1) throw usedBefore(address);
  }
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

/**
 * Claims a nonce of a signer who has no account; the oldest one of any stranger may be forgotten for it.
 *
 * @param storedMax - How many are stored, 1 or more.
 * @throws Failure `invalid_signature` when it was used before and is not forgotten.
 */
export async function claimStrangersNonce(
  tx: Tx,
  signer: RequestSigner,
  storedMax = strangersNoncesMax,
): Promise<void> {
  const last = await tx.get<{ turn: bigint }>("SELECT turn FROM strangers_nonces ORDER BY turn DESC LIMIT 1");
  let position = last?.turn ?? 0n;
  for (const digest of digestsOf(signer)) {
    // An address that was only lent credits, and has them no longer, is a stranger again.
    const known = await tx.get<{ digest: string }>("SELECT digest FROM nonces WHERE digest = ?", digest);
    if (known !== undefined || (await isStrangers(tx, digest))) throw usedBefore(signer.address);
    position += 1n;
    await tx.run("INSERT INTO strangers_nonces (digest, turn) VALUES (?, ?)", digest, position);
  }
  await tx.run("DELETE FROM strangers_nonces WHERE turn <= ?", position - BigInt(storedMax));
}

async function isStrangers(tx: Tx, digest: string): Promise<boolean> {
  const sql = "SELECT turn FROM strangers_nonces WHERE digest = ?";
  return (await tx.get<{ turn: bigint }>(sql, digest)) !== undefined;
}

/**
 * The nonce and what was signed, each once: a signature over more than the nonce also fits requests whose nonce begins
 * earlier or later. One digest where only the nonce was signed. An address holds no line break, so two pairs never
 * make the same bytes.
 */
function digestsOf({ address, nonce, message }: RequestSigner): ReadonlySet<string> {
  const head = utf8Bytes(`${address}\n`);
  return new Set([utf8Bytes(nonce), message].map((bytes) => encodeBase64url(sha256(concatBytes([head, bytes])))));
}

function usedBefore(address: UserAddress): Failure {
  return new Failure("invalid_signature", { reason: "the nonce was used before", address });
}
