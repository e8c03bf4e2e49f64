/**
 * Accounts for the operator: the list, one account with its history, and movements with operator and reason.
 *
 * A grant gives unpaid credits, out of the account of promotions. An adjustment corrects an account in either
 * direction, against the account of adjustments, and never takes it below zero.
 * Source: docs/reference/payment.md#actions-of-operators.
 * @module
 */
import { Failure, rejected } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import {
  adjustment,
  balanceOf,
  type HistoryEntry,
  historyOf,
  type MakeId,
  promo,
  transfer,
  user,
} from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
import { type Balance, readBalance } from "../credits/credits.ts";
import { type ActionOrder, actionChangeId, actionNote, performOnce } from "./operator-actions.ts";

/** The accounts, and what an operator may do to them. */
export type OperatorAccounts = Readonly<{
  /** Accounts by address, which is their order. @param page.after - Exclusive. */
  list: (page: Readonly<{ after: string | undefined; limit: number }>) => Promise<readonly AccountLine[]>;
  /**
   * @param page.before - Only transfers before this one, exclusive.
   * @returns Undefined for an address without credits ever.
   */
  show: (
    address: UserAddress,
    page: Readonly<{ before: string | undefined; limit: number }>,
  ) => Promise<AccountPage | undefined>;
  /**
   * Moves credits into an account, or out of it; durable when it resolves, once for each idempotency key.
   *
   * @throws Failure `idempotency_conflict`; `payment_rejected` with the reason when the account would fall below
   *   zero, or is full.
   */
  move: (movement: Movement) => Promise<JsonObject>;
}>;

/** An account of the list. */
export type AccountLine = Readonly<{ address: string; winc: bigint }>;

export type AccountPage = Readonly<{ balance: Balance; history: readonly HistoryEntry[] }>;

export type Movement = ActionOrder &
  Readonly<{
    kind: "grant" | "adjust";
    address: UserAddress;
    /** Not 0; above 0 for a grant. */
    winc: bigint;
  }>;

/** Rows of one page. */
export const accountsPageMax = 1_000;

export type OperatorAccountsParts = Readonly<{ ledger: LedgerDatabase; clock: Clock; makeId: MakeId }>;

export function createOperatorAccounts({ ledger, clock, makeId }: OperatorAccountsParts): OperatorAccounts {
  return {
    list: (page) => ledger.read((tx) => listAccounts(tx, page)),
    show: (address, page) => {
      const now = clock();
      return ledger.read(async (tx) => {
        const balance = await readBalance(tx, address, now);
        return balance && { balance, history: await historyOf(tx, user(address), page) };
      });
    },
    move: async (movement) => {
      const at = clock();
      try {
        return await ledger.write((tx) => move(tx, movement, at, makeId));
      } catch (error) {
        throw inWords(error);
      }
    },
  };
}

const userPrefix = user("x").slice(0, -1);
/** After every account of a user, compared by bytes. */
const afterUsers = userPrefix.replace(":", ";");

async function listAccounts(
  tx: Tx,
  { after, limit }: Readonly<{ after: string | undefined; limit: number }>,
): Promise<AccountLine[]> {
  const rows = await tx.all<{ account: string; balance: bigint }>(
    "SELECT account, balance FROM accounts WHERE account > ? AND account < ? ORDER BY account LIMIT ?",
    ...[`${userPrefix}${after ?? ""}`, afterUsers, BigInt(limit)],
  );
  return rows.map(({ account, balance }) => ({ address: account.slice(userPrefix.length), winc: balance }));
}

async function move(tx: Tx, movement: Movement, at: number, makeId: MakeId): Promise<JsonObject> {
  const { kind, address, winc, idempotencyKey, operator, reason } = movement;
  const action = { kind, subject: address, winc, idempotencyKey, operator, reason, at };
  return await performOnce(tx, action, async () => {
    const id = makeId();
    await transfer(tx, {
      id,
      kind: kind === "grant" ? "promotion" : "adjustment",
      at,
      changeId: actionChangeId(idempotencyKey),
      note: actionNote(movement),
      legs: [
        { account: kind === "grant" ? promo : adjustment, amount: -winc },
        { account: user(address), amount: winc },
      ],
    });
    const balance = await balanceOf(tx, user(address));
    const done = { kind, address, winc: winc.toString(), balance: balance.toString(), transferId: id, at };
    return { ...done, operator, reason, idempotencyKey };
  });
}

/** The ledger's failure in words for an operator. */
function inWords(error: unknown): unknown {
  if (!(error instanceof Failure) || error.code !== "insufficient_balance") return error;
  const { needed, available } = error.context;
  return rejected(`The account has ${available} winc: ${needed} winc cannot be taken from it`);
}
