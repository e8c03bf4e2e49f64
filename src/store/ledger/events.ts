/**
 * Outside events that move credits at most once: a chain's transaction, a webhook, an x402 authorization.
 *
 * Source: docs/reference/payment.md#invariants-of-the-ledger; docs/reference/threats.md (L1).
 * @module
 */
import type { Tx } from "./database.ts";

/**
 * Claims an outside event for this transaction.
 *
 * @param source - Where it happened: a provider, a chain, a network with its asset.
 * @param canonicalId - Its name there, in the one form that equal events share.
 * @param at - Unix milliseconds.
 * @returns True for exactly one transaction that commits, ever; its caller moves the credits in the same transaction.
 */
export async function claimEvent(tx: Tx, source: string, canonicalId: string, at: number): Promise<boolean> {
  const claimed = await tx.run(
    "INSERT INTO events (source, event_id, at) VALUES (?, ?, ?) ON CONFLICT (source, event_id) DO NOTHING",
    source,
    canonicalId,
    BigInt(at),
  );
  return claimed === 1;
}
