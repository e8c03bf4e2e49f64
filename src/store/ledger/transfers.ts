/**
 * Movements of credits: balanced double entries, written in the transaction of the state that they belong to.
 *
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { type Account, continuation, continuationBounds, isGuarded } from "./accounts.ts";
import type { Tx, Value } from "./database.ts";
import { amountMax } from "./limits.ts";

/** One side of a transfer, winc: + into the account, − out of it. */
export type Leg = Readonly<{ account: Account; amount: bigint }>;

/** A movement. */
export type Transfer = Readonly<{
  /** Sorts by time (transfer-ids.ts). */
  id: string;
  kind: TransferKind;
  /** Unix milliseconds. */
  at: number;
  /** Sum to zero; legs of one account are added up, empty ones left out. */
  legs: readonly Leg[];
  /** What caused it: the id of an item, a payment, an approval, a gift. */
  changeId?: string | undefined;
  /** For people. */
  note?: string | undefined;
}>;

/** Why credits move; owners of rules add theirs. */
export const transferKinds = [
  "payment",
  "token_payment",
  "x402_payment",
  "gift_payment",
  "gift_redemption",
  "promotion",
  "approval",
  "approval_revoked",
  "approval_expired",
  "reservation",
  "reservation_posted",
  "reservation_voided",
  "reservation_expired",
  "upload",
  "reading",
  "prepayment",
  "refund",
  "chargeback",
  "reversal",
  "adjustment",
] as const;

/** Why credits move. */
export type TransferKind = (typeof transferKinds)[number];

/** Kinds that take back what was never paid: they alone may leave a debt. */
const debtKinds: readonly TransferKind[] = ["chargeback", "reversal"];

/**
 * Moves credits between accounts.
 *
 * Everything is checked before anything is written, so a caller may catch the failure and go on.
 * @throws Failure `insufficient_balance` {account, needed, available} when an account of a user, an approval, a
 *   reservation or a gift would fall below zero, but for chargebacks and reversals; `payment_rejected` {reason} when
 *   an amount, or the balance of such an account, would pass ±`amountMax`. All other accounts go on without end.
 */
export async function transfer(tx: Tx, movement: Transfer): Promise<void> {
  const legs = merged(movement.legs);
  const sum = legs.reduce((total, { amount }) => total + amount, 0n);
  assert(sum === 0n, "the legs of a transfer sum to zero");
  const balances = await balancesOf(
    tx,
    legs.map(({ account }) => account),
  );
  const placed: Leg[] = [];
  for (const leg of legs) placed.push(await place(tx, leg, balances.get(leg.account) ?? 0n, movement.kind));

  // Asked for together: a database behind a socket gets them in one go, in this order.
  const transferRow = tx.run(
    "INSERT INTO transfers (id, kind, at, change_id, note) VALUES (?, ?, ?, ?, ?)",
    movement.id,
    movement.kind,
    BigInt(movement.at),
    movement.changeId ?? null,
    movement.note ?? null,
  );
  await Promise.all([transferRow, ...placed.flatMap((leg) => writeLeg(tx, movement.id, leg))]);
}

function writeLeg(tx: Tx, transferId: string, { account, amount }: Leg): Promise<number>[] {
  const balance = tx.run(
    "INSERT INTO accounts (account, balance) VALUES (?, ?) " +
      "ON CONFLICT (account) DO UPDATE SET balance = accounts.balance + excluded.balance",
    account,
    amount,
  );
  const entry = tx.run(
    "INSERT INTO entries (account, transfer_id, amount) VALUES (?, ?, ?)",
    account,
    transferId,
    amount,
  );
  return [balance, entry];
}

/** What an account that is someone's holds, winc; `undefined` when nothing ever moved there. */
export async function findBalance(tx: Tx, account: Account): Promise<bigint | undefined> {
  const row = await tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = ?", account);
  return row?.balance;
}

/** What an account holds, winc, with all in which it goes on; 0 when nothing ever moved there. */
export async function balanceOf(tx: Tx, account: Account): Promise<bigint> {
  const first = (await findBalance(tx, account)) ?? 0n;
  if (isGuarded(account)) return first;
  const rows = await tx.all<{ balance: bigint }>(
    "SELECT balance FROM accounts WHERE account > ? AND account < ?",
    ...continuationBounds(account),
  );
  return rows.reduce((sum, { balance }) => sum + balance, first);
}

/** A movement, as one account sees it. */
export type HistoryEntry = Readonly<{
  transferId: string;
  kind: TransferKind;
  /** Unix milliseconds. */
  at: number;
  /** Winc, + into the account. */
  amount: bigint;
  changeId: string | undefined;
  note: string | undefined;
}>;

/**
 * The movements of an account, newest first.
 *
 * @param page.before - Only those older than this transfer, exclusive.
 * @param page.limit - At most so many.
 */
export async function historyOf(
  tx: Tx,
  account: Account,
  page: Readonly<{ before?: string | undefined; limit: number }>,
): Promise<HistoryEntry[]> {
  const bound: Value[] = page.before === undefined ? [] : [page.before];
  const rows = await tx.all<HistoryRow>(
    "SELECT t.id, t.kind, t.at, e.amount, t.change_id, t.note " +
      "FROM entries e JOIN transfers t ON t.id = e.transfer_id " +
      `WHERE e.account = ? ${page.before === undefined ? "" : "AND e.transfer_id < ?"} ` +
      "ORDER BY e.transfer_id DESC LIMIT ?",
    account,
    ...bound,
    BigInt(page.limit),
  );
  return rows.map((row) => ({
    transferId: row.id,
    kind: readKind(row.kind),
    at: Number(row.at),
    amount: row.amount,
    changeId: row.change_id ?? undefined,
    note: row.note ?? undefined,
  }));
}

type HistoryRow = {
  id: string;
  kind: string;
  at: bigint;
  amount: bigint;
  change_id: string | null;
  note: string | null;
};

function readKind(text: string): TransferKind {
  const kind = transferKinds.find((known) => known === text);
  assert(kind !== undefined, "a transfer's kind is known");
  return kind;
}

/** One leg an account, in the order of account names, so that two transfers never lock each other out. */
function merged(legs: readonly Leg[]): Leg[] {
  const amounts = new Map<Account, bigint>();
  for (const { account, amount } of legs) amounts.set(account, (amounts.get(account) ?? 0n) + amount);
  return [...amounts]
    .map(([account, amount]) => ({ account, amount }))
    .filter(({ amount }) => amount !== 0n)
    .sort((left, right) => (left.account < right.account ? -1 : 1));
}

async function balancesOf(tx: Tx, accounts: readonly Account[]): Promise<Map<string, bigint>> {
  if (accounts.length === 0) return new Map();
  const marks = accounts.map(() => "?").join(", ");
  const rows = await tx.all<{ account: string; balance: bigint }>(
    `SELECT account, balance FROM accounts WHERE account IN (${marks})`,
    ...accounts,
  );
  return new Map(rows.map(({ account, balance }) => [account, balance]));
}

/** The leg as it is written: of what is nobody's, the first part that has room for it. */
async function place(tx: Tx, leg: Leg, balance: bigint, kind: TransferKind): Promise<Leg> {
  const { account, amount } = leg;
  if (isGuarded(account) || !fits(amount)) {
    checkLeg(leg, balance, kind);
    return leg;
  }
  let placed = account;
  let held = balance;
  for (let part = 2n; !fits(held + amount); part += 1n) {
    placed = continuation(account, part);
    held = (await findBalance(tx, placed)) ?? 0n;
  }
  return { account: placed, amount };
}

function checkLeg({ account, amount }: Leg, balance: bigint, kind: TransferKind): void {
  const after = balance + amount;
  if (!fits(amount) || !fits(after))
    throw new Failure("payment_rejected", {
      reason: "The amount is larger than an account can hold",
      account,
      amount,
    });
  if (amount < 0n && after < 0n && isGuarded(account) && !debtKinds.includes(kind))
    throw new Failure("insufficient_balance", { account, needed: -amount, available: balance });
}

function fits(winc: bigint): boolean {
  return winc <= amountMax && winc >= -amountMax;
}
