/**
 * The tables of reservations: what is held for a data item until its upload has succeeded or failed.
 *
 * Ids of items are random: each tree that they are keys of is a page to write for every upload (measured: 44 µs of
 * CPU for two more of them, 33 µs for a row of parts). So there is one tree, and a row of parts only where it tells
 * what the reservation does not.
 *
 * reservations       one row an attempt at an item; id is item_id.attempt; held:{id} holds winc while it is pending;
 *                    state: pending, then once one of posted, voided, expired; posted may become refunded; only the
 *                    newest attempt of an item can be pending or posted: the next one is made when it is neither,
 *                    under an id that is made once, and no state leads back; transfer_id: what paid for an item that
 *                    was there already, so that nothing was ever held; NULL where winc were held first
 * reservation_parts  where the winc came from, in order; approval_id NULL: the balance of `payer` itself; no rows
 *                    where all of them are the reservation's payer's own
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
  CHECK (id = item_id || '.' || attempt),
  CHECK ((state = 'pending') = (ended_at IS NULL)),
  CHECK (transfer_id IS NULL OR state IN ('posted', 'refunded'))
);
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
