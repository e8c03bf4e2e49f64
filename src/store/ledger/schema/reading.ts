/**
 * The table of bytes that readers have paid for.
 *
 * reading_allowances  what one payment by x402 bought: payment_id is that of x402_payments, and with "reading/" before
 *                     it the change_id of its transfer; client: a keyed hash of the reader's address; bytes: what was
 *                     bought; bytes_left: what of it can still be read; granted_at: Unix milliseconds
 * @module
 */
export const readingTables = `
CREATE TABLE reading_allowances (
  payment_id TEXT NOT NULL PRIMARY KEY,
  client TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  bytes_left BIGINT NOT NULL,
  granted_at BIGINT NOT NULL
);
CREATE INDEX reading_allowances_of_client ON reading_allowances (client, granted_at);
`;
