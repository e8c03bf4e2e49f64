/**
 * Totals of the ledger for the operator: from the operator's accounts, and equal to what clients own.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createMetrics, type Metrics } from "../../src/lib/metrics.ts";
import { createLedgerMonitor, type LedgerMonitor } from "../../src/payment/ledger-stats.ts";
import { keepUnread } from "../../src/payment/tokens/token-payment-store.ts";
import { describeWith } from "../support/helpers.ts";
import { ledgerKinds } from "../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../support/payment.ts";

const ada = testAddress("ada");
const bob = testAddress("bob");

for (const kind of ledgerKinds())
  describeWith(kind.need, `totals on ${kind.name}`, () => {
    let payment: TestPayment;
    let metrics: Metrics;
    let monitor: LedgerMonitor;
    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      metrics = createMetrics();
      monitor = createLedgerMonitor(metrics, payment.database, payment.clock.now);
    });
    afterEach(() => payment.close());

    const read = () => {
      payment.clock.advance(2_000);
      return monitor.read();
    };
    const upload = async (itemId: string, winc: bigint) => {
      await payment.credits.reserve({
        itemId,
        signer: ada,
        paidBy: [],
        directive: "list-or-signer",
        winc,
        expiresAt: testStart + 3_600_000,
      });
    };

    test("an empty ledger owes nothing", async () => {
      expect(monitor.last()).toBeUndefined();
      const totals = { liabilities: 0n, revenue: 0n, promotions: 0n, adjustments: 0n };
      const empty = { ...totals, paid: {}, transfers: {}, unread: {} };
      expect(await read()).toEqual(empty);
      expect(monitor.last()).toEqual(empty);
    });

    test("transactions that a server cannot give are counted by token, also as a metric", async () => {
      const unread = (id: string) => ({ id, since: testStart, dueAt: testStart });
      for (const id of ["one", "two"])
        await payment.database.write((tx) => keepUnread(tx, { token: "solana", address: "watched" }, unread(id)));
      expect((await read()).unread).toEqual({ solana: 2 });
      expect(await metrics.text()).toContain('token_transactions_unread{token="solana"} 2');
    });

    test("payments are liabilities until an upload earns them; approvals and reservations remain liabilities", async () => {
      await payment.credit(ada, 100n);
      await read(); // counts from here
      await payment.credits.approve({ approvalId: "a", payer: ada, approved: bob, winc: 30n, expiresAt: undefined });
      await upload("one", 25n);
      expect(await read()).toMatchObject({ liabilities: 100n, revenue: 0n, paid: { stripe: 100n } });
      await payment.credits.post("one.1");
      const { liabilities, revenue, transfers } = await read();
      expect([liabilities, revenue]).toEqual([75n, 25n]);
      expect(transfers).toMatchObject({ approval: 1, reservation: 1 });
      expect(transfers["payment"]).toBeUndefined();
    });

    test("a refund lowers what was paid, also below what clients own", async () => {
      await payment.credit(ada, 100n);
      await payment.chargeBack(ada, 40n);
      expect(await read()).toMatchObject({ liabilities: 60n, paid: { stripe: 60n } });
    });

    test("the metrics have the same numbers, and a second read within a second is the first", async () => {
      await payment.credit(ada, 100n);
      await read();
      await payment.credit(ada, 1n);
      expect(await monitor.read()).toMatchObject({ liabilities: 100n });
      payment.clock.advance(2_000);
      const text = await metrics.text();
      expect(text).toContain('ledger_winc{total="liabilities"} 101\n');
      expect(text).toContain('ledger_paid_winc{provider="stripe"} 101\n');
      expect(text).toContain('ledger_transfers{kind="payment"} 1\n');
    });
  });
