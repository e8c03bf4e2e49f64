/**
 * The table of uploads: one row a data item that was taken, written in the transaction that charges for it.
 *
 * A row is the promise of a receipt: its bytes are on the disk before it is written. What a receipt says (received_at,
 * deadline_height, winc) never changes, so that it can be signed again to the byte. How far an item is on its way is
 * said once, by the row of its bundle.
 *
 * id              unique, and not the key that rows lie by: they lie in the order in which they came, so that a bundle
 *                 of thousands is planned in a few pages (measured: a third of the time, bench/bundles.ts)
 * store           the folder of uploads that has its bytes: several programs may share a ledger, not their disks
 * file            below that folder; the item is `size` bytes from `file_offset` on, as it was sent
 * digest          SHA-256 of the payload, base64url
 * reservation_id  what was paid with; NULL where nothing was
 * bundle_id       the bundle that it is in; NULL while it waits for one
 * position        its place among the items of the bundle, from 0; behind: the sizes of those before it
 * failed_reason   why it will not come onto the chain after all; it was paid back, and is in no bundle
 *
 * removed_files   segments that were removed because nothing in them was needed; what was appended to one a moment
 *                 before is not promised to anyone
 * @module
 */
export const uploadTables = `
CREATE TABLE uploads (
  id TEXT NOT NULL UNIQUE,
  store TEXT NOT NULL,
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
  behind BIGINT,
  failed_reason TEXT,
  CHECK ((bundle_id IS NULL) = (position IS NULL) AND (bundle_id IS NULL) = (behind IS NULL)),
  CHECK (bundle_id IS NULL OR failed_reason IS NULL)
);
CREATE INDEX uploads_waiting ON uploads (store, received_at, id) WHERE bundle_id IS NULL AND failed_reason IS NULL;
CREATE UNIQUE INDEX uploads_bundled ON uploads (bundle_id, position) WHERE bundle_id IS NOT NULL;
CREATE INDEX uploads_failed ON uploads (store, id) WHERE failed_reason IS NOT NULL;
CREATE INDEX uploads_files ON uploads (file, bundle_id) WHERE failed_reason IS NULL;
CREATE TABLE removed_files (
  file TEXT NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL
);
`;
