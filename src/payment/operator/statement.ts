/**
 * The statement of a month: for each account of the operator and each kind of clients' accounts the opening balance,
 * the sum of each kind of transfer, and the closing balance.
 *
 * A transfer belongs to the month of its id, which has the time at which it was written: the closing balance of a
 * month is the opening balance of the next one, and all closing balances sum to zero. Months are in UTC.
 * Source: docs/reference/payment.md#statements.
 * @module
 */
import { readCount, type Tx } from "../../store/ledger/ledger-database.ts";
import { firstIdAt, type TransferKind, transferKinds } from "../../store/ledger/transfers.ts";

/** A month. Bounds are Unix milliseconds: `from` inclusive, `to` exclusive. */
export type Month = Readonly<{ name: string; from: number; to: number }>;

/** The part of an account, or of all accounts of one kind. Winc. */
export type StatementAccount = Readonly<{
  account: string;
  opening: bigint;
  lines: readonly Readonly<{ kind: TransferKind; entries: number; winc: bigint }>[];
  closing: bigint;
}>;

/** Reads a month such as `2026-11`; `undefined` for other texts. */
export function readMonth(name: string): Month | undefined {
  if (!/^20\d\d-(0[1-9]|1[0-2])$/.test(name)) return undefined;
  const first = new Date(`${name}-01T00:00:00Z`);
  return { name, from: first.getTime(), to: Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1) };
}

/** Accounts of clients are summed by kind. */
const classes = [
  ["user", "users"],
  ["escrow", "approvals"],
  ["held", "reservations"],
  ["gift", "gifts"],
] as const;
function classSql(column: string): string {
  const cases = classes.map(([kind, name]) => `WHEN ${column} LIKE '${kind}:%' THEN '${name}'`);
  return `CASE ${cases.join(" ")} ELSE ${column} END`;
}

/** Sums are taken of the upper and the lower half: SQLite fails when a partial sum exceeds 64 bits. */
const half = 2n ** 32n;
const sums = (column: string) =>
  `CAST(SUM(${column} / ${half}) AS BIGINT) AS high, CAST(SUM(${column} % ${half}) AS BIGINT) AS low`;

type Sum = Readonly<{ name: string; high: bigint; low: bigint }>;

/** Reads the statement of a month: one pass over the entries. Accounts are in the order of their names. */
export async function readStatement(tx: Tx, { from, to }: Month): Promise<StatementAccount[]> {
  const [first, end] = [firstIdAt(from), firstIdAt(to)];
  const balances = await tx.all<Sum>(
    `SELECT ${classSql("account")} AS name, ${sums("balance")} FROM accounts GROUP BY 1`,
  );
  const later = await tx.all<Sum>(
    `SELECT ${classSql("account")} AS name, ${sums("amount")} FROM entries WHERE transfer_id >= ? GROUP BY 1`,
    end,
  );
  const moved = await tx.all<Sum & { kind: TransferKind; entries: bigint }>(
    `SELECT ${classSql("e.account")} AS name, t.kind, COUNT(*) AS entries, ${sums("e.amount")} FROM entries e ` +
      "JOIN transfers t ON t.id = e.transfer_id WHERE e.transfer_id >= ? AND e.transfer_id < ? GROUP BY 1, t.kind",
    ...[first, end],
  );
  const names = [...new Set(balances.map(({ name }) => wholeName(name)))].sort();
  return names.map((account) => {
    const ofAccount = <Row extends Sum>(rows: readonly Row[]) => rows.filter(({ name }) => wholeName(name) === account);
    const own = ofAccount(moved);
    const lines = transferKinds.flatMap((kind) => {
      const rows = own.filter((row) => row.kind === kind);
      const entries = rows.reduce((count, row) => count + readCount(row.entries), 0);
      return entries === 0 ? [] : [{ kind, entries, winc: totalOf(rows) }];
    });
    const closing = totalOf(ofAccount(balances)) - totalOf(ofAccount(later));
    return { account, opening: closing - totalOf(own), lines, closing };
  });
}

/** An account with its continuations (`revenue#2`) is one account. */
function wholeName(name: string): string {
  return name.replace(/#\d+$/, "");
}

function totalOf(rows: readonly Sum[]): bigint {
  return rows.reduce((sum, { high, low }) => sum + high * half + low, 0n);
}

/** The statement as CSV (RFC 4180), with a header. Names of accounts and kinds need no quotes. */
export function writeStatement(month: Month, accounts: readonly StatementAccount[]): string {
  const rows = accounts.flatMap(({ account, opening, lines, closing }) => [
    [month.name, account, "opening", "", opening],
    ...lines.map(({ kind, entries, winc }) => [month.name, account, kind, entries, winc]),
    [month.name, account, "closing", "", closing],
  ]);
  const total = accounts.reduce((sum, { closing }) => sum + closing, 0n);
  const all = [["month", "account", "line", "entries", "winc"], ...rows, [month.name, "all", "closing", "", total]];
  return all.map((row) => `${row.join(",")}\r\n`).join("");
}
