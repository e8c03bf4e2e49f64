/**
 * The tables of payments by x402.
 *
 * x402_payments  an authorization that was sent as a payment: id is network/asset/payer/nonce, and the change_id of
 *                its transfers; token: by whose price it was sold; state: seen, settling, settled, rejected,
 *                reversed; amounts and times of the authorization as decimal text (they have 256 bits); purpose: what
 *                it was sent for first; winc: what it is worth, fixed when it was seen; from_height: the block below
 *                which it was not used; attempts: how often it was sent to be carried out; balance: the payer's, right
 *                after the credit; due_at: when the chain is to be asked again, NULL: never
 * @module
 */
export const x402Tables = `
CREATE TABLE x402_payments (
  id TEXT NOT NULL PRIMARY KEY,
  network TEXT NOT NULL,
  asset TEXT NOT NULL,
  payer TEXT NOT NULL,
  nonce TEXT NOT NULL,
  token TEXT NOT NULL,
  state TEXT NOT NULL,
  version BIGINT NOT NULL,
  pay_to TEXT NOT NULL,
  value TEXT NOT NULL,
  valid_after TEXT NOT NULL,
  valid_before TEXT NOT NULL,
  signature TEXT NOT NULL,
  resource TEXT NOT NULL,
  purpose TEXT NOT NULL,
  winc BIGINT NOT NULL,
  quoted_winc BIGINT NOT NULL,
  from_height BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  transaction_hash TEXT,
  block_height BIGINT,
  block_hash TEXT,
  settled_at BIGINT,
  balance BIGINT,
  ended_at BIGINT,
  reason TEXT,
  due_at BIGINT
);
CREATE UNIQUE INDEX x402_payments_of_authorization ON x402_payments (network, asset, payer, nonce);
CREATE INDEX x402_payments_due ON x402_payments (network, asset, due_at);
CREATE INDEX x402_payments_of_account ON x402_payments (payer, settled_at);
`;
