/**
 * The tables of nonces: what a key has signed once and may not use again.
 *
 * nonces      digest: SHA-256 of the account's address and the nonce, base64url; kept for ever
 * nonce_days  how many nonces an account has used on the day that it last used one; day: Unix days
 * @module
 */
export const nonceTables = `
CREATE TABLE nonces (
  digest TEXT NOT NULL PRIMARY KEY
);

CREATE TABLE nonce_days (
  address TEXT NOT NULL PRIMARY KEY,
  day BIGINT NOT NULL,
  used BIGINT NOT NULL CHECK (used > 0)
);
`;
