/**
 * Movements of credits: balanced, bounded, never below zero but for debts, and reported in order.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkLedger, entryChecks } from "../../../src/store/ledger/ledger-check.ts";
import { amountMax, type LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import {
  type Account,
  adjustment,
  balanceOf,
  escrow,
  findBalance,
  gift,
  held,
  historyOf,
  type Leg,
  promo,
  provider,
  revenue,
  type TransferKind,
  transfer,
  transferKinds,
  user,
} from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds, type TestLedger } from "../../support/ledger-databases.ts";
import { newSeed } from "../../support/seed.ts";

let lastId = 0;
const nextId = () => {
  lastId += 1;
  return `${lastId}`.padStart(8, "0");
};

const card = provider("stripe");
const legs = (...pairs: readonly (readonly [Account, bigint])[]): Leg[] =>
  pairs.map(([account, amount]) => ({ account, amount }));

for (const kind of ledgerKinds())
  describeWith(kind.need, `transfers on ${kind.name}`, () => {
    let ledger: TestLedger;
    let database: LedgerDatabase;

    beforeAll(async () => {
      ledger = await kind.open();
      database = ledger.database;
    });
    afterAll(() => ledger.remove());

    const move = (kindOf: TransferKind, moved: readonly Leg[], changeId?: string) =>
      database.write((tx) =>
        transfer(tx, { id: nextId(), kind: kindOf, at: 1_800_000_000_000, legs: moved, changeId }),
      );
    const held1 = (account: Account) => database.read((tx) => balanceOf(tx, account));

    test("moves winc from one account to another", async () => {
      await move("payment", legs([card, -500n], [user("Anna"), 500n]));
      await move("approval", legs([user("Anna"), -200n], [escrow("1"), 200n]));
      expect([await held1(user("Anna")), await held1(escrow("1"))]).toEqual([300n, 200n]);
    });

    test("distinguishes an unknown account from a balance of 0", async () => {
      await move("payment", legs([card, -5n], [user("Emma"), 5n]));
      await move("adjustment", legs([adjustment, 5n], [user("Emma"), -5n]));
      const found = await database.read(async (tx) => [
        await findBalance(tx, user("Emma")),
        await findBalance(tx, user("unnamed")),
        await balanceOf(tx, user("unnamed")),
      ]);
      expect(found).toEqual([0n, undefined, 0n]);
    });

    test("adds up the legs of one account, and omits empty legs", async () => {
      const id = nextId();
      await database.write((tx) =>
        transfer(tx, {
          id,
          kind: "payment",
          at: 1,
          legs: legs([card, -9n], [user("Bela"), 4n], [promo, 0n], [user("Bela"), 5n], [revenue, 1n], [revenue, -1n]),
        }),
      );
      const rows = await database.read((tx) =>
        tx.all("SELECT account, amount FROM entries WHERE transfer_id = ? ORDER BY account", id),
      );
      expect(rows).toEqual([
        { account: "provider:stripe", amount: -9n },
        { account: "user:Bela", amount: 9n },
      ]);
    });

    const unbalanced: readonly (readonly [string, readonly Leg[]])[] = [
      ["that makes winc", legs([card, -5n], [user("Anna"), 6n])],
      ["that loses winc", legs([card, -5n], [user("Anna"), 4n])],
      ["of one leg", legs([user("Anna"), 1n])],
      ["whose sum is zero only in 64 bits", legs([user("Anna"), 2n ** 63n], [user("Bela"), 2n ** 63n])],
    ];
    test.each(unbalanced)("rejects a transfer %s as a defect", async (_, moved) => {
      const before = await held1(user("Anna"));
      await expect(move("payment", moved)).rejects.toThrow("invariant broken: the legs of a transfer sum to zero");
      expect(await held1(user("Anna"))).toBe(before);
    });

    const guarded: readonly (readonly [string, Account])[] = [
      ["a user", user("Cleo")],
      ["an approval", escrow("Cleo")],
      ["a reservation", held("Cleo")],
      ["a gift", gift("Cleo")],
    ];
    describe.each(guarded)("of %s", (_, account) => {
      test("spends the complete balance and not one winc more", async () => {
        await move("payment", legs([card, -10n], [account, 10n]));
        const failure = {
          code: "insufficient_balance",
          context: { account, needed: 11n, available: 10n },
        };
        await expect(move("reservation", legs([account, -11n], [revenue, 11n]))).rejects.toMatchObject(failure);
        expect(await held1(account)).toBe(10n);
        await move("reservation", legs([account, -10n], [revenue, 10n]));
        await expect(move("reservation", legs([account, -1n], [revenue, 1n]))).rejects.toMatchObject({
          context: { needed: 1n, available: 0n },
        });
        expect(await held1(account)).toBe(0n);
      });

      test("falls below zero only by a chargeback or a reversal", async () => {
        for (const wrong of transferKinds.filter((name) => name !== "chargeback" && name !== "reversal"))
          await expect(move(wrong, legs([account, -1n], [card, 1n]))).rejects.toMatchObject({
            code: "insufficient_balance",
          });
        await move("chargeback", legs([account, -3n], [card, 3n]));
        await move("reversal", legs([account, -4n], [card, 4n]));
        expect(await held1(account)).toBe(-7n);
      });

      test("in debt accepts payments, and spends nothing before the debt is paid", async () => {
        await move("payment", legs([card, -6n], [account, 6n]));
        expect(await held1(account)).toBe(-1n);
        await expect(move("reservation", legs([account, -1n], [revenue, 1n]))).rejects.toMatchObject({
          context: { needed: 1n, available: -1n },
        });
      });
    });

    test("lets a caller continue after a rejection, which stores nothing", async () => {
      const before = await database.read((tx) => tx.get("SELECT COUNT(*) AS count FROM transfers"));
      await database.write(async (tx) => {
        const rejected = {
          id: nextId(),
          kind: "refund",
          at: 1,
          legs: legs([user("Dora"), -1n], [card, 1n]),
        } as const;
        await transfer(tx, rejected).catch((error: unknown) =>
          expect(error).toMatchObject({ code: "insufficient_balance" }),
        );
        await transfer(tx, { ...rejected, legs: legs([card, -1n], [user("Dora"), 1n]) });
      });
      expect(await held1(user("Dora"))).toBe(1n);
      const after = await database.read((tx) => tx.get<{ count: bigint }>("SELECT COUNT(*) AS count FROM transfers"));
      expect(after).toEqual({ count: BigInt(String(before?.["count"])) + 1n });
    });

    test("spends each winc once under concurrent transfers", async () => {
      await move("payment", legs([card, -10n], [user("Finn"), 10n]));
      const tries = Array.from({ length: 40 }, () => move("reservation", legs([user("Finn"), -1n], [revenue, 1n])));
      const ends = await Promise.allSettled(tries);
      expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
      expect(await held1(user("Finn"))).toBe(0n);
    });

    describe("stays within 64 bits:", () => {
      const bounds: readonly (readonly [string, bigint, boolean])[] = [
        ["the largest amount", amountMax, true],
        ["one winc more", amountMax + 1n, false],
        ["all of 64 bits", 2n ** 63n, false],
        ["100 digits", 10n ** 100n, false],
      ];
      test.each(bounds)("%s", async (name, amount, fits) => {
        const moved = move("payment", legs([provider(name), -amount], [user(name), amount]));
        if (!fits)
          await expect(moved).rejects.toMatchObject({
            code: "payment_rejected",
            context: { reason: "The amount is larger than an account can hold" },
          });
        else await moved;
        expect(await held1(user(name))).toBe(fits ? amount : 0n);
      });

      test("a balance too", async () => {
        const rich = user("the largest amount");
        await expect(move("payment", legs([provider("a"), -1n], [rich, 1n]))).rejects.toMatchObject({
          code: "payment_rejected",
        });
        expect(await held1(rich)).toBe(amountMax);
        await move("adjustment", legs([rich, -amountMax], [provider("the largest amount"), amountMax]));
        expect(await held1(rich)).toBe(0n);
      });

      test("an operator account that is full continues in further accounts", async () => {
        const source = provider("ample");
        const buyers = ["N", "O", "P"].map((name) => user(name));
        for (const buyer of buyers) await move("payment", legs([source, -amountMax], [buyer, amountMax]));
        for (const buyer of buyers) await move("refund", legs([buyer, -amountMax], [revenue, amountMax]));
        const rows = await database.read((tx) =>
          tx.all("SELECT account, balance FROM accounts WHERE account LIKE 'provider:ample%' ORDER BY account"),
        );
        expect(rows).toEqual([
          { account: "provider:ample", balance: -amountMax },
          { account: "provider:ample#2", balance: -amountMax },
          { account: "provider:ample#3", balance: -amountMax },
        ]);
        expect(await held1(source)).toBe(-3n * amountMax);
        // A smaller one has space where a larger one had none.
        await move("reversal", legs([source, 5n], [user("Q"), -5n]));
        await move("payment", legs([source, -4n], [user("Q"), 4n]));
        expect(await held1(source)).toBe(-3n * amountMax + 1n);
        await move("adjustment", legs([revenue, -2n * amountMax], [promo, 0n], [adjustment, 2n * amountMax])).then(
          () => expect.unreachable("an amount has its bounds all the same"),
          (error) => expect(error).toMatchObject({ code: "payment_rejected" }),
        );
      });
    });

    test("lists an account's history, newest first, page by page", async () => {
      const ids: string[] = [];
      for (let step = 1n; step <= 7n; step += 1n) {
        const id = nextId();
        ids.unshift(id);
        const moved = legs([card, -step], [user("Hugo"), step]);
        const note = step === 3n ? "a note" : undefined;
        await database.write((tx) =>
          transfer(tx, {
            id,
            kind: "payment",
            at: 1_000 + Number(step),
            legs: moved,
            changeId: `pay-${step}`,
            note,
          }),
        );
      }
      const page = (before?: string) => database.read((tx) => historyOf(tx, user("Hugo"), { before, limit: 3 }));
      const pages = [await page(), await page(ids[2]), await page(ids[5]), await page(ids[6])];
      expect(pages.map((rows) => rows.map(({ transferId }) => transferId))).toEqual([
        ids.slice(0, 3),
        ids.slice(3, 6),
        ids.slice(6),
        [],
      ]);
      expect(pages[1]?.[1]).toEqual({
        transferId: ids[4] ?? "",
        kind: "payment",
        at: 1_003,
        amount: 3n,
        changeId: "pay-3",
        note: "a note",
      });
      expect(pages[1]?.[0]?.note).toBeUndefined();
      expect(await database.read((tx) => historyOf(tx, user("a stranger"), { limit: 3 }))).toEqual([]);
    });

    test("agrees with a table of bigint sums after any sequence of transfers", async () => {
      const names = ["K", "L", "M"].map((name) => user(name));
      const amount = fc.oneof(
        fc.bigInt(1n, 100n),
        fc.bigInt(1n, amountMax),
        fc.constantFrom(amountMax, amountMax - 1n),
      );
      const step = fc.record({
        from: fc.constantFrom<Account>(card, provider("x402"), ...names),
        to: fc.constantFrom<Account>(revenue, ...names),
        kind: fc.constantFrom<TransferKind>("payment", "refund", "chargeback"),
        amount,
      });
      const sums = new Map<string, bigint>();
      const all = [card, provider("x402"), revenue, ...names];
      for (const account of all) sums.set(account, await held1(account));
      const fits = (account: Account, value: bigint) => !account.startsWith("user:") || value <= amountMax;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
          for (const { from, to, kind: name, amount: moved } of steps) {
            const left = (sums.get(from) ?? 0n) - moved;
            const right = (sums.get(to) ?? 0n) + moved;
            const allowed =
              from === to ||
              (fits(to, right) && (left >= (name === "chargeback" ? -amountMax : 0n) || !from.startsWith("user:")));
            const done = await move(name, legs([from, -moved], [to, moved])).then(
              () => true,
              () => false,
            );
            expect({ from, to, name, moved, done }).toEqual({ from, to, name, moved, done: allowed });
            if (done && from !== to) sums.set(from, left).set(to, right);
          }
          for (const account of all) expect(await held1(account)).toBe(sums.get(account) ?? 0n);
        }),
        { seed: newSeed(), numRuns: 60 },
      );
    });

    test("leaves a ledger without findings", async () => {
      // These tests move credits for which there is not a valid payment, approval or reservation.
      expect(await checkLedger(database, entryChecks)).toEqual([]);
    });
  });
