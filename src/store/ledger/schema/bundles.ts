/**
 * The table of bundles: what is on its way to the chain, one row a bundle, items in `uploads`.
 *
 * state           planned: its items are chosen; prepared: its transaction is signed; posted: nodes took the transaction;
 *                 seeded: nodes took every chunk; permanent: deep enough, and read back whole; dropped: its items were
 *                 given back to be planned anew
 * transaction_id  of the newest transaction; an older one can no longer be mined (posted_height)
 * signed          the transaction's JSON, without data
 * posted_height   height of the chain when the transaction was signed: its anchor is not younger
 * next_at         when the next step is due; attempts counts those that failed since the last that did not
 * @module
 */
export const bundleTables = `
CREATE TABLE bundles (
  id TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('planned', 'prepared', 'posted', 'seeded', 'permanent', 'dropped')),
  item_count BIGINT NOT NULL CHECK (item_count > 0),
  data_size BIGINT NOT NULL CHECK (data_size > 0),
  transaction_id TEXT UNIQUE,
  signed TEXT,
  posted_height BIGINT,
  block_height BIGINT,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  last_error TEXT,
  CHECK (state IN ('planned', 'dropped') OR transaction_id IS NOT NULL)
);
CREATE INDEX bundles_due ON bundles (next_at) WHERE state NOT IN ('permanent', 'dropped');
`;
