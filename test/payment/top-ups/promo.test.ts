/**
 * Promo codes: who may use them, and that each counts once for a user and never too often, however many pay at once.
 * @module
 */
import { expect, test } from "bun:test";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { PromoRule } from "../../../src/payment/prices/price-rules.ts";
import { createPromos, type Promos } from "../../../src/payment/top-ups/promo.ts";
import { type QuoteTerms, storeQuote } from "../../../src/payment/top-ups/quotes.ts";
import { checkLedger, promoChecks } from "../../../src/store/ledger/ledger-check.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";
import { createTestClock, testAddress, testStart } from "../../support/payment.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { failureOf, promoRule } from "../prices/price-fixture.ts";

const at = BigInt(testStart);
const [anna, bert, carl] = [testAddress("anna"), testAddress("bert"), testAddress("carl")];

const rules: readonly PromoRule[] = [
  promoRule("Spring", "0.8"),
  promoRule("TWICE", "0.5", { usesMax: 2n }),
  promoRule("WELCOME", "0.5", { group: "new" }),
  promoRule("OLD", "0.5", { endsAt: at }),
  promoRule("SOON", "0.5", { startsAt: at + 1n }),
  promoRule("NEVER", "0.5", { usesMax: 0n }),
];

for (const kind of ledgerKinds()) {
  describeWith(kind.need, `promo codes on ${kind.name}`, () => {
    test("are found in any case, in the order in which they are named, each once", () =>
      within(async ({ promos }) => {
        const codesOf = async (...codes: string[]) => (await promos.find(anna, codes)).map(({ code }) => code);
        expect(await codesOf("SPRING")).toEqual(["Spring"]);
        expect(await codesOf("twice", "spring", "Spring", "TWICE")).toEqual(["TWICE", "Spring"]);
        expect(await codesOf()).toEqual([]);
      }));

    test.each([
      "an unknown id",
      "",
      " ",
      "Spring ",
      "ſpring",
      "SPRİNG",
      "Sprıng",
      "Spring\u0000",
      "SOON",
      "sp%ing",
      "*",
      "toString",
    ])("%j is not a valid code", (code) =>
      within(async ({ promos }) => {
        const failure = await failureOf(promos.find(anna, ["spring", code]));
        expect(failure.code).toBe("payment_rejected");
        expect(failure.context).toEqual({
          reason: `No promo code found with code '${code}'`,
          isUnknownCode: true,
        });
      }),
    );

    test("of a kilobyte is echoed in part", () =>
      within(async ({ promos }) => {
        const failure = await failureOf(promos.find(anna, ["x".repeat(1_000)]));
        expect(failure.context["reason"]).toBe(`No promo code found with code '${"x".repeat(64)}'`);
      }));

    test("are rejected with a reason", () =>
      within(async ({ promos, pay }) => {
        const reasonOf = async (address: UserAddress, ...codes: string[]) =>
          (await failureOf(promos.find(address, codes))).context["reason"];
        expect(await reasonOf(anna, "old")).toBe("The promo code 'OLD' expired on '2027-01-15T08:00:00.000Z'");
        expect(await reasonOf(anna, "never")).toBe(
          "The promo code 'NEVER' has already been used the maximum number of times (0)",
        );
        expect(await pay(anna, ["Spring"])).toBe(true);
        expect(await reasonOf(anna, "SPRING")).toBe(`The user '${anna}' is ineligible for the promo code 'Spring'`);
        expect(await reasonOf(anna, "welcome")).toBe(`The user '${anna}' is ineligible for the promo code 'WELCOME'`);
        expect(await promos.find(bert, ["spring", "welcome"])).toHaveLength(2);
        expect(await reasonOf(anna, "a", "b", "c", "d", "e", "f")).toBe("At most 5 promo codes can be used at once");
      }));

    test("are not used up by a lookup", () =>
      within(async ({ promos, pay }) => {
        for (let round = 0; round < 20; round += 1) await promos.find(anna, ["twice", "welcome"]);
        expect(await pay(anna, ["TWICE", "WELCOME"])).toBe(true);
      }));

    test("count once for a user, all of a payment's or none", () =>
      within(async ({ pay, uses }) => {
        expect(await pay(anna, ["Spring"])).toBe(true);
        expect(await pay(anna, ["TWICE", "spring"])).toBe(false);
        expect(await uses()).toEqual([`${anna} SPRING`]);
        expect(await pay(anna, ["TWICE"])).toBe(true);
        expect(await pay(bert, ["TWICE", "Twice"])).toBe(true);
        expect(await pay(carl, ["TWICE"])).toBe(false);
      }));

    test("for new users count for the first payment only", () =>
      within(async ({ pay }) => {
        expect(await pay(anna, [])).toBe(true);
        expect(await pay(anna, ["WELCOME"])).toBe(false);
      }));

    test("that were removed from the rules after the quote are honoured, once", () =>
      within(async ({ pay }) => {
        expect(await pay(anna, ["GONE"])).toBe(true);
        expect(await pay(anna, ["gone"])).toBe(false);
      }));

    test("are checked against payments: the checker reports a wrong count and a wrong use", () =>
      within(async ({ promos, ledger }) => {
        const { write } = ledger.database;
        await write((tx) => storeQuote(tx, quoteOf("paid", anna), 0));
        await write((tx) => tx.run("UPDATE quotes SET state = 'paid' WHERE id = 'paid'"));
        await write((tx) => storeQuote(tx, quoteOf("open", bert), 0));
        const count = (address: UserAddress, paymentId: string) =>
          write((tx) => promos.count(tx, { address, codes: ["Spring"], paymentId, at }));
        await count(anna, "paid");
        expect(await checkLedger(ledger.database, promoChecks)).toEqual([]);
        await count(bert, "open");
        await count(carl, "paid");
        await write((tx) => tx.run("UPDATE promo_counts SET uses = 4"));
        const findings = await checkLedger(ledger.database, promoChecks);
        expect(findings.map(({ subject, found }) => [subject, found]).toSorted()).toEqual(
          [
            ["SPRING", "4 counted, 3 used"],
            [`${bert} SPRING`, "open"],
            [`${carl} SPRING`, "no payment"],
          ].toSorted(),
        );
      }));

    test("of a payment that is rolled back are not used", () =>
      within(async ({ promos, ledger, uses }) => {
        const failed = ledger.database.write(async (tx) => {
          await promos.count(tx, { address: anna, codes: ["Spring"], paymentId: "p", at });
          throw new Error("the payment cannot be stored");
        });
        expect(await failed.then(String, String)).toBe("Error: the payment cannot be stored");
        expect(await uses()).toEqual([]);
      }));

    test(
      "L5: never count too often, however many pay at once in two processes' ledgers",
      () =>
        within(async ({ pay, payElsewhere, uses, counts }) => {
          const random = createRandom(newSeed());
          const users = Array.from({ length: 12 }, (_, index) => testAddress(`user${index}`));
          const tries = Array.from({ length: 120 }, () => ({
            address: random.pick(users),
            codes: random.pick([["Spring"], ["TWICE"], ["TWICE", "spring"], ["WELCOME"]]),
            here: random.chance(0.5),
          }));
          const counted = await Promise.all(
            tries.map(({ address, codes, here }) => (here ? pay : payElsewhere)(address, codes)),
          );
          const expected = tries.flatMap(({ address, codes }, index) =>
            counted[index] === true ? codes.map((code) => `${address} ${code.toUpperCase()}`) : [],
          );
          expect(new Set(expected).size).toBe(expected.length);
          expect(await uses()).toEqual(expected.toSorted());
          const total = await counts();
          expect(total["TWICE"]).toBe(2n);
          for (const [code, count] of Object.entries(total))
            expect(BigInt(expected.filter((use) => use.endsWith(` ${code}`)).length)).toBe(count);
        }),
      60_000,
    );
  });

  /** Promo codes on an empty ledger, where a payment is a row of the test's own. */
  async function within(work: (fixture: Fixture) => Promise<void>): Promise<void> {
    const ledger = await kind.open();
    const again = await ledger.openAgain();
    try {
      await ledger.database.write(async (tx) => {
        await tx.run("CREATE TABLE test_payments (id TEXT NOT NULL PRIMARY KEY, address TEXT NOT NULL)");
      });
      await work(fixtureOf(ledger, again));
    } finally {
      await again.close();
      await ledger.remove();
    }
  }
}

function quoteOf(id: string, address: UserAddress): QuoteTerms {
  return {
    id,
    method: "payment-intent",
    destination: { kind: "account", address, type: "native" },
    currency: "usd",
    paymentAmount: 800n,
    quotedPaymentAmount: 1_000n,
    winc: 1n,
    promoCodes: ["Spring"],
    createdAt: testStart,
    expiresAt: testStart + 1,
  };
}

type Fixture = Readonly<{
  ledger: TestLedger;
  promos: Promos;
  /** Pays with codes; tells whether they counted. */
  pay: (address: UserAddress, codes: readonly string[]) => Promise<boolean>;
  /** The same through another connection. */
  payElsewhere: Fixture["pay"];
  uses: () => Promise<string[]>;
  counts: () => Promise<Record<string, bigint>>;
}>;

function fixtureOf(ledger: TestLedger, again: TestLedger["database"]): Fixture {
  const clock = createTestClock();
  const promos = createPromos({
    database: ledger.database,
    rules,
    hasPaid: async (tx, address) =>
      (await tx.get<{ id: string }>("SELECT id FROM test_payments WHERE address = ?", address)) !== undefined,
    clock: clock.now,
  });
  let payments = 0;
  const payAt =
    (database: TestLedger["database"]): Fixture["pay"] =>
    async (address, codes) => {
      payments += 1;
      const paymentId = `payment-${payments}`;
      return await database.write(async (tx) => {
        const counts = await promos.count(tx, { address, codes, paymentId, at });
        await tx.run("INSERT INTO test_payments (id, address) VALUES (?, ?)", paymentId, address);
        return counts;
      });
    };
  const { read } = ledger.database;
  return {
    ledger,
    promos,
    pay: payAt(ledger.database),
    payElsewhere: payAt(again),
    uses: async () => {
      const rows = await read((tx) =>
        tx.all<{ address: string; code: string }>("SELECT address, code FROM promo_uses"),
      );
      return rows.map(({ address, code }) => `${address} ${code}`).toSorted();
    },
    counts: async () => {
      const rows = await read((tx) => tx.all<{ code: string; uses: bigint }>("SELECT code, uses FROM promo_counts"));
      return Object.fromEntries(rows.map(({ code, uses }) => [code, uses]));
    },
  };
}
