/**
 * The tables of multipart uploads: items that come in parts, until they are whole, and the parts that are on the disk.
 *
 * state           open: takes parts; finalizing: its whole file is being checked and charged for, a restart goes on
 *                 with it; failed: it was refused for `failure`, a part or another try reopens it; finalized: it is
 * an item store           the folder of uploads that has its file (uploads.ts)
 * part_count      rows of its parts; they are gone when it is finalized
 * size            of the whole item, from the moment at which it is finalized
 * payer, paid_…   set where it was paid for when it was made: whose credits, how many, and for how many bytes;
 *                 `reservation_id` holds them until it is finalized, refused, or expires; `payment` names the payment
 * paid_by, …      JSON list of who else pays, whether the signer does, and the token that was named: what the last
 *                 finalization was asked with
 * expires_at      the time at which it is forgotten, unless it is finalized
 * @module
 */
export const multipartTables = `
CREATE TABLE multipart_uploads (
  id TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('open', 'finalizing', 'failed', 'finalized')),
  store TEXT NOT NULL,
  chunk_size BIGINT NOT NULL CHECK (chunk_size > 0),
  part_count BIGINT NOT NULL DEFAULT 0,
  size BIGINT,
  payer TEXT,
  paid_size BIGINT,
  paid_winc BIGINT,
  reservation_id TEXT REFERENCES reservations (id),
  payment TEXT UNIQUE,
  paid_by TEXT,
  directive TEXT,
  token TEXT,
  item_id TEXT,
  failure TEXT,
  failed_reason TEXT,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CHECK ((state = 'failed') = (failure IS NOT NULL)),
  CHECK ((state = 'finalized') = (item_id IS NOT NULL)),
  CHECK (state <> 'finalizing' OR (size IS NOT NULL AND paid_by IS NOT NULL AND directive IS NOT NULL)),
  CHECK ((payer IS NULL) = (paid_size IS NULL) AND (payer IS NULL) = (paid_winc IS NULL)),
  CHECK ((payer IS NULL) = (payment IS NULL))
);
CREATE INDEX multipart_uploads_unfinished ON multipart_uploads (store, expires_at, id) WHERE state <> 'finalized';
CREATE INDEX multipart_uploads_finalized ON multipart_uploads (store, expires_at) WHERE state = 'finalized';
CREATE TABLE multipart_parts (
  upload_id TEXT NOT NULL REFERENCES multipart_uploads (id),
  start BIGINT NOT NULL CHECK (start >= 0),
  size BIGINT NOT NULL CHECK (size > 0),
  PRIMARY KEY (upload_id, start, size)
);
`;
