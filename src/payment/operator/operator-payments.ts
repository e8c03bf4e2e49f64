/**
 * Payments of all methods and accounts for the operator, newest first, and what a refund of one would do.
 *
 * Reading writes nothing.
 * Source: docs/reference/payment.md#actions-of-operators.
 * @module
 */
import { decimalText } from "../../lib/quantity-text.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { balanceOf } from "../../store/ledger/transfers.ts";
import { readToken, type UserAddress } from "../addresses.ts";
import { findPayment } from "../cards/card-event-store.ts";
import { holderOf } from "../cards/card-settlement.ts";
import { decimalsOf, type PriceRules } from "../prices/price-rules.ts";
import { writeMoney } from "../prices/price-types.ts";
import { findQuote, type Quote } from "../top-ups/quotes.ts";

export const paymentMethods = ["card", "token", "x402"] as const;

/** A credited payment. */
export type OperatorPayment = Readonly<{
  id: string;
  method: (typeof paymentMethods)[number];
  /** The credited account; undefined for a gift. */
  account: string | undefined;
  /** Unix milliseconds. */
  at: number;
  /** Credits that the payment bought. */
  winc: bigint;
  /** The part of it that refunds, disputes and reversals withhold now. */
  withheldWinc: bigint;
  /** Of the smallest unit of `currency`, decimal. */
  amount: string;
  /** A currency, or a token. */
  currency: string;
}>;

/** The position of a payment in the list. */
export type PaymentPosition = Readonly<{ at: number; id: string }>;

export type OperatorPaymentsPage = Readonly<{
  account: UserAddress | undefined;
  /** Only payments after this one in the list, exclusive. */
  after: PaymentPosition | undefined;
  limit: number;
}>;

/** Effect of a refund of a card payment on the credits that the payment bought. */
export type RefundEffect = Readonly<{
  /** Amount that the provider pays back: the payment less its earlier refunds, in the currency's smallest unit. */
  amount: bigint;
  /** Credits that the refund takes back. */
  winc: bigint;
  /** The part of them that the account has spent: it becomes its debt. */
  spentWinc: bigint;
}>;

const all = (account: boolean) => {
  const of = (column: string) => (account ? ` AND ${column} = ?` : "");
  return (
    "SELECT id, 'card' AS method, address AS account, credited_at AS made_at, credited_winc AS winc, " +
    "taken_back_winc AS withheld, CAST(payment_amount AS TEXT) AS amount, currency " +
    `FROM quotes WHERE state = 'paid'${of("address")} UNION ALL ` +
    "SELECT id, 'token', destination, credited_at, winc, CASE state WHEN 'reversed' THEN winc ELSE 0 END, " +
    `quantity, token FROM token_payments WHERE state IN ('credited', 'reversed')${of("destination")} UNION ALL ` +
    "SELECT id, 'x402', payer, settled_at, winc, CASE state WHEN 'reversed' THEN winc ELSE 0 END, " +
    `value, token FROM x402_payments WHERE state IN ('settled', 'reversed')${of("payer")}`
  );
};

type PaymentRow = Readonly<{
  id: string;
  method: OperatorPayment["method"];
  account: string | null;
  made_at: bigint;
  winc: bigint;
  withheld: bigint;
  amount: string;
  currency: string;
}>;

/** Reads a page. */
export async function listPayments(tx: Tx, page: OperatorPaymentsPage): Promise<OperatorPayment[]> {
  const { account, after, limit } = page;
  const accounts = account === undefined ? [] : [account, account, account];
  const bound = after === undefined ? [] : [BigInt(after.at), BigInt(after.at), after.id];
  const where = after === undefined ? "" : "WHERE made_at < ? OR (made_at = ? AND id < ?)";
  const rows = await tx.all<PaymentRow>(
    `SELECT * FROM (${all(account !== undefined)}) AS made ${where} ORDER BY made_at DESC, id DESC LIMIT ?`,
    ...[...accounts, ...bound, BigInt(limit)],
  );
  return rows.map(readPayment);
}

/** Finds a payment by its id. */
export async function findOperatorPayment(tx: Tx, id: string): Promise<OperatorPayment | undefined> {
  const row = await tx.get<PaymentRow>(`SELECT * FROM (${all(false)}) AS made WHERE id = ?`, id);
  return row && readPayment(row);
}

function readPayment({ account, made_at, withheld, ...rest }: PaymentRow): OperatorPayment {
  return { ...rest, account: account ?? undefined, at: readTime(made_at), withheldWinc: withheld };
}

/**
 * The paid amount for people: `25.00 USD`, `0.5 native`; in smallest units for a token without a rule.
 *
 * @param amount - Of the smallest unit.
 */
export function paidText(
  { method, currency }: Pick<OperatorPayment, "method" | "currency">,
  amount: bigint,
  rules: Pick<PriceRules, "tokens">,
): string {
  if (method === "card") return writeMoney(amount, currency);
  const token = readToken(currency);
  const decimals = token && decimalsOf(rules, token);
  if (decimals === undefined) return `${amount} of the smallest unit of ${currency}`;
  const text = decimalText(amount, decimals);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${currency}`;
}

/** Effect of a refund now; undefined for a payment that is not by card, or is refunded already. */
export async function refundEffect(tx: Tx, id: string): Promise<RefundEffect | undefined> {
  const quote = await findQuote(tx, id);
  if (quote?.state !== "paid" || quote.takenBackWinc >= quote.creditedWinc) return undefined;
  const refunded = (await findPayment(tx, quote.paymentId ?? ""))?.refunded ?? 0n;
  const amount = quote.paymentAmount > refunded ? quote.paymentAmount - refunded : 0n;
  return { amount, winc: quote.creditedWinc - quote.takenBackWinc, spentWinc: await spentOf(tx, quote) };
}

async function spentOf(tx: Tx, quote: Quote): Promise<bigint> {
  const winc = quote.creditedWinc - quote.takenBackWinc;
  const balance = await balanceOf(tx, await holderOf(tx, quote));
  const rest = balance > 0n ? balance : 0n;
  return winc > rest ? winc - rest : 0n;
}
