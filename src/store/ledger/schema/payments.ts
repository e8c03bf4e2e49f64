/**
 * The tables of payments in tokens.
 *
 * token_payments  what one sender paid in one transaction: id is token:transaction:part, and the change_id of its
 *                 transfers; state: pending, credited, reversed, failed; quantity in the token's smallest unit,
 *                 decimal; fees as JSON; credits: how often it was credited, which is once more than it was reversed
 *                 while it is credited; due_at: when the chain is to be asked again, NULL: never
 * token_marks     how far a chain was looked through for payments to an address; in the chain's own words
 * @module
 */
export const paymentTables = `
CREATE TABLE token_payments (
  id TEXT NOT NULL PRIMARY KEY,
  token TEXT NOT NULL,
  transaction_id TEXT NOT NULL,
  part BIGINT NOT NULL,
  state TEXT NOT NULL,
  sender TEXT NOT NULL,
  destination TEXT NOT NULL,
  destination_type TEXT NOT NULL,
  quantity TEXT NOT NULL,
  winc BIGINT NOT NULL,
  fees TEXT NOT NULL,
  block_height BIGINT,
  block_hash TEXT,
  seen_at BIGINT NOT NULL,
  credited_at BIGINT,
  ended_at BIGINT,
  failure_reason TEXT,
  credits BIGINT NOT NULL,
  due_at BIGINT
);
CREATE UNIQUE INDEX token_payments_of_transaction ON token_payments (token, transaction_id, part);
CREATE INDEX token_payments_due ON token_payments (token, due_at);
CREATE INDEX token_payments_of_account ON token_payments (destination, seen_at);

CREATE TABLE token_marks (
  token TEXT NOT NULL,
  address TEXT NOT NULL,
  cursor TEXT NOT NULL,
  saved_at BIGINT NOT NULL,
  PRIMARY KEY (token, address)
);
`;
