/**
 * The credited payments of an account, newest first, of every payment method.
 *
 * Each kind of payment has its own table; a page merges the newest rows of all of them after the page before.
 * Reading writes nothing.
 * Source: docs/reference/payment.md#routes; the published SDK's `getPaymentHistory`.
 * @module
 */
import { type Row, readTime, type Tx, type Value } from "../../store/ledger/ledger-database.ts";
import { evmChains, type KnownToken, type Token, tokens, type UserAddress } from "../addresses.ts";
import { rational, writeDecimal } from "../prices/rational.ts";

/** A payment that was credited. */
export type PaymentMade = TokenPaymentMade | CardPaymentMade;

type Credited = Readonly<{
  /** Its position in the history. */
  place: PaymentPlace;
  /** Above 0. */
  winc: bigint;
}>;

/** A payment in a token. */
export type TokenPaymentMade = Credited &
  Readonly<{
    kind: "token";
    token: Token;
    /** Smallest unit. */
    quantity: bigint;
    /** The value in US dollars for tokens that are worth a dollar each; decimal. */
    usd: string | undefined;
    sender: string;
    transactionId: string;
    blockHeight: bigint | undefined;
  }>;

/** A payment by card, or a redeemed gift. */
export type CardPaymentMade = Credited &
  Readonly<{
    kind: "card";
    /** Smallest unit of the currency; 0 for a gift. */
    amount: bigint;
    currency: string;
    receiptId: string;
    giftMessage: string | undefined;
  }>;

/** The position of a payment in a history: later times first, then the kinds in a fixed order, then ids. */
export type PaymentPlace = Readonly<{
  /** Unix milliseconds. */
  at: number;
  kind: number;
  id: string;
}>;

/** Payments that one page may hold. */
export const paymentsPageMax = 100;

/** The request of a page. */
export type PaymentsPage = Readonly<{
  /** Only payments that come after this one in the history, exclusive. */
  before: PaymentPlace | undefined;
  /** 1 to `paymentsPageMax` + 1: the extra payment shows whether there is another page. */
  limit: number;
}>;

/** The newest payments of one kind. */
type Source = (tx: Tx, address: UserAddress, page: PaymentsPage) => Promise<PaymentMade[]>;

const sources: readonly Source[] = [cardPayments, redeemedGifts, tokenPayments, x402Payments];

/** Numbers of the kinds: part of cursors that clients hold, and the order among payments of one moment. */
const kinds = { card: 1, gift: 2, token: 3, x402: 4 } as const;

/** Tokens that are worth a dollar each. */
const dollarTokens: readonly KnownToken[] = [...Object.values(evmChains).map(({ usdc }) => usdc), "solana-usdc"];

/** Reads a page; the last page may be shorter. */
export async function readPayments(tx: Tx, address: UserAddress, page: PaymentsPage): Promise<PaymentMade[]> {
  const found: PaymentMade[] = [];
  for (const source of sources) found.push(...(await source(tx, address, page)));
  // The sort is stable: within one moment and kind the order stays the query's.
  found.sort(({ place: left }, { place: right }) => right.at - left.at || right.kind - left.kind);
  return found.slice(0, page.limit);
}

async function cardPayments(tx: Tx, address: UserAddress, page: PaymentsPage): Promise<CardPaymentMade[]> {
  const rows = await newest<{ payment_amount: bigint; currency: string }>(
    tx,
    "SELECT credited_at AS made_at, id, credited_winc AS winc, payment_amount, currency FROM quotes " +
      "WHERE address = ? AND state = 'paid'",
    address,
    kinds.card,
    page,
  );
  return rows.map(({ row, place }) => ({
    kind: "card",
    place,
    winc: row.winc,
    amount: row.payment_amount,
    currency: row.currency,
    receiptId: place.id,
    giftMessage: undefined,
  }));
}

async function redeemedGifts(tx: Tx, address: UserAddress, page: PaymentsPage): Promise<CardPaymentMade[]> {
  const rows = await newest<{ message: string | null; currency: string }>(
    tx,
    "SELECT g.redeemed_at AS made_at, g.quote_id AS id, g.redeemed_winc AS winc, g.message, q.currency " +
      "FROM gifts g JOIN quotes q ON q.id = g.quote_id WHERE g.redeemed_by = ? AND g.state = 'redeemed'",
    address,
    kinds.gift,
    page,
  );
  return rows.map(({ row, place }) => ({
    kind: "card",
    place,
    winc: row.winc,
    // The redeemer of a gift has paid nothing.
    amount: 0n,
    currency: row.currency,
    receiptId: place.id,
    giftMessage: row.message ?? undefined,
  }));
}

type TokenRow = Readonly<{
  token: Token;
  quantity: string;
  sender: string;
  transaction_id: string;
  block_height: bigint | null;
}>;

async function tokenPayments(tx: Tx, address: UserAddress, page: PaymentsPage): Promise<TokenPaymentMade[]> {
  const rows = await newest<TokenRow>(
    tx,
    "SELECT credited_at AS made_at, id, winc, token, quantity, sender, transaction_id, block_height " +
      "FROM token_payments WHERE destination = ? AND state = 'credited'",
    address,
    kinds.token,
    page,
  );
  return rows.map(tokenPaymentMade);
}

/** An x402 payment is a token payment that credits its sender. */
async function x402Payments(tx: Tx, address: UserAddress, page: PaymentsPage): Promise<TokenPaymentMade[]> {
  const rows = await newest<TokenRow>(
    tx,
    "SELECT settled_at AS made_at, id, winc, token, value AS quantity, payer AS sender, " +
      "transaction_hash AS transaction_id, block_height FROM x402_payments WHERE payer = ? AND state = 'settled'",
    address,
    kinds.x402,
    page,
  );
  return rows.map(tokenPaymentMade);
}

function tokenPaymentMade({ row, place }: Made<TokenRow>): TokenPaymentMade {
  const quantity = BigInt(row.quantity);
  const dollarToken = dollarTokens.find((token) => token === row.token);
  return {
    kind: "token",
    place,
    winc: row.winc,
    token: row.token,
    quantity,
    usd: dollarToken === undefined ? undefined : inWholes(quantity, dollarToken),
    sender: row.sender,
    transactionId: row.transaction_id,
    blockHeight: row.block_height ?? undefined,
  };
}

/** An amount of a token in whole ones, decimal. */
function inWholes(quantity: bigint, token: KnownToken): string {
  const places = BigInt(tokens[token].exponent);
  return writeDecimal(rational(quantity, 10n ** places), places);
}

type Made<Shape> = Readonly<{ row: Shape & Readonly<{ winc: bigint }>; place: PaymentPlace }>;

/**
 * The newest rows of a kind.
 *
 * @param rows - A query whose one `?` is the account, with the columns `made_at`, `id` and `winc`.
 */
async function newest<Shape extends Row>(
  tx: Tx,
  rows: string,
  address: UserAddress,
  kind: number,
  { before, limit }: PaymentsPage,
): Promise<Made<Shape>[]> {
  const bound = before === undefined ? { where: "", values: [] } : boundOf(kind, before);
  const found = await tx.all<Shape & { made_at: bigint; id: string; winc: bigint }>(
    `SELECT * FROM (${rows}) AS made ${bound.where} ORDER BY made_at DESC, id DESC LIMIT ?`,
    address,
    ...bound.values,
    BigInt(limit),
  );
  return found.map((row) => ({ row, place: { at: readTime(row.made_at), kind, id: row.id } }));
}

/** The bound of one kind's payments after a position in the merged history. */
function boundOf(kind: number, before: PaymentPlace): Readonly<{ where: string; values: readonly Value[] }> {
  const at = BigInt(before.at);
  if (kind < before.kind) return { where: "WHERE made_at <= ?", values: [at] };
  if (kind > before.kind) return { where: "WHERE made_at < ?", values: [at] };
  return { where: "WHERE made_at < ? OR (made_at = ? AND id < ?)", values: [at, at, before.id] };
}
