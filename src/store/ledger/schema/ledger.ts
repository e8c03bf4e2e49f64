/**
 * The tables of double entry.
 *
 * accounts   balance is the sum of the account's entries, kept in the same transaction; created with its first entry
 * transfers  one row a movement; id sorts by time; change_id names what caused it (an item, a payment, an approval)
 * entries    one row a leg: + into the account, − out of it; the legs of a transfer sum to zero
 * events     what happened outside, once each: a chain's transaction, a webhook, an authorization
 * @module
 */
export const ledgerTables = `
CREATE TABLE accounts (
  account TEXT NOT NULL PRIMARY KEY,
  balance BIGINT NOT NULL
);

CREATE TABLE transfers (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  at BIGINT NOT NULL,
  change_id TEXT,
  note TEXT
);

CREATE TABLE entries (
  account TEXT NOT NULL REFERENCES accounts (account),
  transfer_id TEXT NOT NULL REFERENCES transfers (id),
  amount BIGINT NOT NULL,
  PRIMARY KEY (account, transfer_id)
);

CREATE TABLE events (
  source TEXT NOT NULL,
  event_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (source, event_id)
);
`;
