/**
 * Quotes of top-ups: promised credits, price, recipient, expiry and outcome.
 *
 * A quote is stored before the request to the provider, so that every payment has its quote.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { isJsonArray, readJson, writeJson } from "../../lib/json.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { readAddress, type UserAddress } from "../addresses.ts";

/** The kind of payment session. */
export const topUpMethods = ["payment-intent", "checkout-session"] as const;
export type TopUpMethod = (typeof topUpMethods)[number];

/**
 * The state of a quote: open → paid | expired | failed. An expired quote becomes paid when its payment was made in
 * time. Later chargebacks are in `takenBackWinc`; the quote stays paid.
 */
export const quoteStates = ["open", "paid", "expired", "failed"] as const;
export type QuoteState = (typeof quoteStates)[number];

/** The credited account, or a gift. */
export type Destination =
  | Readonly<{ kind: "account"; address: UserAddress; type: string /* the request's word */ }>
  | Readonly<{ kind: "gift"; giftId: string; message: string | undefined }>;

/** The terms of a quote. */
export type QuoteTerms = Readonly<{
  id: string;
  method: TopUpMethod;
  destination: Destination;
  currency: string; // lower case
  /** The charged amount, in the currency's smallest unit. */
  paymentAmount: bigint;
  /** The amount without promo codes. */
  quotedPaymentAmount: bigint;
  winc: bigint;
  /** Codes that lowered the price, in the rules' spelling. */
  promoCodes: readonly string[];
  createdAt: number; // Unix ms
  /** A later payment is refunded. Unix ms, whole seconds. */
  expiresAt: number;
}>;

/** A stored quote with its outcome. */
export type Quote = Omit<QuoteTerms, "destination"> &
  Readonly<{
    /** Undefined when a gift is credited. */
    address: UserAddress | undefined;
    giftId: string | undefined;
    state: QuoteState;
    /** The provider's session: a checkout, or the payment intent itself; undefined until it is known. */
    sessionId: string | undefined;
    /** The one payment that pays it. */
    paymentId: string | undefined;
    creditedWinc: bigint;
    /** The part of the credits that the payment did not pay for. */
    promoWinc: bigint;
    takenBackWinc: bigint;
  }>;

/** The `address_type` of a quote for a gift. */
export const giftWord = "gift";

/**
 * Stores a quote, and its gift.
 * @param lookAt - When to request its status from the provider, Unix ms.
 */
export async function storeQuote(tx: Tx, terms: QuoteTerms, lookAt: number): Promise<void> {
  const { destination } = terms;
  const account = destination.kind === "account" ? destination : undefined;
  const gift = destination.kind === "gift" ? destination : undefined;
  await tx.run(
    "INSERT INTO quotes (id, method, address, address_type, gift_id, currency, payment_amount, quoted_amount, winc, " +
      "promo_codes, created_at, expires_at, state, credited_winc, promo_winc, taken_back_winc, look_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', 0, 0, 0, ?)",
    terms.id,
    terms.method,
    account?.address ?? null,
    account?.type ?? giftWord,
    gift?.giftId ?? null,
    terms.currency,
    terms.paymentAmount,
    terms.quotedPaymentAmount,
    terms.winc,
    writeJson(terms.promoCodes),
    BigInt(terms.createdAt),
    BigInt(terms.expiresAt),
    BigInt(lookAt),
  );
  if (gift === undefined) return;
  await tx.run(
    "INSERT INTO gifts (id, quote_id, message, state) VALUES (?, ?, ?, 'unpaid')",
    gift.giftId,
    terms.id,
    gift.message ?? null,
  );
}

/** Whether at least `count` quotes are open. @param count - At least 1. */
export async function areQuotesOpen(tx: Tx, count: number): Promise<boolean> {
  const row = await tx.get<{ id: string }>(
    "SELECT id FROM quotes WHERE state = 'open' ORDER BY expires_at LIMIT 1 OFFSET ?",
    BigInt(count - 1),
  );
  return row !== undefined;
}

/** Stores the provider's session id of a quote. */
export async function storeSession(tx: Tx, quoteId: string, sessionId: string): Promise<void> {
  await tx.run("UPDATE quotes SET session_id = ? WHERE id = ?", sessionId, quoteId);
}

/** Ends an open quote; a paid quote stays paid. */
export async function endQuote(tx: Tx, quoteId: string, state: "expired" | "failed", reason?: string): Promise<void> {
  await tx.run(
    "UPDATE quotes SET state = ?, reason = ?, look_at = NULL WHERE id = ? AND state = 'open'",
    state,
    reason ?? null,
    quoteId,
  );
}

export async function findQuote(tx: Tx, quoteId: string): Promise<Quote | undefined> {
  const row = await tx.get<QuoteRow>(`SELECT ${columns} FROM quotes WHERE id = ?`, quoteId);
  return row === undefined ? undefined : readQuote(row);
}

/**
 * Open quotes whose status is to be requested from the provider, the longest due first.
 * @param now - Unix ms.
 */
export async function quotesToLookAt(tx: Tx, now: number, limit: number): Promise<Quote[]> {
  const rows = await tx.all<QuoteRow>(
    `SELECT ${columns} FROM quotes WHERE look_at <= ? ORDER BY look_at, id LIMIT ?`,
    BigInt(now),
    BigInt(limit),
  );
  return rows.map(readQuote);
}

/** Sets the time of the next status request for an open quote. @param at - Unix ms. */
export async function lookAgainAt(tx: Tx, quoteId: string, at: number): Promise<void> {
  await tx.run("UPDATE quotes SET look_at = ? WHERE id = ? AND state = 'open'", BigInt(at), quoteId);
}

/**
 * Removes quotes that ended unpaid, with their gifts.
 * @param before - Only quotes that expired earlier, Unix ms. @returns How many.
 */
export async function removeEndedQuotes(tx: Tx, before: number, limit: number): Promise<number> {
  const chosen =
    "SELECT id FROM quotes WHERE state IN ('expired', 'failed') AND payment_id IS NULL AND expires_at < ? " +
    "ORDER BY expires_at, id LIMIT ?";
  await tx.run(`DELETE FROM gifts WHERE quote_id IN (${chosen})`, BigInt(before), BigInt(limit));
  return await tx.run(`DELETE FROM quotes WHERE id IN (${chosen})`, BigInt(before), BigInt(limit));
}

/** Whether an account was ever credited with a payment by card. */
export async function hasPaid(tx: Tx, address: UserAddress): Promise<boolean> {
  const row = await tx.get<{ id: string }>(
    "SELECT id FROM quotes WHERE address = ? AND state = 'paid' LIMIT 1",
    address,
  );
  return row !== undefined;
}

const columns =
  "id, method, address, gift_id, currency, payment_amount, quoted_amount, winc, promo_codes, created_at, " +
  "expires_at, state, session_id, payment_id, credited_winc, promo_winc, taken_back_winc";

type QuoteRow = {
  id: string;
  method: string;
  address: string | null;
  gift_id: string | null;
  currency: string;
  payment_amount: bigint;
  quoted_amount: bigint;
  winc: bigint;
  promo_codes: string;
  created_at: bigint;
  expires_at: bigint;
  state: string;
  session_id: string | null;
  payment_id: string | null;
  credited_winc: bigint;
  promo_winc: bigint;
  taken_back_winc: bigint;
};

function readQuote(row: QuoteRow): Quote {
  const method = topUpMethods.find((known) => known === row.method);
  const state = quoteStates.find((known) => known === row.state);
  const address = row.address === null ? undefined : readAddress(row.address)?.address;
  assert(method !== undefined && state !== undefined, "a quote's method and state are known");
  assert((address === undefined) !== (row.gift_id === null), "a quote is for an account or for a gift");
  return {
    id: row.id,
    method,
    address,
    giftId: row.gift_id ?? undefined,
    currency: row.currency,
    paymentAmount: row.payment_amount,
    quotedPaymentAmount: row.quoted_amount,
    winc: row.winc,
    promoCodes: readCodes(row.promo_codes),
    createdAt: readTime(row.created_at),
    expiresAt: readTime(row.expires_at),
    state,
    sessionId: row.session_id ?? undefined,
    paymentId: row.payment_id ?? undefined,
    creditedWinc: row.credited_winc,
    promoWinc: row.promo_winc,
    takenBackWinc: row.taken_back_winc,
  };
}

function readCodes(text: string): string[] {
  const list = readJson(text);
  assert(isJsonArray(list), "promo codes are stored as a list");
  return list.filter((code) => typeof code === "string");
}
