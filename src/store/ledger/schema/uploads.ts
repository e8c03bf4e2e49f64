/**
 * The table of uploads: one row a data item that was taken, written in the transaction that charges for it.
 *
 * A row is the promise of a receipt: its bytes are on the disk before it is written. What a receipt says (received_at,
 * deadline_height, winc) never changes, so that it can be signed again to the byte.
 *
 * state           stored: waits to be bundled; planned: in a bundle that was not posted yet; posted: the bundle was;
 *                 permanent: its block is deep enough; failed: for `failed_reason`, and refunded
 * file            below the folder of uploads; the item is `size` bytes from `file_offset` on, as it was sent
 * digest          SHA-256 of the payload, base64url
 * reservation_id  what was paid with; NULL where nothing was
 * bundle_id       the bundle it is planned for, and where in it: position among its items, byte in its data
 * @module
 */
export const uploadTables = `
CREATE TABLE uploads (
  id TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('stored', 'planned', 'posted', 'permanent', 'failed')),
  file TEXT NOT NULL,
  file_offset BIGINT NOT NULL CHECK (file_offset >= 0),
  size BIGINT NOT NULL CHECK (size > 0),
  header_size BIGINT NOT NULL CHECK (header_size > 0 AND header_size <= size),
  signature_type BIGINT NOT NULL,
  owner_address TEXT NOT NULL,
  signer TEXT NOT NULL,
  content_type TEXT,
  content_encoding TEXT,
  digest TEXT NOT NULL,
  winc BIGINT NOT NULL CHECK (winc >= 0),
  reservation_id TEXT REFERENCES reservations (id),
  received_at BIGINT NOT NULL,
  deadline_height BIGINT NOT NULL,
  bundle_id TEXT,
  position BIGINT,
  bundle_offset BIGINT,
  failed_reason TEXT,
  changed_at BIGINT NOT NULL,
  CHECK ((state = 'failed') = (failed_reason IS NOT NULL)),
  CHECK ((bundle_id IS NULL) = (position IS NULL)),
  CHECK (state NOT IN ('planned', 'posted', 'permanent') OR bundle_id IS NOT NULL)
);
CREATE INDEX uploads_waiting ON uploads (received_at, id) WHERE state = 'stored';
CREATE INDEX uploads_bundled ON uploads (bundle_id, position) WHERE bundle_id IS NOT NULL;
CREATE INDEX uploads_files ON uploads (file);
`;
