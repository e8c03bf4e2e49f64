/**
 * Reservations: held, then posted, voided or expired, exactly once each; who pays, in which order, and what comes back.
 *
 * The capitals number faults that such a service can have.
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { createCredits } from "../../../src/payment/credits/credits.ts";
import {
  type ItemPayment,
  paidByMax,
  partsMax,
  payAtOnce,
  type Reservation,
  type ReservationRequest,
} from "../../../src/payment/credits/reservations.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { escrow, held, provider, revenue } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../../support/payment.ts";
import { newSeed } from "../../support/seed.ts";

const ada = testAddress("ada");
const bob = testAddress("bob");
const cy = testAddress("cy");
const dee = testAddress("dee");
const hour = 3_600_000;
const never = new AbortController().signal;
const seed = newSeed();

for (const kind of ledgerKinds())
  describeWith(kind.need, `reservations on ${kind.name}`, () => {
    let payment: TestPayment;
    beforeEach(async () => {
      payment = await openTestPayment({ kind, seed });
      await payment.credit(ada, 1_000n);
    });
    afterEach(async () => {
      expect(await checkLedger(payment.database)).toEqual([]);
      await payment.close();
    });

    const reserve = (
      itemId: string,
      winc: bigint,
      more: Partial<ReservationRequest> = {},
      credits = payment.credits,
    ): Promise<Reservation> =>
      credits.reserve({
        itemId,
        signer: ada,
        paidBy: [],
        directive: "list-or-signer",
        winc,
        expiresAt: testStart + hour,
        ...more,
      });
    const approve = (approvalId: string, payer: UserAddress, winc: bigint, expiresAt?: number, approved = ada) =>
      payment.credits.approve({ approvalId, payer, approved, winc, expiresAt });
    const wincOf = async (address: UserAddress) => (await payment.credits.balance(address))?.winc;

    test("a reservation holds winc until it is posted, which spends them once, however often it is called", async () => {
      const reservation = await reserve("item", 300n);
      expect(reservation).toEqual({
        id: "item.1",
        itemId: "item",
        signer: ada,
        winc: 300n,
        state: "pending",
        parts: [{ payer: ada, approvalId: undefined, winc: 300n }],
        createdAt: testStart,
        expiresAt: testStart + hour,
      });
      expect(await payment.held(held("item.1"))).toBe(300n);
      expect(await wincOf(ada)).toBe(700n);
      const posted = await Promise.all(Array.from({ length: 50 }, () => payment.credits.post("item.1")));
      expect(new Set(posted)).toEqual(new Set(["posted"]));
      expect(await payment.held(revenue)).toBe(300n);
      expect(await payment.held(held("item.1"))).toBe(0n);
      expect(await wincOf(ada)).toBe(700n);
    });

    test("E: a reservation is returned once, however often it is voided", async () => {
      const { id } = await reserve("item", 300n);
      const voided = await Promise.all(Array.from({ length: 50 }, () => payment.credits.void(id)));
      expect(new Set(voided)).toEqual(new Set(["voided"]));
      expect(await wincOf(ada)).toBe(1_000n);
      expect(await payment.credits.post(id)).toBe("voided");
      expect(await payment.held(revenue)).toBe(0n);
    });

    test("of concurrent post, void and expire one wins, and all return its state", async () => {
      const winners = new Map<string, number>();
      for (let round = 0; round < 30; round++) {
        const { id } = await reserve(`item-${round}`, 10n, { expiresAt: payment.clock.now() });
        const asked = [
          () => payment.credits.post(id),
          () => payment.credits.void(id),
          async () => {
            await payment.credits.expire(never);
            return payment.credits.post(id);
          },
        ];
        const order = [0, 1, 2].sort(() => payment.random.below(3) - 1);
        const reported = await Promise.all(order.map((number) => asked[number]?.()));
        expect(new Set(reported).size).toBe(1);
        const winner = reported[0] ?? "none";
        winners.set(winner, (winners.get(winner) ?? 0) + 1);
      }
      const posted = BigInt(winners.get("posted") ?? 0);
      expect(await payment.held(revenue)).toBe(10n * posted);
      expect(await wincOf(ada)).toBe(1_000n - 10n * posted);
    });

    test("the same item reserves once, also when it is sent 100 times at once through two handles", async () => {
      const second = await payment.ledger.openAgain();
      const { clock, makeId } = payment;
      const others = createCredits({ database: second, clock: clock.now, makeId });
      const many = await Promise.all(
        Array.from({ length: 100 }, (_, number) =>
          reserve("item", 100n, {}, number % 2 === 0 ? payment.credits : others),
        ),
      );
      await second.close();
      expect(new Set(many.map(({ id }) => id))).toEqual(new Set(["item.1"]));
      expect(await wincOf(ada)).toBe(900n);
      await payment.credits.post("item.1");
      expect(await reserve("item", 100n)).toMatchObject({ id: "item.1", state: "posted" });
      expect(await wincOf(ada)).toBe(900n);
    });

    test("a pending reservation keeps its price and adopts a later expiry", async () => {
      await reserve("item", 100n);
      expect(await reserve("item", 200n, { expiresAt: testStart + 2 * hour })).toMatchObject({
        winc: 100n,
        expiresAt: testStart + 2 * hour,
      });
      expect(await reserve("item", 100n, { expiresAt: testStart })).toMatchObject({
        expiresAt: testStart + 2 * hour,
      });
      payment.clock.advance(hour);
      expect(await payment.credits.expire(never)).toBe(0);
      expect(await payment.credits.reservation("item")).toMatchObject({
        state: "pending",
        expiresAt: testStart + 2 * hour,
      });
    });

    test("after a failed attempt the next one has a new reservation, and a late call for the old one changes nothing", async () => {
      await reserve("item", 100n);
      await payment.credits.void("item.1");
      expect(await reserve("item", 150n)).toMatchObject({ id: "item.2", state: "pending", winc: 150n });
      expect(await payment.credits.post("item.1")).toBe("voided");
      expect(await payment.credits.void("item.1")).toBe("voided");
      expect(await wincOf(ada)).toBe(850n);
      payment.clock.advance(hour);
      await payment.credits.expire(never);
      expect(await reserve("item", 1n, { expiresAt: testStart + 2 * hour })).toMatchObject({ id: "item.3" });
      expect(await payment.credits.reservation("item")).toMatchObject({ id: "item.3", state: "pending" });
    });

    test("an expired reservation is returned by the expiry round, and can be posted until then", async () => {
      await reserve("abandoned", 100n);
      await reserve("late", 50n);
      payment.clock.set(testStart + hour - 1);
      expect(await payment.credits.expire(never)).toBe(0);
      payment.clock.set(testStart + hour);
      expect(await payment.credits.post("late.1")).toBe("posted");
      expect(await payment.credits.expire(never)).toBe(1);
      expect(await payment.credits.post("abandoned.1")).toBe("expired");
      expect(await wincOf(ada)).toBe(950n);
    });

    test("more expired reservations than one step handles all end", async () => {
      await Promise.all(Array.from({ length: 120 }, (_, number) => reserve(`item-${number}`, 1n)));
      payment.clock.advance(hour);
      expect(await payment.credits.expire(never)).toBe(120);
      expect(await wincOf(ada)).toBe(1_000n);
      const stopped = AbortSignal.abort();
      expect(await payment.credits.expire(stopped)).toBe(0);
    });

    test("a free item is reserved and posted without a transfer, also for an unknown address", async () => {
      const { id, parts } = await reserve("free", 0n, { signer: dee });
      expect(parts).toEqual([]);
      expect(await payment.credits.post(id)).toBe("posted");
      expect(await reserve("free", 0n, { signer: dee })).toMatchObject({ state: "posted" });
      expect(await payment.credits.balance(dee)).toBeUndefined();
    });

    const pay = (itemId: string, winc: bigint, more: Partial<ItemPayment> = {}) => {
      const step = { now: payment.clock.now(), makeId: payment.makeId };
      const asked = { itemId, signer: ada, paidBy: [], directive: "list-or-signer", winc, ...more } as const;
      return payment.database.write((tx) => payAtOnce(tx, asked, step));
    };

    test("a stored item is paid for in one transfer, from approvals by their expiry and then by its signer", async () => {
      await payment.credit(bob, 100n);
      await approve("late", bob, 40n);
      await approve("soon", bob, 10n, testStart + hour);
      const paid = await pay("item", 60n, { paidBy: [bob] });
      expect(paid).toEqual({
        id: "item.1",
        itemId: "item",
        signer: ada,
        winc: 60n,
        state: "posted",
        parts: [
          { payer: bob, approvalId: "soon", winc: 10n },
          { payer: bob, approvalId: "late", winc: 40n },
          { payer: ada, approvalId: undefined, winc: 10n },
        ],
        createdAt: testStart,
        expiresAt: testStart,
      });
      expect(await payment.credits.reservation("item")).toEqual(paid);
      expect(await payment.held(held("item.1"))).toBe(0n);
      expect(await payment.held(revenue)).toBe(60n);
      const [last] = await payment.credits.history(ada, { limit: 10 });
      expect(last).toMatchObject({ kind: "upload", amount: -10n, changeId: "item" });
      for (const id of ["soon", "late"]) expect(await payment.credits.approval(id)).toMatchObject({ state: "used" });
      expect(await payment.credits.post(paid.id)).toBe("posted");
      expect(await payment.credits.void(paid.id)).toBe("posted");
      expect(await payment.held(revenue)).toBe(60n);
    });

    test("an item is paid for once, from a pending reservation at its price if there is one", async () => {
      const paid = await Promise.all(Array.from({ length: 20 }, () => pay("often", 5n)));
      expect(new Set(paid.map(({ id }) => id))).toEqual(new Set(["often.1"]));
      await reserve("held", 30n);
      expect(await pay("held", 70n)).toMatchObject({ id: "held.1", winc: 30n, state: "posted" });
      await payment.credits.void((await reserve("again", 40n)).id);
      expect(await pay("again", 50n)).toMatchObject({ id: "again.2", winc: 50n, state: "posted" });
      expect(await pay("nothing", 0n, { signer: dee })).toMatchObject({ state: "posted", parts: [] });
      expect(await payment.held(revenue)).toBe(85n);
      expect(await wincOf(ada)).toBe(915n);
    });

    test("a payer with too few credits pays nothing", async () => {
      await payment.credit(bob, 10n);
      await approve("some", bob, 10n);
      const reported = pay("item", 1_011n, { paidBy: [bob] });
      await expect(reported).rejects.toMatchObject({
        code: "insufficient_balance",
        context: { needed: 1_011n, available: 1_010n },
      });
      await reported.catch(() => undefined);
      expect(await payment.credits.reservation("item")).toBeUndefined();
      expect(await wincOf(ada)).toBe(1_000n);
    });

    test("L2: of 1,000 uploads at once on credits for 500, exactly 500 are paid for", async () => {
      const many = await Promise.allSettled(
        Array.from({ length: 1_000 }, (_, number) => reserve(`item-${number}`, 2n)),
      );
      expect(many.filter(({ status }) => status === "fulfilled")).toHaveLength(500);
      for (const one of many)
        if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "insufficient_balance" });
      expect(await wincOf(ada)).toBe(0n);
    });

    test("B: no debit is lost while the same balance is credited and charged back", async () => {
      const posts = Array.from({ length: 100 }, async (_, number) =>
        payment.credits.post((await reserve(`item-${number}`, 3n)).id),
      );
      const credits = Array.from({ length: 100 }, () => payment.credit(ada, 7n));
      const backs = Array.from({ length: 100 }, () => payment.chargeBack(ada, 5n));
      await Promise.all([...posts, ...credits, ...backs]);
      expect(await wincOf(ada)).toBe(1_000n + 100n * (7n - 5n - 3n));
    });

    test("G: charged-back credits are withheld from their holder, spent or not, and cannot be spent again", async () => {
      await payment.credit(bob, 100n);
      const { id } = await reserve("item", 40n, { signer: bob });
      const { id: other } = await reserve("other", 10n, { signer: bob });
      await payment.credits.post(id);
      await payment.chargeBack(bob, 100n);
      expect(await wincOf(bob)).toBe(-50n);
      expect(await payment.credits.void(other)).toBe("voided");
      expect(await wincOf(bob)).toBe(-40n);
      await expect(reserve("more", 1n, { signer: bob })).rejects.toMatchObject({
        context: { needed: 1n, available: 0n },
      });
      expect(await payment.held(provider("stripe"))).toBe(-1_000n);
    });

    describe("pays", () => {
      type Row = readonly [
        name: string,
        asked: Partial<ReservationRequest>,
        winc: bigint,
        drawn: readonly string[] | { needed: bigint; available: bigint },
      ];
      const rows: readonly Row[] = [
        ["the signer alone", {}, 60n, ["60 of ada"]],
        ["a listed payer before the signer", { paidBy: [bob] }, 60n, ["20 of b-soon", "30 of b-late", "10 of ada"]],
        ["payers in the order of the list", { paidBy: [cy, bob] }, 70n, ["40 of c", "20 of b-soon", "10 of b-late"]],
        ["a repeated payer once", { paidBy: [bob, bob, bob] }, 60n, ["20 of b-soon", "30 of b-late", "10 of ada"]],
        ["only the list", { paidBy: [bob], directive: "list-only" }, 60n, { needed: 60n, available: 50n }],
        [
          "only the list, when it suffices",
          { paidBy: [bob, cy], directive: "list-only" },
          90n,
          ["20 of b-soon", "30 of b-late", "40 of c"],
        ],
        ["no payer, when only an empty list may pay", { directive: "list-only" }, 1n, { needed: 1n, available: 0n }],
        ["a listed signer in its place", { paidBy: [ada, bob] }, 120n, ["100 of ada", "20 of b-soon"]],
        [
          "a listed signer, when only the list may pay",
          { paidBy: [bob, ada], directive: "list-only" },
          60n,
          ["20 of b-soon", "30 of b-late", "10 of ada"],
        ],
        ["a payer who approved nothing passes", { paidBy: [dee] }, 10n, ["10 of ada"]],
        [
          "a payer's own balance is not touched",
          { paidBy: [bob], directive: "list-only" },
          51n,
          { needed: 51n, available: 50n },
        ],
        ["an approval for another is not touched", { paidBy: [bob], signer: dee }, 1n, { needed: 1n, available: 0n }],
        [
          "all together, to the last winc",
          { paidBy: [bob, cy] },
          190n,
          ["20 of b-soon", "30 of b-late", "40 of c", "100 of ada"],
        ],
        ["not one winc more", { paidBy: [bob, cy] }, 191n, { needed: 191n, available: 190n }],
      ];

      beforeEach(async () => {
        await payment.chargeBack(ada, 900n);
        for (const payer of [bob, cy]) await payment.credit(payer, 500n);
        await approve("b-late", bob, 30n, testStart + 2 * hour);
        await approve("b-soon", bob, 20n, testStart + hour);
        await approve("b-for-cy", bob, 20n, undefined, cy);
        await approve("c", cy, 40n);
      });

      for (const [name, asked, winc, drawn] of rows)
        test(`${name}`, async () => {
          const reserved = reserve("item", winc, asked);
          if (!Array.isArray(drawn)) {
            await expect(reserved).rejects.toMatchObject({ code: "insufficient_balance", context: drawn });
            expect(await payment.credits.reservation("item")).toBeUndefined();
            return;
          }
          const { parts } = await reserved;
          const words = new Map([[String(ada), "ada"]]);
          expect(parts.map((part) => `${part.winc} of ${part.approvalId ?? words.get(part.payer)}`)).toEqual([
            ...drawn,
          ]);
          for (const [id, all] of [
            ["b-soon", 20n],
            ["b-late", 30n],
            ["c", 40n],
          ] as const) {
            const part = parts.find(({ approvalId }) => approvalId === id);
            expect(await payment.held(escrow(id))).toBe(all - (part?.winc ?? 0n));
          }
          await payment.credits.void("item.1");
          for (const [id, all] of [
            ["b-soon", 20n],
            ["b-late", 30n],
            ["c", 40n],
          ] as const)
            expect(await payment.held(escrow(id))).toBe(all);
          expect(await wincOf(ada)).toBe(100n);
        });
    });

    test("returned credits go to spendable approvals, and to the payers of ended ones", async () => {
      await payment.credit(bob, 300n);
      await approve("lasting", bob, 100n);
      await approve("brief", bob, 100n, testStart + hour);
      await reserve("item", 230n, { paidBy: [bob], expiresAt: testStart + 2 * hour });
      expect(await payment.credits.reservation("item")).toMatchObject({
        parts: [
          { approvalId: "brief", winc: 100n },
          { approvalId: "lasting", winc: 100n },
          { payer: ada, winc: 30n },
        ],
      });
      payment.clock.advance(2 * hour);
      await payment.credits.expire(never);
      expect(await payment.held(escrow("lasting"))).toBe(100n);
      expect(await payment.held(escrow("brief"))).toBe(0n);
      expect(await wincOf(bob)).toBe(200n);
      expect(await wincOf(ada)).toBe(1_000n);
    });

    test("a balance below zero cannot be spent, not by itself and not through approvals given before", async () => {
      await payment.credit(bob, 100n);
      await approve("before", bob, 60n);
      await payment.chargeBack(bob, 90n);
      expect(await payment.credits.balance(bob)).toMatchObject({ winc: -50n, controlledWinc: 10n });
      await expect(reserve("own", 1n, { signer: bob })).rejects.toMatchObject({
        context: { needed: 1n, available: 0n },
      });
      await expect(approve("after", bob, 1n)).rejects.toMatchObject({
        context: { needed: 1n, available: -50n },
      });
      await expect(reserve("shared", 1n, { paidBy: [bob], directive: "list-only" })).rejects.toMatchObject({
        context: { needed: 1n, available: 0n },
      });
      await payment.credit(bob, 50n);
      expect((await reserve("shared", 1n, { paidBy: [bob], directive: "list-only" })).state).toBe("pending");
    });

    test("a payer whose debt is covered by expired approvals can pay before the expiry round", async () => {
      await payment.credit(bob, 100n);
      await approve("brief", bob, 60n, testStart + hour, cy);
      await approve("lasting", bob, 30n);
      await payment.chargeBack(bob, 50n);
      const listed = { paidBy: [bob], directive: "list-only" } as const;
      await expect(reserve("item", 1n, listed)).rejects.toMatchObject({
        context: { needed: 1n, available: 0n },
      });
      payment.clock.advance(hour);
      expect((await reserve("item", 1n, listed)).parts).toMatchObject([{ approvalId: "lasting", winc: 1n }]);
    });

    test("an address in debt may spend received approvals, and returned credits reduce its debt", async () => {
      await payment.credit(bob, 100n);
      await approve("for ada", bob, 60n);
      const { id } = await reserve("own", 500n);
      await payment.chargeBack(ada, 600n);
      expect(await wincOf(ada)).toBe(-100n);
      expect((await reserve("shared", 60n, { paidBy: [bob] })).parts).toMatchObject([{ approvalId: "for ada" }]);
      await payment.credits.void(id);
      expect(await wincOf(ada)).toBe(400n);
    });

    test("an upload names a bounded number of payers, and draws on a bounded number of approvals", async () => {
      const crowd = Array.from({ length: paidByMax + 1 }, (_, number) => testAddress(`payer${number}`));
      await expect(reserve("item", 1n, { paidBy: crowd })).rejects.toMatchObject({
        code: "payment_rejected",
      });
      expect((await reserve("item", 1n, { paidBy: crowd.slice(0, paidByMax) })).state).toBe("pending");
      await payment.credit(bob, 1_000n);
      await Promise.all(Array.from({ length: partsMax + 1 }, (_, number) => approve(`a-${number}`, bob, 1n)));
      const listed = { paidBy: [bob], directive: "list-only" } as const;
      await expect(reserve("large", BigInt(partsMax) + 1n, listed)).rejects.toMatchObject({
        context: { needed: BigInt(partsMax) + 1n, available: BigInt(partsMax) },
      });
      expect((await reserve("large", BigInt(partsMax), listed)).parts).toHaveLength(partsMax);
    });

    test.each([
      ["one payer", [bob]],
      ["the next payer", [bob, cy]],
    ] as const)("many small approvals do not hide a large one of %s", async (_of, payers) => {
      const payer = payers.at(-1) ?? bob;
      await payment.credit(bob, 1_000n);
      await payment.credit(payer, 5_000n);
      await Promise.all(Array.from({ length: partsMax }, (_, number) => approve(`a-${number}`, bob, 1n)));
      await approve("b", payer, 5_000n);
      const listed = { paidBy: payers, directive: "list-only" } as const;
      const most = 5_000n + BigInt(partsMax) - 1n;
      await expect(reserve("item", most + 1n, listed)).rejects.toMatchObject({
        context: { needed: most + 1n, available: most },
      });
      const { parts } = await reserve("item", most, listed);
      expect(parts).toHaveLength(partsMax);
      expect(parts.at(-1)).toEqual({ payer, approvalId: "b", winc: 5_000n });
    });

    test("the limit of approvals does not count the signer's own credits, which pay the rest", async () => {
      await payment.credit(bob, 1_000n);
      await Promise.all(Array.from({ length: partsMax + 1 }, (_, number) => approve(`a-${number}`, bob, 1n)));
      const covered = BigInt(partsMax) + 1_000n;
      await expect(reserve("item", covered + 1n, { paidBy: [bob] })).rejects.toMatchObject({
        context: { needed: covered + 1n, available: covered },
      });
      const { parts } = await reserve("item", covered, { paidBy: [bob] });
      expect(parts).toHaveLength(partsMax + 1);
      expect(parts.at(-1)).toEqual({ payer: ada, approvalId: undefined, winc: 1_000n });
      expect(await wincOf(ada)).toBe(0n);
    });

    test("M: amounts near the edge of 64 bits stay exact", async () => {
      const much = 2n ** 62n - 1n - 1_000n;
      await payment.credit(ada, much);
      const { id } = await reserve("item", much + 999n);
      await payment.credits.post(id);
      expect(await wincOf(ada)).toBe(1n);
      expect(await payment.held(revenue)).toBe(much + 999n);
      await expect(reserve("beyond", 2n ** 80n)).rejects.toMatchObject({ code: "insufficient_balance" });
    });
  });
