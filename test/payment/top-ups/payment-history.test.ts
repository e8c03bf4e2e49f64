/**
 * The history of payments: pages that together are the whole of it, whatever was paid with and at whatever moment.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { type PaymentMade, type PaymentPlace, readPayments } from "../../../src/payment/top-ups/payment-history.ts";
import type { Tx } from "../../../src/store/ledger/ledger-database.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";
import { testAddress } from "../../support/payment.ts";
import { keepCard, keepGift, keepToken } from "./payments-made.ts";

const owner = testAddress("owner");
const other = testAddress("other");

for (const kind of ledgerKinds()) {
  describeWith(kind.need, `payments, on ${kind.name},`, () => {
    let ledger: TestLedger;
    let count = 0;

    beforeAll(async () => {
      ledger = await kind.open();
    });

    afterAll(() => ledger.remove());

    const write = (work: (tx: Tx) => Promise<void>) => ledger.database.write(work);

    async function walk(address: UserAddress, limit: number): Promise<PaymentMade[]> {
      const all: PaymentMade[] = [];
      let before: PaymentPlace | undefined;
      for (;;) {
        const page = await ledger.database.read((tx) => readPayments(tx, address, { before, limit }));
        expect(page.length).toBeLessThanOrEqual(limit);
        all.push(...page);
        before = page.at(-1)?.place;
        if (before === undefined) return all;
      }
    }

    test("are listed with the fields of their kind", async () => {
      const address = testAddress("reported");
      await write(async (tx) => {
        await keepCard(tx, { id: "quote", address, at: 3_000, winc: 30n, amount: 1_000n });
        await keepGift(tx, { id: "given", address, at: 2_000, winc: 20n, message: "a joy" });
        await keepToken(tx, { id: "native:x:0", address, at: 1_000, winc: 10n, quantity: 10n ** 30n });
        await keepToken(tx, {
          id: "usdc:y:0",
          address,
          at: 900,
          winc: 9n,
          quantity: 1_500_000n,
          token: "usdc",
        });
      });
      expect(await walk(address, 10)).toEqual([
        {
          kind: "card",
          place: { at: 3_000, kind: 1, id: "quote" },
          winc: 30n,
          amount: 1_000n,
          currency: "usd",
          receiptId: "quote",
          giftMessage: undefined,
        },
        {
          kind: "card",
          place: { at: 2_000, kind: 2, id: "given" },
          winc: 20n,
          amount: 0n,
          currency: "usd",
          receiptId: "given",
          giftMessage: "a joy",
        },
        {
          kind: "token",
          place: { at: 1_000, kind: 3, id: "native:x:0" },
          winc: 10n,
          token: "native",
          quantity: 10n ** 30n,
          usd: undefined,
          sender: "sender",
          transactionId: "native:x:0",
          blockHeight: 77n,
        },
        {
          kind: "token",
          place: { at: 900, kind: 3, id: "usdc:y:0" },
          winc: 9n,
          token: "usdc",
          quantity: 1_500_000n,
          usd: "1.5",
          sender: "sender",
          transactionId: "usdc:y:0",
          blockHeight: 77n,
        },
      ]);
    });

    test("are only the account's credited payments", async () => {
      const address = testAddress("mine");
      await write(async (tx) => {
        await keepCard(tx, { id: "open", address, at: 1, winc: 1n, state: "open" });
        await keepGift(tx, { id: "waiting", address, at: 1, winc: 1n, state: "open" });
        for (const state of ["pending", "reversed", "failed"])
          await keepToken(tx, { id: state, address, at: 1, winc: 1n, state });
        await keepCard(tx, { id: "another's", address: other, at: 1, winc: 1n });
        await keepToken(tx, { id: "another's", address: other, at: 1, winc: 1n });
      });
      expect(await walk(address, 10)).toEqual([]);
    });

    test("on pages of any size are the complete history, each once, newest first", async () => {
      const made = fc.record({
        keep: fc.constantFrom(keepCard, keepGift, keepToken),
        at: fc.integer({ min: 0, max: 4 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(made, { maxLength: 25 }), fc.integer({ min: 1, max: 6 }), async (all, limit) => {
          const address = testAddress(`run${count++}`);
          await write(async (tx) => {
            for (const { keep, at } of all) await keep(tx, { id: `payment-${count++}`, address, at, winc: BigInt(at) });
            await keepCard(tx, { id: `payment-${count++}`, address: owner, at: 2, winc: 1n });
          });
          const whole = await ledger.database.read((tx) =>
            readPayments(tx, address, { before: undefined, limit: 100 }),
          );
          const walked = await walk(address, limit);
          expect(walked).toEqual(whole);
          expect(new Set(walked.map(({ place }) => place.id)).size).toBe(all.length);
          const times = walked.map(({ place }) => place.at);
          expect(times).toEqual([...times].sort((left, right) => right - left));
        }),
        { numRuns: 40 },
      );
    });
  });
}
