/**
 * The SQL scripts of the ledger's tables, each with its columns explained above it.
 *
 * A script that was released never changes: its text is part of the fingerprint that a ledger is checked against.
 * ledger-schema.ts has the order in which they run.
 * @module
 */

// The tables of double entry.
//
// accounts   balance is the sum of the account's entries, updated in the same transaction; created with its first entry
// transfers  one row a movement; id sorts by time; change_id names what caused it (an item, a payment, an approval)
// entries    one row a leg: + into the account, − out of it; the legs of a transfer sum to zero
// events     what happened outside, once each: a chain's transaction, a webhook, an authorization
export const ledgerTables = `
CREATE TABLE accounts (
  account TEXT NOT NULL PRIMARY KEY,
  balance BIGINT NOT NULL
);

CREATE TABLE transfers (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  at BIGINT NOT NULL,
  change_id TEXT,
  note TEXT
);

CREATE TABLE entries (
  account TEXT NOT NULL REFERENCES accounts (account),
  transfer_id TEXT NOT NULL REFERENCES transfers (id),
  amount BIGINT NOT NULL,
  PRIMARY KEY (account, transfer_id)
);

CREATE TABLE events (
  source TEXT NOT NULL,
  event_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (source, event_id)
);
`;

// The table of approvals: what one address lets another spend.
//
// winc       what was approved; escrow:{id} holds winc − pending − posted while the approval is active, nothing after
// pending    how much of it reservations hold
// posted     how much of it is spent for good; what is called used outside is pending + posted
// state      active, then once one of used (all of it posted), revoked, expired
// revoke_id  the data item that revoked it
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

// The tables of reservations: what is held for a data item until its upload has succeeded or failed.
//
// Ids of items are random: each tree that they are keys of is a page to write for every upload (measured: 44 µs of
// CPU for two more of them, 33 µs for a row of parts). So there is one tree, and a row of parts only where it tells
// what the reservation does not.
//
// reservations       one row an attempt at an item; id is item_id.attempt; held:{id} holds winc while it is pending;
//                    state: pending, then once one of posted, voided, expired; posted may become refunded; only the
//                    newest attempt of an item can be pending or posted: the next one is made when it is neither,
//                    under an id that is made once, and no state leads back; transfer_id: what paid for an item that
//                    was there already, so that nothing was ever held; NULL where winc were held first
// reservation_parts  where the winc came from, in order; approval_id NULL: the balance of `payer` itself; no rows
//                    where all of them are the reservation's payer's own
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

// The tables of nonces: what a key has signed once and may not use again.
//
// nonces      digest: SHA-256 of the account's address and the nonce, base64url; stored for ever
// nonce_days  how many nonces an account has used on the day that it last used one; day: Unix days
export const nonceTables = `
CREATE TABLE nonces (
  digest TEXT NOT NULL PRIMARY KEY
);

CREATE TABLE nonce_days (
  address TEXT NOT NULL PRIMARY KEY,
  day BIGINT NOT NULL,
  used BIGINT NOT NULL CHECK (used > 0)
);
`;

// The tables of payments by card: what was promised, and what the provider said of the money.
//
// quotes         state: open, paid, expired, failed; address NULL: the credits go to the gift `gift_id`;
//                credited_winc: what the payment bought, promo_winc the part of it that nobody paid for;
//                taken_back_winc: how much of it refunds and disputes hold back now; look_at: when the provider is
//                to be asked again, NULL: never
// card_payments  what the provider's messages say of one payment, in any order; refund: wanted, asked, NULL;
//                recheck_as_of: the sum of its refunds is to be asked for, as of this time
// card_disputes  the newest word on each dispute
// card_marks     how far the provider's list of events was read
export const quoteTables = `
CREATE TABLE quotes (
  id TEXT NOT NULL PRIMARY KEY,
  method TEXT NOT NULL,
  address TEXT,
  address_type TEXT NOT NULL,
  gift_id TEXT,
  currency TEXT NOT NULL,
  payment_amount BIGINT NOT NULL,
  quoted_amount BIGINT NOT NULL,
  winc BIGINT NOT NULL,
  promo_codes TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  session_id TEXT,
  payment_id TEXT,
  credited_at BIGINT,
  credited_winc BIGINT NOT NULL,
  promo_winc BIGINT NOT NULL,
  taken_back_winc BIGINT NOT NULL,
  look_at BIGINT
);
CREATE INDEX quotes_to_look_at ON quotes (look_at);
CREATE INDEX quotes_of_address ON quotes (address, state);
CREATE UNIQUE INDEX quotes_of_payment ON quotes (payment_id);
CREATE INDEX quotes_by_end ON quotes (state, expires_at);

CREATE TABLE card_payments (
  id TEXT NOT NULL PRIMARY KEY,
  quote_id TEXT,
  paid_at BIGINT,
  amount BIGINT,
  currency TEXT,
  refunded BIGINT NOT NULL,
  refunded_as_of BIGINT NOT NULL,
  refund TEXT,
  recheck_as_of BIGINT
);
CREATE INDEX card_payments_to_refund ON card_payments (refund);
CREATE INDEX card_payments_to_recheck ON card_payments (recheck_as_of);

CREATE TABLE card_disputes (
  id TEXT NOT NULL PRIMARY KEY,
  payment_id TEXT NOT NULL,
  amount BIGINT NOT NULL,
  currency TEXT NOT NULL,
  status TEXT NOT NULL,
  as_of BIGINT NOT NULL
);
CREATE INDEX card_disputes_of_payment ON card_disputes (payment_id);

CREATE TABLE card_marks (
  name TEXT NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL
);
`;

// The table of gifts: credits that wait in gift:{id} until a client presents the secret of their link.
//
// id is the SHA-256 of the secret; the secret itself is not stored. state: unpaid, open, redeemed. Credits that
// come back after a dispute was won go to the redeemer.
export const giftTables = `
CREATE TABLE gifts (
  id TEXT NOT NULL PRIMARY KEY,
  quote_id TEXT NOT NULL REFERENCES quotes (id),
  message TEXT,
  state TEXT NOT NULL,
  redeemed_by TEXT,
  redeemed_at BIGINT,
  redeemed_winc BIGINT
);
CREATE INDEX gifts_of_quote ON gifts (quote_id);
CREATE INDEX gifts_of_redeemer ON gifts (redeemed_by);
`;

// The tables of promo codes: which account has paid with which code.
//
// promo_uses    one row an account and code, for ever; code: its one spelling (src/payment/prices/price-rules.ts)
// promo_counts  how many rows of promo_uses a code has, updated in the same transaction
export const promoTables = `
CREATE TABLE promo_uses (
  address TEXT NOT NULL,
  code TEXT NOT NULL,
  payment_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (address, code)
);
CREATE TABLE promo_counts (
  code TEXT NOT NULL PRIMARY KEY,
  uses BIGINT NOT NULL CHECK (uses >= 0)
);
`;

// The tables of payments in tokens.
//
// token_payments  what one sender paid in one transaction: id is token:transaction:part, and the change_id of its
//                 transfers; state: pending, credited, reversed, failed; quantity in the token's smallest unit,
//                 decimal; fees as JSON; credits: how often it was credited, which is once more than it was reversed
//                 while it is credited; due_at: when the chain is to be asked again, NULL: never
// token_marks     how far a chain was looked through for payments to an address; in the chain's own words
export const paymentTables = `
CREATE TABLE token_payments (
  id TEXT NOT NULL PRIMARY KEY,
  token TEXT NOT NULL,
  transaction_id TEXT NOT NULL,
  part BIGINT NOT NULL,
  state TEXT NOT NULL,
  sender TEXT NOT NULL,
  destination TEXT NOT NULL,
  destination_type TEXT NOT NULL,
  quantity TEXT NOT NULL,
  winc BIGINT NOT NULL,
  fees TEXT NOT NULL,
  block_height BIGINT,
  block_hash TEXT,
  seen_at BIGINT NOT NULL,
  credited_at BIGINT,
  ended_at BIGINT,
  failure_reason TEXT,
  credits BIGINT NOT NULL,
  due_at BIGINT
);
CREATE UNIQUE INDEX token_payments_of_transaction ON token_payments (token, transaction_id, part);
CREATE INDEX token_payments_due ON token_payments (token, due_at);
CREATE INDEX token_payments_of_account ON token_payments (destination, seen_at);

CREATE TABLE token_marks (
  token TEXT NOT NULL,
  address TEXT NOT NULL,
  cursor TEXT NOT NULL,
  saved_at BIGINT NOT NULL,
  PRIMARY KEY (token, address)
);
`;

// The table of uploads: one row a data item that was taken, written in the transaction that charges for it.
//
// A row is the promise of a receipt: its bytes are on the disk before it is written. What a receipt says (received_at,
// deadline_height, winc) never changes, so that it can be signed again to the byte. How far an item is on its way is
// said once, by the row of its bundle.
//
// id              unique, and not the primary key: rows are in order of arrival, so that a bundle
//                 of thousands is planned in a few pages (measured: a third of the time, bench/bundles.ts)
// store           the folder of uploads that has its bytes: several programs may share a ledger, not their disks
// file            below that folder; the item is `size` bytes from `file_offset` on, as it was sent
// digest          SHA-256 of the payload, base64url
// reservation_id  what was paid with; NULL where nothing was
// bundle_id       the bundle that it is in; NULL while it waits for one
// position        its place among the items of the bundle, from 0; behind: the sizes of those before it
// failed_reason   why it will not come onto the chain after all; it was paid back, and is in no bundle
//
// removed_files   segments that were removed because nothing in them was needed; what was appended to one a moment
//                 before is not promised to anyone
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

// The table of bundles: what is on its way to the chain, one row a bundle, its items in `uploads`.
//
// store           as in `uploads`: who has the bytes brings them to the chain
// state           filling: takes items; planned: its items are chosen; prepared: its transaction is signed; posted:
//                 nodes took the transaction; seeded: nodes took every chunk; permanent: deep enough, and read back
//                 whole; dropped: its items were given back to be planned anew
// items_size      of its items together; the bundle's header comes before them
// transaction_id  of the newest transaction; none before it can be mined any more
// signed          the transaction's JSON, without data
// anchor_height   of the block that the transaction is anchored to: it is mined soon after it, or never
// sent_at         when the transaction first left this machine; NULL: nobody can have it
// seeded_chunks   so many of its first chunks were taken by nodes
// block_height    of the block that it was last seen in
// setbacks        times that nodes forgot what they had taken of this transaction
// next_at         when the next step is due; attempts counts those that failed since the last that did not
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

// The tables of multipart uploads: items that come in parts, until they are whole, and the parts that are on the disk.
//
// state           open: takes parts; finalizing: its whole file is being checked and charged for, a restart goes on
//                 with it; failed: it was rejected for `failure`, a part or another try reopens it; finalized: it is
// an item store           the folder of uploads that has its file (`uploads`)
// part_count      rows of its parts; they are gone when it is finalized
// size            of the whole item, from the moment at which it is finalized
// payer, paid_…   set where it was paid for when it was made: whose credits, how many, and for how many bytes;
//                 `reservation_id` holds them until it is finalized, rejected, or expires; `payment` names the payment
// paid_by, …      JSON list of who else pays, whether the signer does, and the token that was named: what the last
//                 finalization was asked with
// expires_at      the time at which it is forgotten, unless it is finalized
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

// The tables of payments by x402.
//
// x402_payments  an authorization that was sent as a payment: id is network/asset/payer/nonce, and the change_id of
//                its transfers; token: by whose price it was sold; state: seen, settling, settled, rejected,
//                reversed; amounts and times of the authorization as decimal text (they have 256 bits); purpose: what
//                it was sent for first; winc: what it is worth, fixed when it was seen; from_height: the block below
//                which it was not used; attempts: how often it was sent to be carried out; balance: the payer's, right
//                after the credit; due_at: when the chain is to be asked again, NULL: never
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

// The table of nonces that keys without an account have signed: the newest of them.
//
// digest: as in `nonces`; turn: increases with each nonce
export const strangersNonceTables = `
CREATE TABLE strangers_nonces (
  digest TEXT NOT NULL PRIMARY KEY,
  turn BIGINT NOT NULL
);
CREATE UNIQUE INDEX strangers_nonces_in_turn ON strangers_nonces (turn);
`;

// Columns of uploads that identify the act of signing behind an item, which may have several ids.
//
// signing_id  the same for every encoding of one signature (docs/reference/signatures.md); NULL for signature types
//             with one encoding, and for items of other types that were taken before this column existed
// double_of   the upload that came first from the same act of signing; set by `cairn ledger repair` on an upload that
//             was charged again before signings were identified, and whose charge was given back
export const signingColumns = `
ALTER TABLE uploads ADD COLUMN signing_id TEXT;
ALTER TABLE uploads ADD COLUMN double_of TEXT;
CREATE INDEX uploads_signed_by_message ON uploads (owner_address, header_size, size, signing_id)
  WHERE signature_type = 6;
`;

// Uploads that failed, by the act of signing behind them: one that was taken again in another encoding of its
// signature has the approvals that the failed one gave.
export const failedSigningIndex = `
CREATE INDEX uploads_failed_signing ON uploads (signing_id)
  WHERE failed_reason IS NOT NULL AND signing_id IS NOT NULL;
`;

// The table of bytes that readers have paid for.
//
// reading_allowances  what one payment by x402 bought: payment_id is that of x402_payments, and with "reading/" before
//                     it the change_id of its transfer; client: a keyed hash of the reader's address; bytes: what was
//                     bought; bytes_left: what of it can still be read; granted_at: Unix milliseconds
export const readingTables = `
CREATE TABLE reading_allowances (
  payment_id TEXT NOT NULL PRIMARY KEY,
  client TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  bytes_left BIGINT NOT NULL,
  granted_at BIGINT NOT NULL
);
CREATE INDEX reading_allowances_of_client ON reading_allowances (client, granted_at);
`;
