/**
 * Payments in tokens from first observation on: what is rejected, when they are credited, how often, and what becomes of them
 * when the chain changes its mind.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { keepMark } from "../../../src/payment/tokens/token-payment-store.ts";
import { provider, transfer, user } from "../../../src/store/ledger/transfers.ts";
import { createScriptedChain, type ScriptedOptions, testHash, transferOf } from "./scripted-chain.ts";
import {
  ethereumAddressOf,
  lookAgainMs,
  never,
  openTokenFixture,
  rejectionOf,
  type TokenFixture,
} from "./token-fixture.ts";

const alice = ethereumAddressOf(0xa11ce);
const bob = ethereumAddressOf(0xb0b);
const hash = testHash(0xabcdef);
const day = 24 * 60 * 60_000;
const fixtures: TokenFixture[] = [];

afterEach(async () => {
  for (const fixture of fixtures.splice(0)) {
    expect(await fixture.findings()).toEqual([]);
    await fixture.close();
  }
});

async function open(options: ScriptedOptions & { excluded?: readonly string[] } = {}) {
  const chain = createScriptedChain(options);
  const fixture = await openTokenFixture([chain], options);
  fixtures.push(fixture);
  const submit = (text = hash) => fixture.payments.submit(chain.token, text, never);
  const follow = async () => {
    fixture.payment.clock.advance(lookAgainMs);
    return await fixture.payments.follow(chain, 100, never);
  };
  const stateOf = async (id = hash) => (await fixture.stored(chain, id)).map(({ state }) => state);
  return { ...fixture, chain, submit, follow, stateOf };
}

describe("a reported payment", () => {
  test("waits for its confirmations, and is credited once", async () => {
    const { chain, submit, follow, balance, stateOf } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 100n)] });
    const first = await submit();
    expect([first.payment.state, first.isKnown]).toEqual(["pending", false]);
    expect((await submit()).isKnown).toBe(true);
    chain.mine(2);
    await follow();
    expect(await stateOf()).toEqual(["pending"]);
    expect(await balance(alice)).toBe(0n);
    chain.mine();
    await follow();
    expect(await balance(alice)).toBe(200n);
    const again = await submit();
    expect([again.payment.state, again.isKnown]).toEqual(["credited", true]);
    expect(again.payment).toMatchObject({ quantity: 100n, winc: 200n, sender: alice, destination: alice });
    expect(again.payment.block).toEqual({ height: 1, hash: "block 1" });
  });

  test("is credited by the report when it is already confirmed", async () => {
    const { chain, submit, balance } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 100n)] });
    chain.mine(3);
    const { payment, isKnown } = await submit();
    expect([payment.state, isKnown]).toEqual(["credited", false]);
    expect(await balance(alice)).toBe(200n);
  });

  test("is credited at once by a later report, without waiting for the next check", async () => {
    const { chain, submit } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 100n)] });
    await submit();
    chain.mine(3);
    const { payment, isKnown } = await submit();
    expect([payment.state, isKnown]).toEqual(["credited", false]);
  });

  test("has the price of the moment when it was first seen", async () => {
    const { chain, submit, follow, balance, price } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 100n)] });
    await submit();
    price.perUnit = 1_000n;
    price.isKnown = false;
    chain.mine(3);
    await follow();
    expect(await balance(alice)).toBe(200n);
  });

  test("L1: is the same payment in upper case, and for a hundred concurrent reports in two processes", async () => {
    const { chain, submit, payment, otherPayments, balance } = await open();
    const other = await payment.ledger.openAgain();
    const second = otherPayments(other);
    chain.send(hash, { transfers: [transferOf(alice, 100n, bob)] });
    chain.mine(5);
    const upper = `0x${hash.slice(2).toUpperCase()}`;
    const reports = Array.from({ length: 100 }, (_, index) => {
      const text = index % 2 === 0 ? hash : upper;
      return index % 3 === 0 ? second.submit("ethereum", text, never) : submit(text);
    });
    const responses = await Promise.all(reports);
    expect(new Set(responses.map(({ payment: { state } }) => state))).toEqual(new Set(["credited"]));
    expect(new Set(responses.map(({ payment: { transactionId } }) => transactionId))).toEqual(new Set([hash]));
    expect(await balance(bob)).toBe(200n);
    expect(await balance(alice)).toBe(0n);
    await other.close();
  });

  test.each([
    ["of nothing", 0n, "payment_rejected", "Transaction quantity must be greater than 0"],
    [
      "worth more than an account holds",
      2n ** 256n - 1n,
      "payment_rejected",
      "The amount is larger than an account can hold",
    ],
  ])("%s is rejected and not stored", async (_name, amount, code, reason) => {
    const { chain, submit, stateOf } = await open();
    chain.send(hash, { transfers: [transferOf(alice, amount)] });
    expect(await rejectionOf(submit())).toEqual([code, reason]);
    expect(await stateOf()).toEqual([]);
  });

  test("below one winc is rejected with the reason of the prices", async () => {
    const { chain, submit, price } = await open();
    price.perUnit = 0n;
    chain.send(hash, { transfers: [transferOf(alice, 1n)] });
    expect(await rejectionOf(submit())).toEqual(["payment_rejected", "Crypto payment amount is too small!"]);
  });

  test("of 2^53 + 1 loses no unit", async () => {
    const { chain, submit, balance, stored } = await open();
    const amount = 2n ** 53n + 1n;
    chain.send(hash, { transfers: [transferOf(alice, amount)] });
    chain.mine(3);
    await submit();
    expect(await balance(alice)).toBe(amount * 2n);
    expect((await stored(chain, hash))[0]?.quantity).toBe(amount);
  });

  test("from an excluded sender, or from the watched address, is rejected", async () => {
    const { chain, submit } = await open({ excluded: [bob] });
    const ours = ethereumAddressOf(0xaa);
    for (const sender of [bob, ours]) {
      chain.send(hash, { transfers: [transferOf(sender, 5n)] });
      const reason = `Payment transaction '${hash}' has sender that is on the excluded address list: '${sender}'`;
      expect(await rejectionOf(submit())).toEqual(["sender_excluded", reason]);
    }
  });

  test("to another address is rejected with that address", async () => {
    const { chain, submit } = await open();
    const elsewhere = { target: bob, amount: 7n };
    chain.send(hash, { transfers: [] });
    chain.mine(3);
    const look = chain.look;
    const rotated = {
      ...chain,
      look: async (...call: Parameters<typeof look>) => ({ ...(await look(...call)), outline: elsewhere }),
    };
    const fixture = await openTokenFixture([rotated as typeof chain]);
    fixtures.push(fixture);
    const rejected = await rejectionOf(fixture.payments.submit("ethereum", hash, never));
    expect(rejected).toEqual(["payment_rejected", `Payment transaction '${hash}' has wrong target address '${bob}'`]);
    expect((await rejectionOf(submit()))[1]).toBe("Transaction quantity must be greater than 0");
  });

  test("whose amount only its block shows is rejected until it is mined", async () => {
    const { chain, submit, balance } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n)], shown: "nothing" });
    expect(await rejectionOf(submit())).toEqual([
      "payment_rejected",
      `Transaction with id '${hash}' has not been mined yet!`,
    ]);
    chain.mine(3);
    await submit();
    expect(await balance(alice)).toBe(10n);
  });

  test.each(["", "0x", "xyz", "0x123", `${hash}0`, `0X${hash.slice(2)}`, "../x", "é".repeat(66)])(
    "with the id %p is not found, and no chain is asked",
    async (text) => {
      const { chain, submit } = await open();
      expect(await rejectionOf(submit(text))).toEqual(["transaction_not_found", undefined]);
      expect(chain.looks()).toBe(0);
    },
  );

  test("that is unknown to all nodes is not found after a few attempts", async () => {
    const { chain, submit, stateOf } = await open();
    expect(await rejectionOf(submit())).toEqual(["transaction_not_found", undefined]);
    expect(chain.looks()).toBe(2);
    expect(await stateOf()).toEqual([]);
  });

  test("in a token that is not accepted is rejected", async () => {
    const { payments } = await open();
    expect(await rejectionOf(payments.submit("kyve", hash, never))).toEqual(["token_not_supported", undefined]);
  });

  test("is a fault while the chain, the prices or the ledger is unreachable, and is accepted afterwards", async () => {
    const { chain, submit, price, balance } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    chain.mine(3);
    for (const reason of ["connect", "timeout", "malformed"] as const) {
      chain.fail(reason);
      expect((await rejectionOf(submit()))[0]).toBe("transaction_fault");
    }
    chain.fail(undefined);
    price.isKnown = false;
    expect((await rejectionOf(submit()))[0]).toBe("transaction_fault");
    price.isKnown = true;
    await submit();
    expect(await balance(alice)).toBe(10n);
  });

  test("ends with its caller, without effect on other callers", async () => {
    const { chain, payments, submit } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    chain.mine(3);
    const leaving = new AbortController();
    const left = payments.submit("ethereum", hash, leaving.signal);
    const stays = submit();
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    expect((await stays).payment.state).toBe("credited");
  });
});

describe("a payment goes", () => {
  test.each([
    ["the address that it names", bob.toLowerCase(), bob, "ethereum"],
    ["an address of another chain", `${"a".repeat(42)}A`, `${"a".repeat(42)}A`, "native"],
    ["its sender when it names none", undefined, alice, "ethereum"],
    ["its sender when it names no address", "anyPayer", alice, "ethereum"],
    [
      "its sender when it names an address with a wrong checksum",
      "0xFB6916095ca1df60bB79Ce92cE3Ea74c37c5d35A",
      alice,
      "ethereum",
    ],
  ])("to %s", async (_name, named, account, type) => {
    const { chain, submit } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n, named)] });
    chain.mine(3);
    const { payment } = await submit();
    expect<string>(payment.destination).toBe(account);
    expect<string>(payment.destinationType).toBe(type);
    expect(payment.sender).toBe(alice);
  });

  test("to each of its senders, where there are several", async () => {
    const { chain, submit, balance, stateOf } = await open({ excluded: [ethereumAddressOf(3)] });
    const carol = ethereumAddressOf(0xca401);
    const transfers = [transferOf(alice, 5n), transferOf(ethereumAddressOf(3), 9n), transferOf(carol, 7n)];
    chain.send(hash, { transfers });
    chain.mine(3);
    const { payment } = await submit();
    expect(payment.sender).toBe(alice);
    expect(await stateOf()).toEqual(["credited", "credited"]);
    expect([await balance(alice), await balance(carol)]).toEqual([10n, 14n]);
  });
});

describe("a payment that does not come to an end", () => {
  test("fails when its failure on the chain is confirmed", async () => {
    const { chain, submit, follow, stateOf, balance } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n)], succeeded: false });
    chain.mine(2);
    expect((await submit()).payment.state).toBe("pending");
    chain.mine();
    await follow();
    expect(await stateOf()).toEqual(["failed"]);
    chain.mine(20);
    const again = await submit();
    expect([again.payment.state, again.isKnown]).toEqual(["failed", true]);
    expect(again.payment.failureReason).toBe("The chain did not carry the transaction out");
    expect(await balance(alice)).toBe(0n);
  });

  test("fails when it was unknown for a day, and is repriced when it is found again", async () => {
    const { chain, submit, follow, stateOf, payment, price, balance } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    await submit();
    chain.mine(1, [hash]);
    chain.takeBack(1, "gone");
    payment.clock.advance(day - 2 * lookAgainMs);
    await follow();
    expect(await stateOf()).toEqual(["pending"]);
    payment.clock.advance(20 * 60_000);
    await follow();
    expect(await stateOf()).toEqual(["failed"]);
    expect((await submit()).payment.failureReason).toBe("not_found");
    price.perUnit = 3n;
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    expect((await submit()).payment.state).toBe("pending");
    chain.mine(3);
    payment.clock.advance(lookAgainMs);
    await follow();
    expect(await balance(alice)).toBe(15n);
  });

  test.each([
    ["an hour", 60 * 60_000, 10n],
    ["no longer", 60 * 60_000 + 1, 15n],
  ])("holds its price for %s while it is in no block", async (_, ms, credited) => {
    const { chain, submit, follow, payment, price, balance } = await open();
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    await submit();
    price.perUnit = 3n;
    payment.clock.advance(ms - lookAgainMs);
    chain.mine(2);
    await follow();
    // In a block, and not confirmed yet: from now on nothing changes its price.
    price.perUnit = 4n;
    chain.mine(1);
    payment.clock.advance(24 * 60 * 60_000);
    await follow();
    expect(await balance(alice)).toBe(credited);
  });

  test("fails when its block shows no payment", async () => {
    const { chain, submit, follow, stateOf } = await open();
    chain.send(hash, { transfers: [], shown: [transferOf(alice, 5n)] });
    await submit();
    chain.mine(3);
    await follow();
    expect(await stateOf()).toEqual(["failed"]);
  });

  test("is repriced when its block shows another amount", async () => {
    const { chain, submit, follow, balance } = await open();
    chain.send(hash, {
      transfers: [transferOf(alice, 4n), transferOf(bob, 2n)],
      shown: [transferOf(alice, 5n)],
    });
    await submit();
    chain.mine(3);
    await follow();
    expect([await balance(alice), await balance(bob)]).toEqual([8n, 4n]);
  });

  test("fails with a reason when its account is full", async () => {
    const { chain, submit, payment, balance } = await open();
    await payment.credit(alice, 2n ** 62n - 2n);
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    chain.mine(3);
    const { payment: failed } = await submit();
    expect([failed.state, failed.failureReason]).toEqual(["failed", "The amount is larger than an account can hold"]);
    expect(await balance(alice)).toBe(2n ** 62n - 2n);
    await payment.chargeBack(alice, 2n ** 62n - 2n);
  });
});

describe("a payment that precedes the watch over its address", () => {
  test.each([
    ["long before", 4, "payment_rejected"],
    ["within the blocks that confirm a payment", 7, "credited"],
    ["afterwards", 12, "credited"],
  ])("credits no account, except what may be a payment for us: %s", async (_, height, came) => {
    const { chain, submit, payment, stateOf } = await open({ begin: 10 });
    await payment.database.write((tx) => keepMark(tx, chain.token, chain.address, "a mark", 0));
    chain.mine(height - 1);
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    chain.mine(20);
    if (came === "credited") {
      await submit();
      return expect(await stateOf()).toEqual(["credited"]);
    }
    expect(await rejectionOf(submit())).toEqual([
      came,
      `Payment transaction '${hash}' was made before payments were taken here`,
    ]);
    expect(await stateOf()).toEqual([]);
  });

  test("is neither stored nor rejected before the watch has begun: it may be a later one", async () => {
    const { chain, submit, payment, stateOf } = await open({ begin: "not yet" });
    await payment.database.write((tx) => keepMark(tx, chain.token, chain.address, "{}", 0));
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    chain.mine(20);
    expect(await rejectionOf(submit())).toEqual(["transaction_fault", "the watch over the address has not begun"]);
    expect(await stateOf()).toEqual([]);
  });

  test("is accepted while it is in no block, also before the watch has begun", async () => {
    const { chain, submit, payment, stateOf } = await open({ begin: "not yet" });
    await payment.database.write((tx) => keepMark(tx, chain.token, chain.address, "{}", 0));
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    await submit();
    expect(await stateOf()).toEqual(["pending"]);
  });
});

test("a payment is credited also when more has come from its token than one account can hold", async () => {
  const { chain, submit, follow, payment, stateOf, balance } = await open();
  const most = 2n ** 62n - 1n;
  await payment.database.write((tx) => {
    const legs = [
      { account: provider("ethereum"), amount: -most },
      { account: user(bob), amount: most },
    ];
    return transfer(tx, { id: payment.makeId(), kind: "payment", at: 0, legs });
  });
  chain.send(hash, { transfers: [transferOf(alice, 5n)] });
  expect((await submit()).payment.state).toBe("pending");
  chain.mine(3);
  await submit();
  expect([await stateOf(), await balance(alice)]).toEqual([["credited"], 10n]);
  chain.takeBack(3);
  chain.mine(9, []);
  await follow();
  expect([await stateOf(), await balance(alice)]).toEqual([["reversed"], 0n]);
  expect(await payment.held(provider("ethereum"))).toBe(-most);
  await payment.chargeBack(bob, most);
});

describe("a credited payment", () => {
  async function credited(options: ScriptedOptions = {}) {
    const opened = await open(options);
    opened.chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    opened.chain.mine(3);
    await opened.submit();
    expect(await opened.balance(alice)).toBe(10n);
    return opened;
  }

  test("is reversed when another block replaces its block, and credited again when it returns", async () => {
    const { chain, follow, stateOf, balance, stored } = await credited();
    chain.takeBack(3);
    chain.mine(3, []);
    await follow();
    expect(await stateOf()).toEqual(["reversed"]);
    expect(await balance(alice)).toBe(0n);
    chain.mine(3);
    await follow();
    expect(await stateOf()).toEqual(["credited"]);
    expect(await balance(alice)).toBe(10n);
    expect((await stored(chain, hash))[0]?.credits).toBe(2);
  });

  test("is reversed also on an account that has spent it, which is then in debt", async () => {
    const { chain, follow, balance, payment } = await credited();
    await payment.chargeBack(alice, 8n);
    chain.takeBack(3, "gone");
    chain.mine(3);
    await follow();
    expect(await balance(alice)).toBe(-8n);
  });

  test("is credited again when it is found a week after its reversal", async () => {
    const { chain, follow, balance, payment, payments, stateOf } = await credited();
    chain.takeBack(3, "gone");
    chain.mine(3);
    await follow();
    payment.clock.advance(7 * day);
    await follow();
    expect(await payment.database.read((tx) => tx.get("SELECT due_at FROM token_payments"))).toEqual({
      due_at: null,
    });
    chain.send(hash, { transfers: [transferOf(alice, 5n)] });
    chain.mine(3);
    await payments.take(chain, [hash], never);
    expect([await stateOf(), await balance(alice)]).toEqual([["credited"], 10n]);
    const looks = chain.looks();
    await payments.take(chain, [hash], never);
    expect(chain.looks()).toBe(looks);
  });

  test("stays when it only moved to another block", async () => {
    const { chain, follow, stateOf, stored } = await credited();
    chain.takeBack(3);
    chain.mine(1, []);
    chain.mine(4);
    await follow();
    expect(await stateOf()).toEqual(["credited"]);
    expect((await stored(chain, hash))[0]).toMatchObject({ credits: 1, block: { height: 2 } });
  });

  test("stays while the new chain is shorter, or not deep enough to tell", async () => {
    const { chain, follow, stateOf } = await credited();
    chain.takeBack(3);
    await follow();
    expect(await stateOf()).toEqual(["credited"]);
    chain.mine(2, []);
    await follow();
    expect(await stateOf()).toEqual(["credited"]);
    chain.mine(1, []);
    await follow();
    expect(await stateOf()).toEqual(["reversed"]);
  });

  test("is not checked after it is final", async () => {
    const { chain, follow, stateOf, stored, payment } = await credited();
    chain.mine(10);
    await follow();
    expect((await stored(chain, hash))[0]?.dueAt).toBeUndefined();
    chain.takeBack(13, "gone");
    chain.mine(20);
    payment.clock.advance(day);
    await follow();
    expect(await stateOf()).toEqual(["credited"]);
  });

  test("is checked less and less often, with one request for all payments of its block", async () => {
    const { chain, submit, follow, payment } = await open({ finalConfirmations: 1_000_000 });
    const ids = Array.from({ length: 10 }, (_, index) => testHash(index + 1));
    for (const id of ids) chain.send(id, { transfers: [transferOf(alice, 5n)] });
    chain.mine(3);
    for (const id of ids) await submit(id);
    let statuses = 0;
    const counted = {
      ...chain,
      status: (...call: Parameters<typeof chain.status>) => {
        statuses += 1;
        return chain.status(...call);
      },
    };
    payment.clock.advance(lookAgainMs);
    const { payments } = fixtures[0]!;
    await payments.follow(counted, 100, never);
    expect(statuses).toBe(1);
    for (let minute = 0; minute < 24 * 60; minute += 5) {
      payment.clock.advance(5 * 60_000);
      await payments.follow(counted, 100, never);
    }
    expect(statuses).toBeGreaterThan(100);
    expect(statuses).toBeLessThan(200);
    await follow();
  });

  test("whose check fails does not delay others", async () => {
    const { chain, submit, follow, stateOf } = await open();
    const stuck = testHash(1);
    chain.send(stuck, { transfers: [transferOf(alice, 5n)] });
    await submit(stuck);
    chain.unreadable.set(stuck, "malformed");
    chain.send(hash, { transfers: [transferOf(bob, 5n)] });
    await submit();
    chain.mine(3);
    expect(await follow()).toMatchObject({ kind: "fault", reason: "malformed" });
    expect([await stateOf(stuck), await stateOf()]).toEqual([["pending"], ["credited"]]);
    chain.unreadable.clear();
    await follow();
    expect(await stateOf(stuck)).toEqual(["credited"]);
  });
});
