/**
 * The table of bundles: what is on its way to the chain, one row a bundle, its items in `uploads`.
 *
 * store           as in `uploads`: who has the bytes brings them to the chain
 * state           filling: takes items; planned: its items are chosen; prepared: its transaction is signed; posted:
 *                 nodes took the transaction; seeded: nodes took every chunk; permanent: deep enough, and read back
 *                 whole; dropped: its items were given back to be planned anew
 * items_size      of its items together; the bundle's header comes before them
 * transaction_id  of the newest transaction; none before it can be mined any more
 * signed          the transaction's JSON, without data
 * anchor_height   of the block that the transaction is anchored to: it is mined soon after it, or never
 * sent_at         when the transaction first left this machine; NULL: nobody can have it
 * seeded_chunks   so many of its first chunks were taken by nodes
 * block_height    of the block that it was last seen in
 * setbacks        times that nodes forgot what they had taken of this transaction
 * next_at         when the next step is due; attempts counts those that failed since the last that did not
 * @module
 */
export const bundleTables = `
CREATE TABLE bundles (
  id TEXT NOT NULL PRIMARY KEY,
  store TEXT NOT NULL,
  state TEXT NOT NULL
    CHECK (state IN ('filling', 'planned', 'prepared', 'posted', 'seeded', 'permanent', 'dropped')),
  item_count BIGINT NOT NULL CHECK (item_count > 0),
  items_size BIGINT NOT NULL CHECK (items_size > 0),
  transaction_id TEXT UNIQUE,
  signed TEXT,
  anchor_height BIGINT,
  sent_at BIGINT,
  seeded_chunks BIGINT NOT NULL DEFAULT 0,
  block_height BIGINT,
  setbacks BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  last_error TEXT,
  CHECK ((transaction_id IS NULL) = (signed IS NULL) AND (transaction_id IS NULL) = (anchor_height IS NULL)),
  CHECK (state NOT IN ('prepared', 'posted', 'seeded', 'permanent') OR transaction_id IS NOT NULL)
);
CREATE INDEX bundles_due ON bundles (store, state, next_at) WHERE state NOT IN ('permanent', 'dropped');
`;
