/**
 * The ledger's schema: the SQL scripts of its tables, with their columns explained.
 *
 * The n-th script takes a ledger from version n to n + 1, on SQLite and PostgreSQL alike. Statements end with `;` at
 * the end of a line. A released script never changes, because its text is part of the fingerprint that a ledger is
 * checked against. New scripts are added at the end.
 * @module
 */
// The tables of double entry.
//
// accounts   balance is the sum of the account's entries, updated in the same transaction; created with its first entry
// transfers  one row a movement; id sorts by time; change_id names what caused it (an item, a payment, an approval)
// entries    one row a leg: + into the account, − out of it; the legs of a transfer sum to zero
// events     outside events, once each: a chain's transaction, a webhook, an authorization
const ledgerTables = `
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

// The table of approvals: credits that one address lets another spend.
//
// winc       the approved amount; escrow:{id} holds winc − pending − posted while it is active, then nothing
// pending    the part of it that reservations hold
// posted     the part of it that is spent for good; the API's used amount is pending + posted
// state      active, then once one of used (all of it posted), revoked, expired
// revoke_id  the data item that revoked it
const approvalTables = `
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

// The tables of reservations: credits that are held for a data item until its upload has succeeded or failed.
//
// Ids of items are random, so each index over them costs one page write for every upload (measured: 44 µs of CPU for
// two more indexes, 33 µs for a row of parts). Hence one index, and rows of parts only where the reservation's payer
// does not pay alone.
//
// reservations       one row an attempt at an item; id is item_id.attempt; held:{id} holds winc while it is pending;
//                    state: pending, then once one of posted, voided, expired; posted may become refunded; only the
//                    newest attempt of an item can be pending or posted: the next attempt is made when it is
//                    neither, under a new id, and no state leads back; transfer_id: the transfer that paid for an
//                    item that was stored already, without a hold; NULL when winc were held first
// reservation_parts  the sources of the winc, in order; approval_id NULL: the balance of `payer` itself; no rows
//                    when the reservation's payer pays all of them
const reservationTables = `
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

// The tables of nonces: a key may use each nonce once.
//
// nonces      digest: SHA-256 of the account's address and the nonce, base64url; stored for ever
// nonce_days  how many nonces an account has used on the day that it last used one; day: Unix days
const nonceTables = `
CREATE TABLE nonces (
  digest TEXT NOT NULL PRIMARY KEY
);

CREATE TABLE nonce_days (
  address TEXT NOT NULL PRIMARY KEY,
  day BIGINT NOT NULL,
  used BIGINT NOT NULL CHECK (used > 0)
);
`;

// The tables of payments by card: the quotes, and the provider's reports of payments.
//
// quotes         state: open, paid, expired, failed; address NULL: the credits go to the gift `gift_id`;
//                credited_winc: the winc that the payment bought, promo_winc the unpaid part of them;
//                taken_back_winc: the part of them that refunds and disputes withhold now; look_at: time of the
//                next request to the provider, NULL: never
// card_payments  the provider's messages about one payment, in any order; refund: wanted, asked, NULL;
//                recheck_as_of: the sum of its refunds is to be requested, as of this time
// card_disputes  the newest status of each dispute
// card_marks     the position up to which the provider's list of events was read, and hours that have to be read again
const quoteTables = `
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

// The table of gifts: credits that are held in gift:{id} until a client presents the secret of their link.
//
// id is the SHA-256 of the secret; the secret itself is not stored. state: unpaid, open, redeemed. Credits that are
// returned after a won dispute go to the redeemer.
const giftTables = `
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

// The tables of promo codes: the accounts that have paid with each code.
//
// promo_uses    one row an account and code, for ever; code: its canonical spelling (src/payment/prices/price-rules.ts)
// promo_counts  the number of rows of promo_uses for a code, updated in the same transaction
const promoTables = `
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
// token_payments  the payment of one sender in one transaction: id is token:transaction:part, and the change_id of
//                 its transfers; state: pending, credited, reversed, failed; quantity in the token's smallest unit,
//                 decimal; fees as JSON; credits: the number of credits, one more than its reversals while it is
//                 credited; due_at: time of the next request to the chain, NULL: never
// token_marks     the cursor up to which a chain was scanned for payments to an address; its form is the chain's
const paymentTables = `
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

// The table of uploads: one row an accepted data item, written in the transaction that charges for it.
//
// A row promises a receipt: the item's bytes are on the disk before it is written. The fields of a receipt
// (received_at, deadline_height, winc) never change, so that signing again gives the same bytes. Only the row of its
// bundle has the progress of an item.
//
// id              unique, and not the primary key: rows are in order of arrival, so that a bundle
//                 of thousands is planned in a few pages (measured: a third of the time, bench/uploads/bundles.ts)
// store           the folder of uploads that has its bytes: several programs may share a ledger, not their disks
// file            below that folder; the item is `size` bytes from `file_offset` on, as it was sent
// digest          SHA-256 of the payload, base64url
// reservation_id  the reservation that paid; NULL when the item is free
// bundle_id       the bundle that contains it; NULL until there is one
// position        its index in the bundle, from 0; behind: the sum of the sizes of the items before it
// failed_reason   why it will not reach the chain; it was refunded, and is in no bundle
//
// removed_files   segments that were removed because they held no needed item; an item that was appended just before
//                 has no receipt
const uploadTables = `
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

// The table of bundles: one row a bundle on its way to the chain, its items in `uploads`.
//
// store           as in `uploads`: the program that has the bytes posts them to the chain
// state           filling: takes items; planned: its items are chosen; prepared: its transaction is signed; posted:
//                 nodes accepted the transaction; seeded: nodes accepted every chunk; permanent: deep enough, and
//                 read back completely; dropped: its items were returned to be planned again
// items_size      the sum of its items' sizes; the bundle's header comes before them
// transaction_id  of the newest transaction; earlier ones can no longer be mined
// signed          the transaction's JSON, without data
// anchor_height   of the block that the transaction is anchored to: it is mined soon after that block, or never
// sent_at         when the transaction was first sent; NULL: no node can have it
// seeded_chunks   the number of its first chunks that nodes accepted
// block_height    of the block that it was last seen in
// setbacks        the number of times that nodes dropped accepted parts of this transaction
// next_at         when the next step is due; attempts: failed steps since the last success
const bundleTables = `
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

// The tables of multipart uploads: items that arrive in parts until they are complete, and their stored parts.
//
// state           open: accepts parts; finalizing: its file is being checked and charged for, also after a restart;
//                 failed: it was rejected for `failure`, a part or another attempt reopens it; finalized: an item
// store           the folder of uploads that has its file (`uploads`)
// part_count      rows of its parts; they are removed when it is finalized
// size            of the complete item, once it is being finalized
// payer, paid_…   set when it was paid for at its creation: payer, winc and bytes; `reservation_id` holds the winc
//                 until it is finalized, rejected, or expires; `payment` is the id of the payment
// paid_by, …      JSON list of further payers, whether the signer pays, and the token: the request of the last
//                 finalization
// expires_at      the time at which it is removed, unless it is finalized
const multipartTables = `
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
//                its transfers; token: the token of its price; state: seen, settling, settled, rejected, reversed;
//                amounts and times of the authorization as decimal text (they have 256 bits); purpose: its first
//                purpose; winc: its value, fixed when it was seen; from_height: the block below which it was not
//                used; attempts: the number of attempts to settle it; balance: the payer's, right after the credit;
//                due_at: time of the next request to the chain, NULL: never
const x402Tables = `
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

// The table of the newest nonces of keys without an account.
//
// digest: as in `nonces`; turn: increases with each nonce
const strangersNonceTables = `
CREATE TABLE strangers_nonces (
  digest TEXT NOT NULL PRIMARY KEY,
  turn BIGINT NOT NULL
);
CREATE UNIQUE INDEX strangers_nonces_in_turn ON strangers_nonces (turn);
`;

// Columns of uploads that identify the signing of an item, which may have several ids.
//
// signing_id  the same for every encoding of one signature (docs/reference/signatures.md); NULL for signature types
//             with one encoding, and for items of other types that were accepted before this column existed
// double_of   the first upload of the same signing; set by `cairn ledger repair` on an upload that was charged again
//             before signings were identified, and whose charge was refunded
const signingColumns = `
ALTER TABLE uploads ADD COLUMN signing_id TEXT;
ALTER TABLE uploads ADD COLUMN double_of TEXT;
CREATE INDEX uploads_signed_by_message ON uploads (owner_address, header_size, size, signing_id)
  WHERE signature_type = 6;
`;

// Failed uploads by their signing: an item that is accepted again in another encoding of its signature has the
// approvals that the failed one gave.
const failedSigningIndex = `
CREATE INDEX uploads_failed_signing ON uploads (signing_id)
  WHERE failed_reason IS NOT NULL AND signing_id IS NOT NULL;
`;

// The table of bytes that clients have paid to read.
//
// reading_allowances  the bytes that one payment by x402 bought: payment_id is that of x402_payments, and with
//                     "reading/" before it the change_id of its transfer; client: a keyed hash of the reader's
//                     address; bytes: bought; bytes_left: still unread; granted_at: Unix milliseconds
const readingTables = `
CREATE TABLE reading_allowances (
  payment_id TEXT NOT NULL PRIMARY KEY,
  client TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  bytes_left BIGINT NOT NULL,
  granted_at BIGINT NOT NULL
);
CREATE INDEX reading_allowances_of_client ON reading_allowances (client, granted_at);
`;

// The table of actions of operators.
// id: the idempotency key; kind: what was done; subject: the account, payment or code; winc: what its own transfer,
// whose change_id is the id with "operator/" before it, moved into the account of a user, 0 without one; response:
// what is returned, JSON; NULL while it waits for an outside system
const operatorTables = `
CREATE TABLE operator_actions (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  winc BIGINT NOT NULL,
  operator TEXT NOT NULL,
  reason TEXT NOT NULL,
  at BIGINT NOT NULL,
  response TEXT
);
CREATE INDEX operator_actions_of_subject ON operator_actions (subject, at);
CREATE INDEX operator_actions_waiting ON operator_actions (at) WHERE response IS NULL;
`;

// The table of promo codes that operators added: code in its canonical spelling, rule as JSON of the price rules,
// ended_at when an operator ended it.
const promoCodeTables = `
CREATE TABLE promo_codes (
  code TEXT NOT NULL PRIMARY KEY,
  rule TEXT NOT NULL,
  added_at BIGINT NOT NULL,
  ended_at BIGINT
);
`;

// The table of roots of solvency that the program publishes.
//
// at         the moment of the balances: the start of a period, so that each period has one root
// id, item   the signed data item of the root, base64url; every attempt to upload it sends the same bytes
// secret     the secret of the salts of its leaves, hexadecimal: every process of the ledger proves accounts
// published_at  when the upload service accepted it; NULL while it waits
const solvencyTables = `
CREATE TABLE solvency_roots (
  at BIGINT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  item TEXT NOT NULL,
  secret TEXT NOT NULL,
  signed_at BIGINT NOT NULL,
  published_at BIGINT
);
CREATE UNIQUE INDEX solvency_roots_by_id ON solvency_roots (id);
`;

// The table of found transactions that a server of their chain could not give.
//
// The scan has passed them: each is read again until it can be read, and removed. address: the watched one; since: when
// it was found; due_at: time of the next request to the chain
const unreadTables = `
CREATE TABLE token_unread (
  token TEXT NOT NULL,
  address TEXT NOT NULL,
  transaction_id TEXT NOT NULL,
  since BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  PRIMARY KEY (token, address, transaction_id)
);
CREATE INDEX token_unread_due ON token_unread (token, address, due_at);
`;

export const ledgerSchema: readonly string[] = [
  ledgerTables,
  approvalTables,
  reservationTables,
  nonceTables,
  quoteTables,
  giftTables,
  promoTables,
  paymentTables,
  uploadTables,
  bundleTables,
  multipartTables,
  x402Tables,
  strangersNonceTables,
  signingColumns,
  failedSigningIndex,
  readingTables,
  operatorTables,
  promoCodeTables,
  solvencyTables,
  unreadTables,
];
