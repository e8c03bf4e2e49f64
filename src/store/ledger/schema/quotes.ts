/**
 * The tables of payments by card: what was promised, and what the provider said of the money.
 *
 * quotes         state: open, paid, expired, failed; address NULL: the credits go to the gift `gift_id`;
 *                credited_winc: what the payment bought, promo_winc the part of it that nobody paid for;
 *                taken_back_winc: how much of it refunds and disputes hold back now; look_at: when the provider is
 *                to be asked again, NULL: never
 * card_payments  what the provider's messages say of one payment, in any order; refund: wanted, asked, NULL;
 *                recheck_as_of: the sum of its refunds is to be asked for, as of this time
 * card_disputes  the newest word on each dispute
 * card_marks     how far the provider's list of events was read
 * @module
 */
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
