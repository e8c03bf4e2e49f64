/**
 * Approvals: given, received, spent in order of expiry, revoked, expired; nothing is ever given back twice or made.
 *
 * The capitals number faults that such a service can have.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { type Approval, activeApprovalsMax } from "../../../src/payment/credits/approvals.ts";
import type { Reservation, ReservationRequest } from "../../../src/payment/credits/reservations.ts";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { escrow, user } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../../support/payment.ts";

const ada = testAddress("ada");
const bob = testAddress("bob");
const cy = testAddress("cy");
const hour = 3_600_000;
const never = new AbortController().signal;

for (const kind of ledgerKinds())
  describeWith(kind.need, `approvals on ${kind.name}`, () => {
    let payment: TestPayment;
    beforeEach(async () => {
      payment = await openTestPayment({ kind });
      await payment.credit(ada, 1_000n);
    });
    afterEach(async () => {
      expect(await checkLedger(payment.database)).toEqual([]);
      await payment.close();
    });

    const give = (approvalId: string, winc: bigint, expiresAt?: number, to: UserAddress = bob): Promise<Approval> =>
      payment.credits.approve({ approvalId, payer: ada, approved: to, winc, expiresAt });
    const reserve = (itemId: string, winc: bigint, more: Partial<ReservationRequest> = {}): Promise<Reservation> =>
      payment.credits.reserve({
        itemId,
        signer: bob,
        paidBy: [ada],
        directive: "list-only",
        winc,
        expiresAt: payment.clock.now() + hour,
        ...more,
      });
    const wincOf = async (address: UserAddress) => (await payment.credits.balance(address))?.winc;
    const stateOf = async (id: string) => (await payment.credits.approval(id))?.state;

    test("an approval moves its winc out of the payer's balance, and both addresses list it", async () => {
      const given = await give("first", 300n, testStart + hour);
      expect(given).toEqual({
        id: "first",
        payingAddress: ada,
        approvedAddress: bob,
        approvedWinc: 300n,
        usedWinc: 0n,
        state: "active",
        createdAt: testStart,
        expiresAt: testStart + hour,
      });
      expect(await payment.credits.balance(ada)).toEqual({
        winc: 700n,
        controlledWinc: 1_000n,
        effectiveBalance: 700n,
        givenApprovals: [given],
        receivedApprovals: [],
      });
      expect(await payment.credits.balance(bob)).toEqual({
        winc: 0n,
        controlledWinc: 0n,
        effectiveBalance: 300n,
        givenApprovals: [],
        receivedApprovals: [given],
      });
      expect(await payment.held(escrow("first"))).toBe(300n);
    });

    test("invalid approvals are rejected", async () => {
      const rows: readonly (readonly [() => Promise<unknown>, object])[] = [
        [() => give("none", 0n), { code: "payment_rejected" }],
        [() => give("less", -1n), { code: "payment_rejected" }],
        [() => give("self", 1n, undefined, ada), { code: "payment_rejected" }],
        [() => give("past", 1n, testStart), { code: "payment_rejected" }],
        [() => give("no time", 1n, Number.NaN), { code: "payment_rejected" }],
        [() => give("no end", 1n, Number.POSITIVE_INFINITY), { code: "payment_rejected" }],
        [() => give("beyond", 2n ** 70n), { code: "payment_rejected" }],
        [() => give("much", 1_001n), { code: "insufficient_balance", context: { needed: 1_001n, available: 1_000n } }],
        [
          () => payment.credits.approve({ approvalId: "stranger", payer: cy, approved: bob, winc: 1n }),
          { code: "insufficient_balance", context: { needed: 1n, available: 0n } },
        ],
      ];
      for (const [asked, failure] of rows) await expect(asked()).rejects.toMatchObject(failure);
      expect(await wincOf(ada)).toBe(1_000n);
      expect(await payment.credits.balance(bob)).toBeUndefined();
    });

    test("a data item creates one approval, also when the first has ended, and also when it is sent 50 times at once", async () => {
      const many = await Promise.allSettled(Array.from({ length: 50 }, () => give("same", 10n)));
      expect(many.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const conflict = {
        code: "payment_rejected",
        context: { reason: "Conflicting approval found for approval ID 'same'" },
      };
      await expect(give("same", 10n)).rejects.toMatchObject(conflict);
      await payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" });
      await expect(give("same", 10n)).rejects.toMatchObject(conflict);
      expect(await wincOf(ada)).toBe(1_000n);
    });

    test(`at most ${activeApprovalsMax} approvals of a pair are active at once`, async () => {
      await payment.credit(ada, 1_000n);
      await Promise.all(Array.from({ length: activeApprovalsMax }, (_, number) => give(`many-${number}`, 1n)));
      await expect(give("one more", 1n)).rejects.toMatchObject({ code: "payment_rejected" });
      expect(await give("for another", 1n, undefined, cy)).toMatchObject({ state: "active" });
      expect((await payment.credits.balance(bob))?.receivedApprovals).toHaveLength(activeApprovalsMax);
      expect(await payment.credits.revoke({ payer: ada, approved: bob, revokeId: "all" })).toHaveLength(
        activeApprovalsMax,
      );
      expect(await wincOf(ada)).toBe(1_999n);
    });

    test("D: approvals are spent by their expiry, those without expiry last, in any order of creation", async () => {
      await give("never", 10n);
      await give("late", 10n, testStart + 3 * hour);
      await give("soon", 10n, testStart + hour);
      await give("middle", 10n, testStart + 2 * hour);
      const { parts } = await reserve("item", 35n);
      expect(parts.map(({ approvalId, winc }) => [approvalId, winc])).toEqual([
        ["soon", 10n],
        ["middle", 10n],
        ["late", 10n],
        ["never", 5n],
      ]);
    });

    test("D: an approval can be spent while now < its expiry, and not afterwards, also without the expiry round", async () => {
      await give("hourly", 10n, testStart + hour);
      payment.clock.set(testStart + hour - 1);
      await reserve("just in time", 5n);
      payment.clock.set(testStart + hour);
      await expect(reserve("too late", 5n)).rejects.toMatchObject({
        code: "insufficient_balance",
        context: { needed: 5n, available: 0n },
      });
      expect(await stateOf("hourly")).toBe("active"); // no client has written since
    });

    test("C: an expired approval is returned once, with concurrent reads, reservations and expiry rounds", async () => {
      await give("brief", 400n, testStart + hour);
      payment.clock.advance(hour);
      await Promise.all(
        Array.from({ length: 30 }, async (_, number) => {
          if (number % 3 === 0) await payment.credits.expire(never);
          else if (number % 3 === 1) expect(await wincOf(ada)).toBe(1_000n);
          else await payment.credits.reserve(freeFor(ada, `free-${number}`, payment));
        }),
      );
      expect(await stateOf("brief")).toBe("expired");
      expect(await payment.held(user(ada))).toBe(1_000n);
      expect(await payment.held(escrow("brief"))).toBe(0n);
    });

    test("C: reading writes nothing: the ledger's rows are the same before and after", async () => {
      await give("brief", 400n, testStart + hour);
      await reserve("item", 100n);
      payment.clock.advance(2 * hour);
      const before = await rowsOf(payment);
      expect(await payment.credits.balance(ada)).toMatchObject({
        winc: 900n,
        controlledWinc: 900n,
        givenApprovals: [],
      });
      expect(await payment.credits.balance(bob)).toBeUndefined();
      await payment.credits.approvals({ payer: ada, approved: bob });
      await payment.credits.approval("brief");
      await payment.credits.history(ada, { limit: 10 });
      await payment.credits.reservation("item");
      expect(await rowsOf(payment)).toEqual(before);
    });

    test("expired credits can be spent by the payer in the same step in which they are returned", async () => {
      await give("all", 1_000n, testStart + hour);
      payment.clock.advance(hour);
      const { parts } = await payment.credits.reserve({ ...freeFor(ada, "item", payment), winc: 1_000n });
      expect(parts).toEqual([{ payer: ada, approvalId: undefined, winc: 1_000n }]);
      expect(await stateOf("all")).toBe("expired");
    });

    test("an approval is used when its last winc is posted, and not before", async () => {
      await give("small", 10n);
      const first = await reserve("one", 4n);
      const second = await reserve("two", 6n);
      expect(await payment.credits.approvals({ approved: bob })).toMatchObject({
        approvals: [],
        unusedWinc: 0n,
      });
      await payment.credits.post(first.id);
      expect(await payment.credits.approval("small")).toMatchObject({ state: "active", usedWinc: 10n });
      await payment.credits.post(second.id);
      expect(await payment.credits.approval("small")).toMatchObject({ state: "used", usedWinc: 10n });
    });

    test("an approval whose last winc is posted after its expiry ends as expired", async () => {
      for (const [early, state] of [
        [1, "used"],
        [0, "expired"],
      ] as const) {
        const expiresAt = payment.clock.now() + hour;
        await give(state, 10n, expiresAt);
        const { id } = await reserve(`for ${state}`, 10n);
        payment.clock.set(expiresAt - early);
        await payment.credits.post(id);
        expect(await payment.credits.approval(state)).toMatchObject({ state, usedWinc: 10n });
      }
      expect(await wincOf(ada)).toBe(980n);
    });

    test("a failed upload makes an exhausted approval spendable again", async () => {
      await give("small", 10n);
      const failed = await reserve("one", 10n);
      await payment.credits.void(failed.id);
      expect(await payment.credits.approval("small")).toMatchObject({ state: "active", usedWinc: 0n });
      expect((await reserve("one", 10n)).state).toBe("pending");
    });

    test("a revocation returns the unspent credits of all approvals of the pair, and of no other", async () => {
      await give("first", 100n);
      await give("second", 50n, testStart + hour);
      await give("for another", 30n, undefined, cy);
      const { id } = await reserve("item", 60n);
      await payment.credits.post(id);
      const revoked = await payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" });
      expect(revoked.map((one) => [one.id, one.usedWinc, one.state])).toEqual([["first", 10n, "revoked"]]);
      expect(await wincOf(ada)).toBe(1_000n - 60n - 30n);
      await expect(reserve("more", 1n)).rejects.toMatchObject({ code: "insufficient_balance" });
    });

    test("a repeated revocation returns the same approvals and no credits", async () => {
      await give("first", 100n);
      const revoke = () => payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" });
      const [first, ...others] = await Promise.all(Array.from({ length: 20 }, revoke));
      for (const other of others) expect(other).toEqual(first ?? []);
      await give("later", 100n);
      expect(await revoke()).toEqual(first ?? []);
      expect(await stateOf("later")).toBe("active");
      expect(await wincOf(ada)).toBe(900n);
    });

    test("a revocation without approvals is rejected and names the pair", async () => {
      await give("expired", 1n, testStart + hour);
      payment.clock.advance(hour);
      await expect(payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" })).rejects.toMatchObject({
        code: "payment_rejected",
        context: {
          reason: `No valid approvals found for approved address '${bob}' and paying address '${ada}'`,
        },
      });
      // What failed wrote nothing; the approval ends as what it is.
      expect(await payment.credits.expire(never)).toBe(1);
      expect(await stateOf("expired")).toBe("expired");
    });

    test("E: an upload that fails after its approval ended returns its part to the payer, once", async () => {
      for (const ends of ["revoked", "expired"] as const) {
        const before = await wincOf(ada);
        await give(ends, 100n, payment.clock.now() + hour);
        const { id } = await reserve(`for ${ends}`, 30n);
        const spent = await reserve(`spent ${ends}`, 20n);
        await payment.credits.post(spent.id);
        if (ends === "revoked") await payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" });
        else payment.clock.advance(hour);
        const voided = await Promise.all(Array.from({ length: 20 }, () => payment.credits.void(id)));
        expect(new Set(voided)).toEqual(new Set(["voided"]));
        expect(await wincOf(ada)).toBe((before ?? 0n) - 20n);
        expect(await payment.credits.approval(ends)).toMatchObject({ state: ends, usedWinc: 20n });
      }
    });

    test("F: the entries of every account sum to its balance, and all entries to zero, after each kind of step", async () => {
      await give("stored", 100n);
      await give("brief", 100n, testStart + hour);
      const posted = await reserve("posted", 50n);
      await payment.credits.post(posted.id);
      const voided = await reserve("voided", 70n);
      await payment.credits.void(voided.id);
      await reserve("abandoned", 20n, { expiresAt: testStart + 1 });
      payment.clock.advance(2 * hour);
      await payment.credits.expire(never);
      await payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" });
      await payment.chargeBack(ada, 100n);
      const kinds = await payment.database.read((tx) =>
        tx.all<{ kind: string; times: bigint }>(
          "SELECT kind, COUNT(*) AS times FROM transfers GROUP BY kind ORDER BY kind",
        ),
      );
      expect(kinds.map(({ kind: name, times }) => [name, times])).toEqual([
        ["approval", 2n],
        ["approval_expired", 1n],
        ["approval_revoked", 1n],
        ["chargeback", 1n],
        ["payment", 1n],
        ["reservation", 3n],
        ["reservation_expired", 1n],
        ["reservation_posted", 1n],
        ["reservation_voided", 1n],
      ]);
      // Every winc that left the payer is in the payer's history once: given, and what came back.
      const history = await payment.credits.history(ada, { limit: 100 });
      expect(history.reduce((sum, { amount }) => sum + amount, 0n)).toBe(await payment.held(user(ada)));
      expect(await wincOf(ada)).toBe(1_000n - 50n - 100n);
    });

    test("concurrent spending, revoking and expiring conserve every winc", async () => {
      for (let round = 0; round < 5; round++) {
        await give(`a-${round}`, 60n, payment.clock.now() + hour);
        await give(`b-${round}`, 60n);
        const uploads = Array.from({ length: 12 }, (_, number) =>
          reserve(`item-${round}-${number}`, 11n).then(
            ({ id }) => (number % 2 === 0 ? payment.credits.post(id) : payment.credits.void(id)),
            () => "short",
          ),
        );
        payment.clock.advance(round % 2 === 0 ? hour : 0);
        await Promise.all([
          ...uploads,
          payment.credits.expire(never),
          payment.credits.revoke({ payer: ada, approved: bob, revokeId: `back-${round}` }).catch(rejectedOnly),
        ]);
        await payment.credits.revoke({ payer: ada, approved: bob, revokeId: `rest-${round}` }).catch(rejectedOnly);
        await payment.credits.expire(never);
      }
      const posted = await payment.database.read((tx) =>
        tx.get<{ winc: bigint }>(
          "SELECT CAST(COALESCE(SUM(winc), 0) AS BIGINT) AS winc FROM reservations WHERE state = 'posted'",
        ),
      );
      expect(await payment.held(user(ada))).toBe(1_000n - (posted?.winc ?? 0n));
    });

    test("an ended approval stays ended when the clock is set back", async () => {
      await give("brief", 10n, testStart + hour);
      payment.clock.advance(hour);
      await payment.credits.expire(never);
      payment.clock.set(testStart);
      await expect(reserve("item", 1n)).rejects.toMatchObject({ code: "insufficient_balance" });
      expect(await wincOf(ada)).toBe(1_000n);
    });
  });

function freeFor(signer: UserAddress, itemId: string, { clock }: TestPayment): ReservationRequest {
  return { itemId, signer, paidBy: [], directive: "list-or-signer", winc: 0n, expiresAt: clock.now() + hour };
}

function rejectedOnly(error: unknown): void {
  expect(error).toMatchObject({ code: "payment_rejected" });
}

/** Everything that the ledger holds of credits, as one text. */
async function rowsOf({ database }: TestPayment): Promise<string> {
  const tables = ["accounts", "transfers", "entries", "approvals", "reservations", "reservation_parts"];
  const rows = await database.read(async (tx) => {
    const all: unknown[] = [];
    for (const table of tables) all.push(await tx.all(`SELECT * FROM ${table} ORDER BY 1, 2`));
    return all;
  });
  return Bun.inspect(rows, { depth: 5 });
}
