/**
 * Promo codes of the operator: in force at once in every process, counted as those of the price rules, and ended once.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createOperatorPromos, type OperatorPromos } from "../../../src/payment/operator/operator-promos.ts";
import { createPromos, type Promos } from "../../../src/payment/top-ups/promo.ts";
import { hasPaid } from "../../../src/payment/top-ups/quotes.ts";
import { checkLedger, promoChecks } from "../../../src/store/ledger/ledger-check.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../../support/payment.ts";
import { failureOf, promoRule } from "../prices/price-fixture.ts";

const ada = testAddress("ada");
const rules = [promoRule("FILE", "0.8")];
const order = { operator: "olga", reason: "campaign", idempotencyKey: "key" };
const ruleText = (more: object = {}) =>
  JSON.stringify({
    ...{ operator: "multiply", code: "Winter", name: "Winter", description: "10 % off", operatorMagnitude: "0.9" },
    ...more,
  });

for (const kind of ledgerKinds())
  describeWith(kind.need, `promo codes of the operator on ${kind.name}`, () => {
    let payment: TestPayment;
    let operator: OperatorPromos;
    let promos: Promos;
    let second: LedgerDatabase;

    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      const { database, clock } = payment;
      second = await payment.ledger.openAgain();
      operator = createOperatorPromos({ ledger: database, rules, clock: clock.now });
      // Another process of the same ledger.
      promos = createPromos({ database: second, rules, hasPaid, clock: clock.now });
    });
    afterEach(async () => {
      await second.close();
      await payment.close();
    });

    const reasonOf = async (promise: Promise<unknown>) => (await failureOf(promise)).context["reason"];

    test("a code is in force from its response on, in any case, and ends at once", async () => {
      expect(await reasonOf(promos.find(ada, ["winter"]))).toBe("No promo code found with code 'winter'");
      expect(await operator.add({ ...order, rule: ruleText() })).toMatchObject({ kind: "promo_add", code: "Winter" });
      expect((await promos.find(ada, ["WINTER", "file"])).map(({ code }) => code)).toEqual(["Winter", "FILE"]);
      payment.clock.advance(1_000);
      await operator.end({ ...order, code: "winter", idempotencyKey: "end" });
      expect(await reasonOf(promos.find(ada, ["winter"]))).toBe(
        `The promo code 'Winter' expired on '${new Date(testStart + 1_000).toISOString()}'`,
      );
      expect((await operator.list()).map(({ rule, source, state }) => [rule.code, source, state])).toEqual([
        ["FILE", "rules", "active"],
        ["Winter", "ledger", "ended"],
      ]);
    });

    test("its uses are counted and limited", async () => {
      await operator.add({ ...order, rule: ruleText({ maxUses: 1 }) });
      const use = { address: ada, codes: ["Winter"], paymentId: "payment", at: BigInt(testStart) };
      expect(await second.write((tx) => promos.count(tx, use))).toBe(true);
      expect(await second.write((tx) => promos.count(tx, { ...use, address: testAddress("bob") }))).toBe(false);
      const [, line] = await operator.list();
      expect([line?.uses, line?.state]).toEqual([1n, "used up"]);
      const [equal] = promoChecks;
      expect(await checkLedger(payment.database, equal === undefined ? [] : [equal])).toEqual([]);
    });

    test("the same key and request return the same response; another request is a conflict", async () => {
      const first = await operator.add({ ...order, rule: ruleText() });
      payment.clock.advance(5);
      expect(await operator.add({ ...order, rule: ruleText() })).toEqual(first);
      const other = operator.add({ ...order, rule: ruleText({ code: "Other" }) });
      expect((await failureOf(other)).code).toBe("idempotency_conflict");
      expect((await failureOf(operator.end({ ...order, code: "Winter" }))).code).toBe("idempotency_conflict");
    });

    test.each([
      ["a code of the price rules", { code: "file" }, "The price rules have the promo code 'file'"],
      ["a factor above 1", { operatorMagnitude: "1.1" }, "expected a value that lowers the charge"],
      ["no code", { code: "" }, "code: expected a text"],
      ["a space", { code: "A B" }, "printable ASCII characters"],
      ["an unknown field", { max: 1 }, "unknown field max"],
      ["an end before the start", { startsAt: "2027-01-02T00:00Z", endsAt: "2027-01-01T00:00Z" }, "after startsAt"],
    ] as const)("%s is rejected with a reason", async (_, more, reason) => {
      const added = async () => await operator.add({ ...order, rule: ruleText(more) });
      expect(await reasonOf(added())).toContain(reason);
    });

    test("a code exists once, also after its end, and ends once", async () => {
      await operator.add({ ...order, rule: ruleText() });
      const again = operator.add({ ...order, rule: ruleText({ code: "WINTER" }), idempotencyKey: "again" });
      expect(await reasonOf(again)).toContain("exists already");
      await operator.end({ ...order, code: "Winter", idempotencyKey: "end" });
      const ended = operator.end({ ...order, code: "Winter", idempotencyKey: "end again" });
      expect(await reasonOf(ended)).toBe("The promo code 'Winter' has ended");
      const end = async (code: string) => await operator.end({ ...order, code, idempotencyKey: "other" });
      expect(await reasonOf(end("FILE"))).toContain("end it in PAYMENT_RULES_FILE");
      expect(await reasonOf(end("unknown"))).toBe("No promo code found with code 'unknown'");
    });
  });
