/**
 * The checker finds nothing in a sound ledger, and each of its rules finds what breaks it.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { payAtOnce } from "../../../src/payment/credits/reservations.ts";
import { checkLedger, creditChecks, entryChecks } from "../../../src/store/ledger/ledger-check.ts";
import { amountMax } from "../../../src/store/ledger/ledger-database.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../../support/payment.ts";

const anna = testAddress("Anna");
const bela = testAddress("Bela");

/** How a rule is broken, and what is said of it. `{…}` represents a name that only a run knows. */
const faults: readonly Readonly<{ rule: string; sql: readonly string[]; subject: string; found: string }>[] = [
  {
    rule: "the sum over all accounts is zero",
    sql: ["UPDATE entries SET amount = amount + 1 WHERE account = 'revenue' AND amount = 15"],
    subject: "all entries",
    found: "1",
  },
  {
    rule: "the sum over all accounts is zero",
    sql: ["UPDATE entries SET amount = amount - 3 * 4294967296 WHERE account = 'revenue' AND amount = 15"],
    subject: "all entries",
    found: `${-3n * 2n ** 32n}`,
  },
  {
    rule: "the legs of a transfer sum to zero",
    sql: ["UPDATE entries SET amount = amount - 2 WHERE account = 'revenue' AND amount = 15"],
    subject: "{posting}",
    found: "-2",
  },
  {
    rule: "an account's balance is the sum of its entries",
    sql: ["UPDATE accounts SET balance = balance + 5 WHERE account = 'revenue'"],
    subject: "revenue",
    found: "off by 5",
  },
  {
    rule: "an account's balance is the sum of its entries",
    sql: ["INSERT INTO accounts (account, balance) VALUES ('user:ghost', 7)"],
    subject: "user:ghost",
    found: "off by 7",
  },
  {
    rule: "an entry belongs to an account and a transfer",
    sql: [
      "INSERT INTO entries (account, transfer_id, amount) VALUES ('revenue', 'lost', 1)",
      "INSERT INTO entries (account, transfer_id, amount) VALUES ('provider:stripe', 'lost', -1)",
    ],
    subject: "revenue in lost",
    found: "1",
  },
  {
    rule: "a client's account is below zero only after a chargeback or a reversal",
    sql: [`UPDATE accounts SET balance = -1 WHERE account = 'user:${bela}'`],
    subject: `user:${bela}`,
    found: "-1",
  },
  {
    rule: "an escrow holds the rest of an active approval, and nothing of an ended approval",
    sql: ["UPDATE approvals SET winc = winc + 1 WHERE id = 'approval'"],
    subject: "approval",
    found: "60",
  },
  {
    rule: "an escrow holds the rest of an active approval, and nothing of an ended approval",
    sql: ["UPDATE approvals SET state = 'revoked', ended_at = 5 WHERE id = 'approval'"],
    subject: "approval",
    found: "60",
  },
  {
    rule: "an escrow belongs to an approval",
    sql: ["INSERT INTO accounts (account, balance) VALUES ('escrow:none', 0)"],
    subject: "escrow:none",
    found: "0",
  },
  {
    rule: "an approval has the state used exactly when all of it is posted",
    sql: ["UPDATE approvals SET state = 'used', ended_at = 5 WHERE id = 'approval'"],
    subject: "approval",
    found: "used",
  },
  {
    rule: "a reservation's credits are held exactly while it is pending",
    sql: ["UPDATE reservations SET state = 'voided', ended_at = 5 WHERE item_id = 'waiting'"],
    subject: "waiting.1",
    found: "25",
  },
  {
    rule: "a reservation's credits are held exactly while it is pending",
    sql: ["UPDATE reservations SET state = 'pending', ended_at = NULL WHERE item_id = 'posted'"],
    subject: "posted.1",
    found: "0",
  },
  {
    rule: "a held account belongs to a reservation",
    sql: ["INSERT INTO accounts (account, balance) VALUES ('held:none', 3)"],
    subject: "held:none",
    found: "3",
  },
  {
    rule: "the parts of a reservation sum to its amount",
    sql: ["UPDATE reservation_parts SET winc = winc + 1 WHERE reservation_id = 'posted.1' AND position = 0"],
    subject: "posted.1",
    found: "off by -1",
  },
  {
    rule: "an approval's pending amount is the sum that pending reservations draw from it",
    sql: ["UPDATE approvals SET pending = pending + 1 WHERE id = 'approval'"],
    subject: "approval",
    found: "off by 1",
  },
  {
    rule: "an approval's posted amount is the sum that posted reservations drew from it",
    sql: ["UPDATE approvals SET posted = posted - 1 WHERE id = 'approval'"],
    subject: "approval",
    found: "off by -1",
  },
  {
    rule: "an item is paid for at most once",
    sql: [
      "INSERT INTO reservations " +
        "(id, item_id, attempt, payer, winc, state, created_at, expires_at, ended_at) " +
        "VALUES ('posted.9', 'posted', 9, 'anyPayer', 0, 'posted', 1, 1, 1)",
    ],
    subject: "posted",
    found: "2",
  },
  {
    rule: "an approval is not used beyond its approved amount",
    sql: ["UPDATE approvals SET pending = 90 WHERE id = 'approval'"],
    subject: "approval",
    found: "105",
  },
  {
    rule: "an approval is funded once, with its approved amount",
    sql: ["UPDATE approvals SET winc = winc + 1 WHERE id = 'approval'"],
    subject: "approval",
    found: "0",
  },
  {
    rule: "an approval returns its rest once, by the transfer of its end",
    sql: ["UPDATE approvals SET state = 'expired' WHERE id = 'revoked'"],
    subject: "revoked",
    found: "expired after 1",
  },
  {
    rule: "an approval returns its rest once, by the transfer of its end",
    sql: ["UPDATE transfers SET kind = 'approval_revoked' WHERE change_id = 'revoked'"],
    subject: "revoked",
    found: "revoked after 2",
  },
  {
    rule: "only the approved address draws on an approval, before it expires",
    sql: ["UPDATE reservations SET payer = 'anyPayer' WHERE item_id = 'posted'"],
    subject: "posted.1",
    found: "approval",
  },
  {
    rule: "only the approved address draws on an approval, before it expires",
    sql: [`UPDATE approvals SET expires_at = ${testStart} WHERE id = 'approval'`],
    subject: "posted.1",
    found: "approval",
  },
  {
    rule: "only the approved address draws on an approval, before it expires",
    sql: ["UPDATE reservation_parts SET payer = 'anyPayer' WHERE reservation_id = 'waiting.1'"],
    subject: "waiting.1",
    found: "approval",
  },
  {
    rule: "a part without an approval comes from the signer",
    sql: ["INSERT INTO reservation_parts (reservation_id, position, payer, winc) VALUES ('own.1', 0, 'anyPayer', 5)"],
    subject: "own.1",
    found: "anyPayer",
  },
  {
    rule: "a reservation above 0 winc is funded once, and emptied once by the transfer of its end",
    sql: ["UPDATE reservations SET state = 'expired' WHERE item_id = 'voided'"],
    subject: "voided.1",
    found: "expired after 2 of reservation_voided",
  },
  {
    rule: "a reservation above 0 winc is funded once, and emptied once by the transfer of its end",
    sql: ["UPDATE transfers SET kind = 'reservation_posted' WHERE kind = 'reservation' AND change_id = 'posted'"],
    subject: "posted.1",
    found: "posted after 2 of reservation_posted",
  },
  {
    rule: "a reservation above 0 winc is funded once, and emptied once by the transfer of its end",
    sql: ["UPDATE reservations SET transfer_id = NULL WHERE item_id = 'once'"],
    subject: "once.1",
    found: "posted after 0 of none",
  },
  {
    rule: "an immediate payment for an item is one transfer of its price",
    sql: ["UPDATE transfers SET change_id = 'another' WHERE kind = 'upload'"],
    subject: "{upload} for once",
    found: "off by -3",
  },
  {
    rule: "an immediate payment for an item is one transfer of its price",
    sql: ["UPDATE reservations SET winc = 4 WHERE item_id = 'once'"],
    subject: "{upload} for once",
    found: "off by -1",
  },
  {
    rule: "the refunds of an item equal its refunded reservations",
    sql: ["UPDATE reservations SET state = 'refunded' WHERE item_id = 'posted'"],
    subject: "posted",
    found: "off by 15",
  },
  {
    rule: "the refunds of an item equal its refunded reservations",
    sql: ["UPDATE transfers SET kind = 'refund' WHERE kind = 'reservation_posted'"],
    subject: "posted",
    found: "off by 15",
  },
  {
    rule: "a part of a reservation was taken from its recorded source",
    sql: ["UPDATE reservation_parts SET approval_id = 'revoked' WHERE reservation_id = 'waiting.1'"],
    subject: "waiting.1",
    found: "revoked",
  },
  {
    rule: "a part of a reservation was taken from its recorded source",
    sql: ["UPDATE reservations SET winc = winc - 1 WHERE id = 'own.1'"],
    subject: "own.1",
    found: `${bela}`,
  },
  {
    rule: "a part of a reservation was taken from its recorded source",
    sql: ["UPDATE reservations SET winc = winc - 1 WHERE id = 'once.1'"],
    subject: "once.1",
    found: `${bela}`,
  },
  {
    rule: "a part of a reservation was taken from its recorded source",
    sql: ["DELETE FROM reservation_parts WHERE reservation_id = 'waiting.1'"],
    subject: "waiting.1",
    found: `${bela}`,
  },
];

for (const kind of ledgerKinds())
  describeWith(kind.need, `the checker on ${kind.name}`, () => {
    let payment: TestPayment;

    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      const { credit, credits, clock } = payment;
      const hold = (itemId: string, winc: bigint) =>
        credits.reserve({
          itemId,
          signer: bela,
          paidBy: [anna],
          directive: "list-or-signer",
          winc,
          expiresAt: clock.now() + 1_000,
        });
      await credit(anna, 1_000n);
      await credit(bela, 10n);
      await credits.approve({ approvalId: "approval", payer: anna, approved: bela, winc: 100n });
      await credits.post((await hold("posted", 15n)).id);
      await hold("waiting", 25n);
      await credits.void((await hold("voided", 40n)).id);
      const byItself = {
        itemId: "own",
        signer: bela,
        paidBy: [],
        directive: "list-or-signer",
        winc: 5n,
      } as const;
      await credits.reserve({ ...byItself, expiresAt: clock.now() + 1_000 });
      const step = { now: clock.now(), makeId: payment.makeId };
      const atOnce = { ...byItself, itemId: "once", winc: 3n };
      await payment.database.write((tx) => payAtOnce(tx, atOnce, step));
      const carl = testAddress("Carl");
      await credits.approve({ approvalId: "revoked", payer: anna, approved: carl, winc: 2n });
      await credits.revoke({ payer: anna, approved: carl, revokeId: "revocation" });
      await credit(testAddress("Rich"), amountMax - 1_010n);
    });
    afterEach(() => payment.close());

    test("finds nothing in a sound ledger, though its sums pass 64 bits on the way", async () => {
      await payment.credits.approve({
        approvalId: "all",
        payer: testAddress("Rich"),
        approved: bela,
        winc: amountMax / 2n,
      });
      expect(await checkLedger(payment.database)).toEqual([]);
    });

    test("finds nothing in an empty ledger", async () => {
      const empty = await kind.open();
      expect(await checkLedger(empty.database)).toEqual([]);
      await empty.remove();
    });

    test("lets a chargeback leave a debt", async () => {
      await payment.chargeBack(bela, 10_000n);
      expect(await checkLedger(payment.database)).toEqual([]);
    });

    test.each(faults)("reports a violation of '$rule': $found", async ({ rule, sql, subject, found }) => {
      const { database } = payment;
      const posting = await database.read((tx) =>
        tx.get<{ transfer_id: string }>("SELECT transfer_id FROM entries WHERE account = 'revenue' AND amount = 15"),
      );
      const upload = await database.read((tx) =>
        tx.get<{ id: string }>("SELECT id FROM transfers WHERE kind = 'upload'"),
      );
      await breakRows(payment, sql);
      const findings = await checkLedger(database);
      const named = subject.replace("{posting}", posting?.transfer_id ?? "").replace("{upload}", upload?.id ?? "");
      expect(findings).toContainEqual({ rule, subject: named, found });
    });

    test("reports at most a hundred findings of one rule", async () => {
      await payment.database.write(async (tx) => {
        for (let index = 0; index < 150; index += 1)
          await tx.run("INSERT INTO accounts (account, balance) VALUES (?, 1)", `user:${index}`);
      });
      const findings = await checkLedger(payment.database);
      expect(findings.filter(({ rule }) => rule === "an account's balance is the sum of its entries")).toHaveLength(
        100,
      );
    });
  });

test("every rule about entries and credits has been seen to fail", () => {
  const shown = new Set(faults.map(({ rule }) => rule));
  expect([...entryChecks, ...creditChecks].map(({ rule }) => rule).filter((rule) => !shown.has(rule))).toEqual([]);
});

/**
 * Writes rows that the tables' own references and limits would reject, as a damaged or foreign ledger may hold them.
 */
async function breakRows({ database, ledger }: TestPayment, sql: readonly string[]): Promise<void> {
  if (database.kind === "postgres") {
    await database.write(async (tx) => {
      await tx.run("ALTER TABLE entries DROP CONSTRAINT entries_transfer_id_fkey");
      await tx.run("ALTER TABLE approvals DROP CONSTRAINT approvals_used");
      for (const statement of sql) await tx.run(statement);
    });
    return;
  }
  // A connection that has not requested references does not hold to them.
  const db = new Database(ledger.place);
  db.run("PRAGMA ignore_check_constraints = ON");
  for (const statement of sql) db.run(statement);
  db.close();
}
