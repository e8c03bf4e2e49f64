/**
 * Accounts, transfers between them, and the outside events that cause transfers.
 *
 * A transfer is a balanced double entry, written in the transaction of the state that it belongs to. Credits come from
 * a provider, whose account goes below zero by that amount; they go to a user, wait in escrow or on hold, and end as
 * revenue. The sum over all accounts is always zero.
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { amountMax, type Tx, type Value } from "./ledger-database.ts";

/** The name of an account; made only here. */
export type Account = string & { readonly __brand: "Account" };

/** Prefixes before the colon. Accounts of the first four kinds belong to a client and cannot go below zero. */
const guardedKinds = ["user", "escrow", "held", "gift"] as const;
const kinds = [...guardedKinds, "provider"] as const;

/** Credits of an address in canonical form. */
export const user = (address: string): Account => named("user", address);
/** Credits that an approval sets aside for the approved address. */
export const escrow = (approvalId: string): Account => named("escrow", approvalId);
/** Credits that a reservation holds until the upload is posted. */
export const held = (reservationId: string): Account => named("held", reservationId);
/** Credits of a gift until it is redeemed. */
export const gift = (giftId: string): Account => named("gift", giftId);
/** The source of paid credits: `stripe`, `x402`, or a token. */
export const provider = (name: string): Account => named("provider", name);

/** Charges for uploads, and for reading beyond the limits. */
export const revenue = "revenue" as Account;
/** The source of unpaid credits: promotions and free allowances. */
export const promo = "promo" as Account;
/** Corrections by an operator. */
export const adjustment = "adjustment" as Account;

/**
 * The account that continues a full operator account: a balance has 64 bits, and an operator's revenue has no limit.
 *
 * @param part - 2 or more; the account itself is the first part.
 */
function continuation(account: Account, part: bigint): Account {
  assert(!isGuarded(account) && part >= 2n, "only operator accounts have continuations");
  return `${account}${partMark}${part}` as Account;
}

/** The bounds of the names of an account's continuations, both exclusive, compared by bytes. */
function continuationBounds(account: Account): readonly [above: string, below: string] {
  return [`${account}${partMark}`, `${account}${String.fromCharCode(partMark.charCodeAt(0) + 1)}`];
}

/** Does not occur in names of providers. */
const partMark = "#";

/** Whether the account belongs to a client, so that it must not go below zero. */
function isGuarded(account: Account): boolean {
  return guardedKinds.some((kind) => account.startsWith(`${kind}:`));
}

function named(kind: (typeof kinds)[number], name: string): Account {
  assert(name !== "", "an account has a name");
  return `${kind}:${name}` as Account;
}

/**
 * Makes ids of transfers; each sorts after the one before.
 *
 * 10 characters of Unix milliseconds, 4 of a counter within the millisecond, 12 random; lower-case base 32.
 */
export type MakeId = () => string;

/** Crockford's digits: they sort as their values do, in every collation. */
const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 10;
const countDigits = 4;
const randomDigits = 12;
/** Ids of one millisecond; the next id uses the following millisecond. */
const perMillisecondMax = 32 ** countDigits;

/**
 * Creates a maker of ids.
 *
 * @param random - Numbers in [0, 1); they keep ids of several processes apart.
 */
export function createTransferIds(clock: Clock, random: () => number): MakeId {
  let last = 0;
  let count = 0;
  return () => {
    const now = clock();
    // A clock that is set back must not make ids that sort before older ones.
    if (now > last) {
      last = now;
      count = 0;
    } else if (count + 1 < perMillisecondMax) {
      count += 1;
    } else {
      last += 1;
      count = 0;
    }
    const chance = Array.from({ length: randomDigits }, () => digits.charAt(Math.floor(random() * 32)));
    return `${inDigits(last, timeDigits)}${inDigits(count, countDigits)}${chance.join("")}`;
  };
}

/** The first id of a moment: ids of earlier moments sort before it. @param at - Unix milliseconds. */
export function firstIdAt(at: number): string {
  return inDigits(at, timeDigits);
}

function inDigits(value: number, length: number): string {
  let rest = value;
  let text = "";
  for (let place = 0; place < length; place += 1) {
    text = digits.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** One side of a transfer, winc: + into the account, − out of it. */
export type Leg = Readonly<{ account: Account; amount: bigint }>;

type Transfer = Readonly<{
  /** Sorts by time (`createTransferIds`). */
  id: string;
  kind: TransferKind;
  /** Unix milliseconds. */
  at: number;
  /** Sum to zero; legs of one account are added up, empty ones left out. */
  legs: readonly Leg[];
  /** The cause: the id of an item, a payment, an approval, a gift. */
  changeId?: string | undefined;
  /** Text for readers of the history. */
  note?: string | undefined;
}>;

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

/** Only kinds that take back unpaid credits may leave a debt. */
const debtKinds: readonly TransferKind[] = ["chargeback", "reversal"];

/**
 * Moves credits between accounts.
 *
 * Everything is checked before anything is written, so a caller may catch the failure and go on.
 * @throws Failure `insufficient_balance` {account, needed, available} when an account of a user, an approval, a
 *   reservation or a gift would fall below zero, but for chargebacks and reversals; `payment_rejected` {reason} when
 *   an amount, or the balance of such an account, would pass ±`amountMax`.
 *   Other accounts continue in further accounts.
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

  // Sent together: a database behind a socket gets them in one message, in this order.
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

/** The balance of a client's account, winc; `undefined` when it has no entries. */
export async function findBalance(tx: Tx, account: Account): Promise<bigint | undefined> {
  const row = await tx.get<{ balance: bigint }>("SELECT balance FROM accounts WHERE account = ?", account);
  return row?.balance;
}

/** The balance of an account with its continuations, winc; 0 without entries. */
export async function balanceOf(tx: Tx, account: Account): Promise<bigint> {
  const first = (await findBalance(tx, account)) ?? 0n;
  if (isGuarded(account)) return first;
  const rows = await tx.all<{ balance: bigint }>(
    "SELECT balance FROM accounts WHERE account > ? AND account < ?",
    ...continuationBounds(account),
  );
  return rows.reduce((sum, { balance }) => sum + balance, first);
}

/** A transfer as one account sees it. */
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

/** One leg an account, in the order of account names, so that two transfers never deadlock. */
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

/** The leg to write: for operator accounts, in the first continuation with enough space. */
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

/**
 * Claims an outside event (a chain's transaction, a webhook, an x402 authorization) for this transaction.
 *
 * @param source - Where it happened: a provider, a chain, a network with its asset.
 * @param canonicalId - Its name there, in the one form that equal events share.
 * @param at - Unix milliseconds.
 * @returns True for exactly one committed transaction; its caller moves the credits in the same transaction.
 */
export async function claimEvent(tx: Tx, source: string, canonicalId: string, at: number): Promise<boolean> {
  const claimed = await tx.run(
    "INSERT INTO events (source, event_id, at) VALUES (?, ?, ?) ON CONFLICT (source, event_id) DO NOTHING",
    source,
    canonicalId,
    BigInt(at),
  );
  return claimed === 1;
}
