/**
 * Accounts for the operator: grants and adjustments are one balanced transfer each, once for each key, and no account
 * falls below zero.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { Failure } from "../../../src/failures.ts";
import {
  createOperatorAccounts,
  type Movement,
  type OperatorAccounts,
} from "../../../src/payment/operator/operator-accounts.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { amountMax } from "../../../src/store/ledger/ledger-database.ts";
import { adjustment, promo, user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../../support/payment.ts";

const [ada, bob] = [testAddress("ada"), testAddress("bob")];
const order = { operator: "olga", reason: "goodwill", idempotencyKey: "key" };
const grant: Movement = { kind: "grant", address: ada, winc: 100n, ...order };

async function codeOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
    return "done";
  } catch (error) {
    return error instanceof Failure ? `${error.code} ${error.context["reason"] ?? ""}`.trim() : String(error);
  }
}

for (const kind of ledgerKinds())
  describeWith(kind.need, `accounts of the operator on ${kind.name}`, () => {
    let payment: TestPayment;
    let accounts: OperatorAccounts;

    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      const { database: ledger, clock, makeId } = payment;
      accounts = createOperatorAccounts({ ledger, clock: clock.now, makeId });
    });
    afterEach(async () => {
      expect(await checkLedger(payment.database)).toEqual([]);
      await payment.close();
    });

    test("a grant is one transfer from promotions, with operator, reason and key", async () => {
      const done = await accounts.move(grant);
      expect(done).toMatchObject({ kind: "grant", address: ada, winc: "100", balance: "100", ...order });
      expect([await payment.held(user(ada)), await payment.held(promo)]).toEqual([100n, -100n]);
      const { history } = (await accounts.show(ada, { before: undefined, limit: 10 })) ?? {};
      expect(history).toEqual([
        {
          transferId: String(done["transferId"]),
          ...{ kind: "promotion", at: testStart, amount: 100n },
          ...{ changeId: "operator/key", note: "olga: goodwill" },
        },
      ]);
    });

    test("an adjustment takes credits down to zero, and not below", async () => {
      await accounts.move(grant);
      const take = (winc: bigint, idempotencyKey: string) =>
        accounts.move({ ...grant, kind: "adjust", winc, idempotencyKey });
      expect(await codeOf(take(-101n, "one more"))).toBe(
        "payment_rejected The account has 100 winc: 101 winc cannot be taken from it",
      );
      expect(await take(-100n, "all")).toMatchObject({ winc: "-100", balance: "0" });
      expect(await codeOf(take(-1n, "again"))).toStartWith("payment_rejected");
      expect(await payment.held(adjustment)).toBe(100n);
      // A rejected request has not used its key.
      await accounts.move({ ...grant, idempotencyKey: "second", winc: 200n });
      expect(await take(-101n, "one more")).toMatchObject({ balance: "99" });
    });

    test("an adjustment may pay a debt back, in part or all of it", async () => {
      await payment.credit(ada, 10n);
      await payment.chargeBack(ada, 50n);
      const pay = { ...grant, kind: "adjust", winc: 15n, idempotencyKey: "part" } as const;
      expect(await accounts.move(pay)).toMatchObject({ balance: "-25" });
      expect(await accounts.move({ ...pay, winc: 25n, idempotencyKey: "rest" })).toMatchObject({ balance: "0" });
    });

    test("an account cannot hold more than the ledger can", async () => {
      await payment.credit(ada, amountMax - 100n);
      expect(await accounts.move(grant)).toMatchObject({ balance: amountMax.toString() });
      expect(await codeOf(accounts.move({ ...grant, winc: 1n, idempotencyKey: "full" }))).toStartWith(
        "payment_rejected The amount is larger",
      );
    });

    test("the same key and request return the same response, and move credits once", async () => {
      const first = await accounts.move(grant);
      await payment.credit(ada, 5n);
      payment.clock.advance(1_000);
      expect(await accounts.move(grant)).toEqual(first);
      expect(await payment.held(user(ada))).toBe(105n);
    });

    test.each([
      ["another amount", { winc: 101n }],
      ["another account", { address: bob }],
      ["another kind", { kind: "adjust" }],
      ["another operator", { operator: "otto" }],
      ["another reason", { reason: "mistake" }],
    ] as const)("the same key with %s is a conflict, and moves nothing", async (_, other) => {
      await accounts.move(grant);
      expect(await codeOf(accounts.move({ ...grant, ...other }))).toBe("idempotency_conflict");
      expect([await payment.held(user(ada)), await payment.held(user(bob))]).toEqual([100n, 0n]);
    });

    test("twenty concurrent requests with one key over two connections move credits once", async () => {
      const second = await payment.ledger.openAgain();
      const others = createOperatorAccounts({
        ledger: second,
        clock: payment.clock.now,
        makeId: payment.makeId,
      });
      const done = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? accounts : others).move(grant)),
      );
      expect(new Set(done.map((each) => JSON.stringify(each))).size).toBe(1);
      expect(await payment.held(user(ada))).toBe(100n);
      await second.close();
    });

    test("the list has every account once, in pages by address", async () => {
      const addresses = ["a", "b", "c", "d", "e"].map(testAddress);
      for (const [index, address] of addresses.entries()) await payment.credit(address, BigInt(index + 1));
      await payment.credits.approve({
        approvalId: "approval",
        payer: testAddress("e"),
        approved: testAddress("a"),
        winc: 2n,
      });
      const pages: (readonly [string, bigint])[][] = [];
      let after: string | undefined;
      do {
        const page = await accounts.list({ after, limit: 2 });
        pages.push(page.map(({ address, winc }) => [address, winc] as const));
        after = page.length === 2 ? page[1]?.address : undefined;
      } while (after !== undefined);
      expect(pages.map(({ length }) => length)).toEqual([2, 2, 1]);
      expect(pages.flat()).toEqual(addresses.map((address, index) => [address, index === 4 ? 3n : BigInt(index + 1)]));
    });

    test("an address without credits ever is unknown", async () => {
      expect(await accounts.show(bob, { before: undefined, limit: 1 })).toBeUndefined();
    });
  });
