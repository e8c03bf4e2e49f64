/**
 * The table of gifts: credits that wait in gift:{id} for whoever knows the secret of their link.
 *
 * id is the SHA-256 of the secret; the secret itself is kept nowhere. state: unpaid, open, redeemed. Credits that
 * come back after a dispute was won go to the redeemer.
 * @module
 */
export const giftTables = `
CREATE TABLE gifts (
  id TEXT NOT NULL PRIMARY KEY,
  quote_id TEXT NOT NULL REFERENCES quotes (id),
  message TEXT,
  state TEXT NOT NULL,
  redeemed_by TEXT,
  redeemed_at BIGINT,
  redeemed_winc BIGINT
);
CREATE INDEX gifts_of_quote ON gifts (quote_id);
CREATE INDEX gifts_of_redeemer ON gifts (redeemed_by);
`;
