/**
 * The tables of approvals and reservations: the state beside the escrow and held accounts.
 *
 * approvals          winc: what was approved; used: how much of it was spent; state: active, used, revoked, expired;
 *                    escrow:{id} holds winc − used while it is active, nothing after
 * reservations       state: pending, posted, voided, expired; held:{id} holds winc while it is pending
 * reservation_parts  where the winc came from, in order; approval_id NULL: the account of `payer` itself
 * @module
 */
export const creditTables = `
CREATE TABLE approvals (
  id TEXT NOT NULL PRIMARY KEY,
  paying_address TEXT NOT NULL,
  approved_address TEXT NOT NULL,
  winc BIGINT NOT NULL,
  used BIGINT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  ended_at BIGINT,
  revoke_id TEXT
);
CREATE INDEX approvals_received ON approvals (approved_address, state);
CREATE INDEX approvals_given ON approvals (paying_address, state);
CREATE INDEX approvals_expiring ON approvals (state, expires_at);

CREATE TABLE reservations (
  id TEXT NOT NULL PRIMARY KEY,
  payer TEXT NOT NULL,
  winc BIGINT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  ended_at BIGINT
);
CREATE INDEX reservations_expiring ON reservations (state, expires_at);

CREATE TABLE reservation_parts (
  reservation_id TEXT NOT NULL REFERENCES reservations (id),
  position BIGINT NOT NULL,
  payer TEXT NOT NULL,
  approval_id TEXT,
  winc BIGINT NOT NULL,
  PRIMARY KEY (reservation_id, position)
);
`;
