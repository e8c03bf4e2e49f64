/**
 * The table of approvals: what one address lets another spend.
 *
 * winc       what was approved; escrow:{id} holds winc − pending − posted while the approval is active, nothing after
 * pending    how much of it reservations hold
 * posted     how much of it is spent for good; what is called used outside is pending + posted
 * state      active, then once one of used (all of it posted), revoked, expired
 * revoke_id  the data item that revoked it
 * @module
 */
export const approvalTables = `
CREATE TABLE approvals (
  id TEXT NOT NULL PRIMARY KEY,
  paying_address TEXT NOT NULL,
  approved_address TEXT NOT NULL,
  winc BIGINT NOT NULL CHECK (winc > 0),
  pending BIGINT NOT NULL CHECK (pending >= 0),
  posted BIGINT NOT NULL CHECK (posted >= 0),
  state TEXT NOT NULL CHECK (state IN ('active', 'used', 'revoked', 'expired')),
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  ended_at BIGINT,
  revoke_id TEXT,
  CONSTRAINT approvals_used CHECK (pending + posted <= winc),
  CHECK ((state = 'active') = (ended_at IS NULL))
);
CREATE INDEX approvals_given ON approvals (paying_address, approved_address) WHERE state = 'active';
CREATE INDEX approvals_received ON approvals (approved_address) WHERE state = 'active';
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;
CREATE INDEX approvals_revoked ON approvals (revoke_id) WHERE revoke_id IS NOT NULL;
`;
