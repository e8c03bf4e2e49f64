/**
 * Liabilities and revenue of the ledger, as metrics and for the console.
 *
 * All accounts sum to zero, so the credits of clients are the opposite of the few operator accounts. A read costs a few
 * rows, however many clients there are. Transfers are counted since the start of the program.
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import type { Metrics } from "../lib/metrics.ts";
import { type LedgerDatabase, readCount, type Tx } from "../store/ledger/ledger-database.ts";
import { transferKinds } from "../store/ledger/transfers.ts";
import { tokenNames } from "./addresses.ts";

/** Totals of the ledger. Winc. */
export type LedgerStats = Readonly<{
  /** Credits that clients own: balances, approvals, reservations and gifts. */
  liabilities: bigint;
  /** Charges for uploads and reading. */
  revenue: bigint;
  /** Credits that were given without a payment. */
  promotions: bigint;
  /** Credits by corrections; negative when more were withdrawn. */
  adjustments: bigint;
  /** Credits that were paid for, by provider, less refunds. */
  paid: Readonly<Record<string, bigint>>;
  /** Transfers since the start, by kind. */
  transfers: Readonly<Record<string, number>>;
  /** Found transactions that the server of their chain cannot give, by token: what they pay is not credited yet. */
  unread: Readonly<Record<string, number>>;
}>;

export type LedgerMonitor = Readonly<{
  /** Reads the ledger, at most once a second. */
  read: () => Promise<LedgerStats>;
  /** The result of the last read; undefined before the first. */
  last: () => LedgerStats | undefined;
}>;

/** Reads within this time share a result. Milliseconds. */
const freshMs = 1_000;

/** Most accounts of providers, with their continuations, that one read lists. */
const providersMax = 1_000;

/** Adds the metrics of money. @param clock - Unix milliseconds. */
export function createLedgerMonitor(metrics: Metrics, ledger: LedgerDatabase, clock: () => number): LedgerMonitor {
  const transfers = new Map<string, number>();
  let counted: string | undefined;
  let last: LedgerStats | undefined;
  let running: Promise<LedgerStats> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;

  const readAll = async (): Promise<LedgerStats> => {
    const { balances, unread, kinds, upTo } = await ledger.read(async (tx) => ({
      balances: await operatorBalances(tx),
      unread: await unreadByToken(tx),
      ...(await newTransfers(tx, counted)),
    }));
    counted = upTo;
    for (const [kind, count] of kinds) transfers.set(kind, (transfers.get(kind) ?? 0) + count);
    last = { ...totalsOf(balances), transfers: Object.fromEntries(transfers), unread: Object.fromEntries(unread) };
    return last;
  };
  const read = (): Promise<LedgerStats> => {
    const now = clock();
    if (running === undefined || Math.abs(now - readAt) >= freshMs) {
      running = readAll();
      readAt = now;
    }
    return running;
  };

  addMetrics(metrics, read);
  return { read, last: () => last };
}

function addMetrics(metrics: Metrics, read: LedgerMonitor["read"]): void {
  metrics.gaugesOf({
    name: "ledger_winc",
    help: "Credits in winc: of clients (liabilities), earned (revenue), given (promotions), corrected (adjustments).",
    label: "total",
    values: ["liabilities", "revenue", "promotions", "adjustments"],
    read: async () => {
      const { liabilities, revenue, promotions, adjustments } = await read();
      return { liabilities, revenue, promotions, adjustments };
    },
  });
  metrics.gaugesOf({
    name: "ledger_paid_winc",
    help: "Credits in winc that were paid for, less refunds, by provider.",
    label: "provider",
    values: knownProviders,
    read: async () => (await read()).paid,
  });
  metrics.gaugesOf({
    name: "ledger_transfers",
    help: "Transfers since the start, by kind: payment, token_payment and x402_payment are top-ups.",
    label: "kind",
    values: transferKinds,
    read: async () => (await read()).transfers,
  });
  metrics.gaugesOf({
    name: "token_transactions_unread",
    help: "Found transactions that the server of their chain cannot give: what they pay is not credited yet.",
    label: "token",
    values: tokenNames,
    read: async () => (await read()).unread,
  });
}

/** Providers of payments; a listed token counts as `other`. */
const knownProviders = ["stripe", "x402", ...tokenNames];

type Balances = readonly Readonly<{ account: string; balance: bigint }>[];

/** The accounts that belong to no client. */
async function operatorBalances(tx: Tx): Promise<Balances> {
  const rows: { account: string; balance: bigint }[] = [];
  const bounds = [
    ["provider:", "provider;"],
    ...["revenue", "promo", "adjustment"].map((name) => [name, `${name}$`] as const),
  ] as const;
  for (const [first, end] of bounds)
    rows.push(
      ...(await tx.all<{ account: string; balance: bigint }>(
        "SELECT account, balance FROM accounts WHERE account >= ? AND account < ? ORDER BY account LIMIT ?",
        ...[first, end, BigInt(providersMax)],
      )),
    );
  return rows;
}

/** Transfers after the one that was counted last. Before the first count there are none: the count begins. */
async function newTransfers(tx: Tx, after: string | undefined) {
  const newest = await tx.get<{ id: string }>("SELECT id FROM transfers ORDER BY id DESC LIMIT 1");
  const upTo = newest?.id ?? "";
  if (after === undefined || upTo <= after) return { kinds: [], upTo: after ?? upTo };
  const rows = await tx.all<{ kind: string; count: bigint }>(
    "SELECT kind, COUNT(*) AS count FROM transfers WHERE id > ? AND id <= ? GROUP BY kind",
    ...[after, upTo],
  );
  return { kinds: rows.map(({ kind, count }) => [kind, readCount(count)] as const), upTo };
}

async function unreadByToken(tx: Tx): Promise<(readonly [token: string, count: number])[]> {
  const rows = await tx.all<{ token: string; count: bigint }>(
    "SELECT token, COUNT(*) AS count FROM token_unread GROUP BY token",
  );
  return rows.map(({ token, count }) => [token, readCount(count)]);
}

function totalsOf(balances: Balances): Omit<LedgerStats, "transfers" | "unread"> {
  const sum = (name: string) =>
    balances
      .filter(({ account }) => account === name || account.startsWith(`${name}#`))
      .reduce((total, { balance }) => total + balance, 0n);
  const paid = new Map<string, bigint>();
  for (const { account, balance } of balances) {
    const provider = /^provider:([^#]*)/.exec(account)?.[1];
    if (provider !== undefined) paid.set(provider, (paid.get(provider) ?? 0n) - balance);
  }
  const all = balances.reduce((total, { balance }) => total + balance, 0n);
  return {
    liabilities: -all,
    revenue: sum("revenue"),
    promotions: -sum("promo"),
    adjustments: -sum("adjustment"),
    paid: Object.fromEntries(paid),
  };
}
