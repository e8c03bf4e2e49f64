/**
 * The tables of reservations: what is held for a data item until its upload has succeeded or failed.
 *
 * reservations       one row an attempt at an item; id is item_id.attempt; held:{id} holds winc while it is pending;
 *                    state: pending, then once one of posted, voided, expired; posted may become refunded; only the
 *                    newest attempt of an item can be pending or posted; transfer_id: what paid for an item that was
 *                    there already, so that nothing was ever held; NULL where winc were held first
 * reservation_parts  where the winc came from, in order; approval_id NULL: the balance of `payer` itself
 * @module
 */
export const reservationTables = `
CREATE TABLE reservations (
  id TEXT NOT NULL PRIMARY KEY,
  item_id TEXT NOT NULL,
  attempt BIGINT NOT NULL CHECK (attempt > 0),
  payer TEXT NOT NULL,
  winc BIGINT NOT NULL CHECK (winc >= 0),
  state TEXT NOT NULL CHECK (state IN ('pending', 'posted', 'voided', 'expired', 'refunded')),
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  ended_at BIGINT,
  transfer_id TEXT,
  UNIQUE (item_id, attempt),
  CHECK ((state = 'pending') = (ended_at IS NULL)),
  CHECK (transfer_id IS NULL OR state IN ('posted', 'refunded'))
);
CREATE UNIQUE INDEX reservations_live ON reservations (item_id) WHERE state IN ('pending', 'posted');
CREATE INDEX reservations_expiring ON reservations (expires_at) WHERE state = 'pending';

CREATE TABLE reservation_parts (
  reservation_id TEXT NOT NULL REFERENCES reservations (id),
  position BIGINT NOT NULL,
  payer TEXT NOT NULL,
  approval_id TEXT REFERENCES approvals (id),
  winc BIGINT NOT NULL CHECK (winc > 0),
  PRIMARY KEY (reservation_id, position)
);
CREATE INDEX reservation_parts_drawn ON reservation_parts (approval_id) WHERE approval_id IS NOT NULL;
`;
