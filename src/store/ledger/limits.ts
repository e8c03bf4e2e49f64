/**
 * Limits that both databases of the ledger share.
 * @module
 */

/**
 * Amounts and balances lie within ±(2^62 − 1), 4.6 million AR: the sum of any two still fits the 64 bits of both
 * databases, of which SQLite would go on in floating point without a word.
 */
export const amountMax = 2n ** 62n - 1n;

/** Transactions that may wait; more is a fault of whoever sends them, and is told so. */
export const waitingMax = 10_000;

/** How long work may take: it waits for nothing but its own statements, so more is a defect. */
export const workTimeoutMs = 10_000;
