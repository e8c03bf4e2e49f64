/**
 * The tables of promo codes: which account has paid with which code.
 *
 * promo_uses    one row an account and code, for ever; code: its one spelling (src/payment/prices/rules.ts)
 * promo_counts  how many rows of promo_uses a code has, kept in the same transaction
 * @module
 */
export const promoTables = `
CREATE TABLE promo_uses (
  address TEXT NOT NULL,
  code TEXT NOT NULL,
  payment_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (address, code)
);
CREATE TABLE promo_counts (
  code TEXT NOT NULL PRIMARY KEY,
  uses BIGINT NOT NULL CHECK (uses >= 0)
);
`;
