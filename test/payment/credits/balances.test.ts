/**
 * Balances and histories: what an address is notified it has, and how it came to it.
 * @module
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import { historyPageMax } from "../../../src/payment/credits/credits.ts";
import { describeWith } from "../../support/helpers.ts";
import { ledgerKinds } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment, testAddress, testStart } from "../../support/payment.ts";

const ada = testAddress("ada");
const bob = testAddress("bob");
const hour = 3_600_000;

/** One step of a case, and the balances after it: winc, controlledWinc, effectiveBalance; a stranger has none. */
type Step = readonly [
  what: string,
  act: (payment: TestPayment) => Promise<unknown>,
  ada: readonly [bigint, bigint, bigint] | undefined,
  bob: readonly [bigint, bigint, bigint] | undefined,
];

const approve = (approvalId: string, winc: bigint, expiresAt?: number) => (payment: TestPayment) =>
  payment.credits.approve({ approvalId, payer: ada, approved: bob, winc, expiresAt });
const upload = (itemId: string, winc: bigint) => (payment: TestPayment) =>
  payment.credits.reserve({
    itemId,
    signer: bob,
    paidBy: [ada],
    directive: "list-or-signer",
    winc,
    expiresAt: testStart + 10 * hour,
  });

/** One life of two addresses. */
const life: readonly Step[] = [
  ["nothing happened", async () => undefined, undefined, undefined],
  ["ada pays in", (payment) => payment.credit(ada, 100n), [100n, 100n, 100n], undefined],
  ["ada lets bob spend some", approve("brief", 30n, testStart + hour), [70n, 100n, 70n], [0n, 0n, 30n]],
  ["ada lets bob spend more, for ever", approve("lasting", 20n), [50n, 100n, 50n], [0n, 0n, 50n]],
  ["bob uploads for ada's credits", upload("one", 25n), [50n, 75n, 50n], [0n, 0n, 25n]],
  ["the upload succeeds", (payment) => payment.credits.post("one.1"), [50n, 75n, 50n], [0n, 0n, 25n]],
  ["an hour passes", async ({ clock }) => clock.advance(hour), [55n, 75n, 55n], [0n, 0n, 20n]],
  [
    "what expired is cleaned up",
    (payment) => payment.credits.expire(new AbortController().signal),
    [55n, 75n, 55n],
    [0n, 0n, 20n],
  ],
  ["bob pays in", (payment) => payment.credit(bob, 7n), [55n, 75n, 55n], [7n, 7n, 27n]],
  ["bob's next upload takes from both", upload("two", 22n), [55n, 55n, 55n], [5n, 5n, 5n]],
  ["and fails", (payment) => payment.credits.void("two.1"), [55n, 75n, 55n], [7n, 7n, 27n]],
  ["ada's payment is charged back", (payment) => payment.chargeBack(ada, 100n), [-45n, -25n, -45n], [7n, 7n, 27n]],
  [
    "ada takes back what she let bob spend",
    (payment) => payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" }),
    [-25n, -25n, -25n],
    [7n, 7n, 7n],
  ],
];

for (const kind of ledgerKinds())
  describeWith(kind.need, `balances on ${kind.name}`, () => {
    let payment: TestPayment;
    beforeEach(async () => {
      payment = await openTestPayment({ kind });
    });
    afterEach(() => payment.close());

    const shown = async (address: UserAddress) => {
      const balance = await payment.credits.balance(address);
      return balance && [balance.winc, balance.controlledWinc, balance.effectiveBalance];
    };

    test("follow approvals from creation to end, for the payer and the approved address", async () => {
      for (const [what, act, adaHas, bobHas] of life) {
        await act(payment);
        expect({ what, ada: await shown(ada), bob: await shown(bob) }).toEqual({
          what,
          ada: adaHas && [...adaHas],
          bob: bobHas && [...bobHas],
        });
      }
    });

    test("an address whose approvals all ended has no balance again", async () => {
      await payment.credit(ada, 10n);
      await approve("first", 10n)(payment);
      expect(await shown(bob)).toEqual([0n, 0n, 10n]);
      await payment.credits.revoke({ payer: ada, approved: bob, revokeId: "back" });
      expect(await payment.credits.balance(bob)).toBeUndefined();
    });

    test("lists stop at 1,000 approvals, sums do not", async () => {
      await payment.credit(ada, 2_000n);
      await payment.credit(bob, 2_000n);
      const cy = testAddress("cy");
      for (const payer of [ada, bob])
        await Promise.all(
          Array.from({ length: 600 }, (_, number) =>
            payment.credits.approve({ approvalId: `${payer}-${number}`, payer, approved: cy, winc: 3n }),
          ),
        );
      const balance = await payment.credits.balance(cy);
      expect(balance?.receivedApprovals).toHaveLength(1_000);
      expect(balance?.effectiveBalance).toBe(3_600n);
      const ofAda = await payment.credits.approvals({ payer: ada, approved: cy });
      expect(ofAda.approvals).toHaveLength(600);
      expect(ofAda.unusedWinc).toBe(1_800n);
    });

    test("the pages of a history hold every movement of the address once, newest first, while more arrive", async () => {
      for (let number = 1n; number <= 25n; number++) {
        await payment.credit(ada, number);
        if (number % 2n === 0n) payment.clock.advance(1);
      }
      await payment.credit(bob, 1_000n);
      await approve("first", 10n)(payment);
      const pages: bigint[][] = [];
      let before: string | undefined;
      while (true) {
        const page = await payment.credits.history(ada, { before, limit: 10 });
        if (page.length === 0) break;
        pages.push(page.map(({ amount }) => amount));
        before = page.at(-1)?.transferId;
        await payment.credit(ada, 500n);
      }
      const expected = [-10n, ...Array.from({ length: 25 }, (_, number) => 25n - BigInt(number))];
      expect(pages.flat()).toEqual(expected);
      expect(pages.map(({ length }) => length)).toEqual([10, 10, 6]);
      const [newest] = await payment.credits.history(ada, { limit: historyPageMax });
      expect(newest).toMatchObject({ kind: "payment", amount: 500n, at: payment.clock.now() });
      expect(await payment.credits.history(testAddress("stranger"), { limit: 1 })).toEqual([]);
    });
  });
