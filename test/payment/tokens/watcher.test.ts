/**
 * The watcher: finds payments that were not submitted, continues where it was, waits out a failing chain, ends on request.
 * @module
 */
import { afterEach, expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { openTokenWatcher, type TokenWatcher } from "../../../src/payment/tokens/token-watcher.ts";
import { eventually } from "../../support/until.ts";
import { createScriptedChain, type ScriptedOptions, testHash, transferOf } from "./scripted-chain.ts";
import { ethereumAddressOf, lookAgainMs, never, openTokenFixture, type TokenFixture } from "./token-fixture.ts";

const alice = ethereumAddressOf(0xa11ce);
const opened: { fixture: TokenFixture; watchers: TokenWatcher[] }[] = [];

afterEach(async () => {
  for (const { fixture, watchers } of opened.splice(0)) {
    for (const watcher of watchers) await watcher.close();
    expect(await fixture.findings()).toEqual([]);
    await fixture.close();
  }
});

async function open(options: ScriptedOptions = {}, intervalMs = 5) {
  const chain = createScriptedChain(options);
  const fixture = await openTokenFixture([chain]);
  const watchers: TokenWatcher[] = [];
  opened.push({ fixture, watchers });
  const lines: Record<string, unknown>[] = [];
  const watch = () => {
    const watcher = openTokenWatcher({
      payments: fixture.payments,
      ledger: fixture.payment.database,
      intervalMs,
      clock: fixture.payment.clock.now,
      random: () => 0,
      log: createLog({
        level: "debug",
        format: "json",
        clock: fixture.payment.clock.now,
        write: (line) => lines.push(JSON.parse(line)),
      }),
    });
    watchers.push(watcher);
    return watcher;
  };
  const begun = async (watcher: TokenWatcher) => {
    await eventually(
      async () => watcher.status()[0]?.doneAt,
      (at) => at !== undefined,
    );
  };
  const balanceIs = (wanted: bigint) =>
    eventually(
      () => fixture.balance(alice),
      (balance) => balance === wanted,
    );
  const logged = (message: string) =>
    eventually(
      async () => fixture.lines.map((line) => line["message"]),
      (messages) => messages.includes(message),
    );
  const pay = (number: number, amount = 1n) => chain.send(testHash(number), { transfers: [transferOf(alice, amount)] });
  return { ...fixture, chain, watch, begun, balanceIs, pay, logged, lines };
}

test("unreported payments are credited, and payments before its first start are not", async () => {
  const { chain, watch, begun, balanceIs, pay } = await open();
  pay(1, 100n);
  chain.mine(10);
  await begun(watch());
  for (let number = 2; number < 40; number += 1) pay(number);
  chain.mine(3);
  await balanceIs(76n);
});

test("payments during a downtime are found by the next watcher, in steps", async () => {
  const { chain, watch, begun, balanceIs, pay } = await open({ foundMax: 2 });
  const first = watch();
  await begun(first);
  await first.close();
  for (let number = 1; number <= 30; number += 1) {
    pay(number);
    chain.mine();
  }
  chain.mine(3);
  watch();
  await balanceIs(60n);
});

test("a mark is stored only with the found payments: without a price none is skipped", async () => {
  const { chain, watch, begun, balanceIs, pay, price } = await open();
  const watcher = watch();
  await begun(watcher);
  price.isKnown = false;
  pay(1, 7n);
  chain.mine(10);
  watcher.wake("ethereum");
  await eventually(
    async () => watcher.status()[0]?.fault,
    (fault) => fault === "Fiat Oracle Unavailable",
  );
  price.isKnown = true;
  watcher.wake("ethereum");
  await balanceIs(14n);
  // The credit is durable before the step ends, and the end of the step clears the fault.
  await eventually(
    async () => watcher.status()[0]?.fault,
    (fault) => fault === undefined,
  );
});

test.each(["status", "malformed", "too_large"] as const)(
  "a found payment that a server cannot read (%s) does not delay others, and is credited once it can be read",
  async (reason) => {
    const { chain, watch, begun, balanceIs, pay, logged, payment } = await open();
    const first = watch();
    await begun(first);
    chain.unreadable.set(testHash(1), reason);
    pay(1, 10n);
    chain.mine(4);
    first.wake("ethereum");
    await logged("token payment cannot be read; it is tried again");
    pay(2);
    chain.mine(4);
    first.wake("ethereum");
    await balanceIs(2n);
    // It is remembered over a restart, when the scan has passed it.
    await first.close();
    const second = watch();
    await begun(second);
    chain.unreadable.clear();
    payment.clock.advance(lookAgainMs);
    second.wake("ethereum");
    await balanceIs(22n);
  },
);

test("a found payment that the next server does not know yet is credited once it does; others do not wait", async () => {
  const { chain, watch, begun, balanceIs, pay, logged, payment } = await open({ foundMax: 1 });
  const watcher = watch();
  await begun(watcher);
  chain.unknown.add(testHash(1));
  pay(1, 10n);
  chain.mine();
  pay(2);
  chain.mine(4);
  watcher.wake("ethereum");
  await balanceIs(2n);
  await logged("token payment cannot be read; it is tried again");
  chain.unknown.delete(testHash(1));
  payment.clock.advance(lookAgainMs);
  watcher.wake("ethereum");
  await balanceIs(22n);
});

test("a found payment that shows no transfers before its receipt is credited once the server has the receipt", async () => {
  const { chain, watch, begun, balanceIs, logged, payment } = await open({ confirmations: 1 });
  const watcher = watch();
  await begun(watcher);
  chain.send(testHash(1), { transfers: [transferOf(alice, 10n)], shown: "nothing" });
  chain.behind.add(testHash(1));
  chain.mine();
  watcher.wake("ethereum");
  await logged("token payment cannot be read; it is tried again");
  chain.behind.delete(testHash(1));
  payment.clock.advance(lookAgainMs);
  watcher.wake("ethereum");
  await balanceIs(20n);
});

test("a found payment that stays unreadable is tried less often, and given up after 30 days", async () => {
  const { chain, watch, begun, balanceIs, pay, logged, payment } = await open();
  const watcher = watch();
  await begun(watcher);
  chain.unreadable.set(testHash(1), "status");
  pay(1, 10n);
  chain.mine(4);
  watcher.wake("ethereum");
  await logged("token payment cannot be read; it is tried again");
  const stepAfter = async (ms: number) => {
    payment.clock.advance(ms);
    const [scans, looks] = [chain.scans(), chain.looks()];
    watcher.wake("ethereum");
    await eventually(
      async () => chain.scans(),
      (now) => now > scans + 1, // one step from its scan to its end
    );
    return chain.looks() - looks;
  };
  expect(await stepAfter(60 * 60_000)).toBe(1);
  expect(await stepAfter(60_000)).toBe(0);
  expect(await stepAfter(30 * 24 * 60 * 60_000)).toBe(1);
  await logged("token payment could not be read for 30 days");
  expect(await stepAfter(24 * 60 * 60_000)).toBe(0);
  // A report of its payer is still credited.
  chain.unreadable.clear();
  await opened.at(-1)!.fixture.payments.submit("ethereum", testHash(1), never);
  await balanceIs(20n);
});

test("a chain with a fault is requested less often, does not delay others, and catches up later", async () => {
  const { chain, watch, begun, balanceIs, pay } = await open();
  const watcher = watch();
  await begun(watcher);
  chain.fail("connect");
  pay(1);
  chain.mine(4);
  watcher.wake("ethereum");
  await eventually(
    async () => watcher.status()[0]?.fault,
    (fault) => fault !== undefined,
  );
  const scans = chain.scans();
  await Bun.sleep(100); // twenty intervals
  expect(chain.scans()).toBeLessThanOrEqual(scans + 1);
  chain.fail(undefined);
  watcher.wake("ethereum");
  await balanceIs(2n);
});

test("closing ends a step that waits for a server, and nothing runs afterwards", async () => {
  const { chain, payment, prices } = await open();
  const entered = Promise.withResolvers<void>();
  const hanging = {
    ...chain,
    scan: (_cursor: string | undefined, signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => {
        entered.resolve();
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  };
  const fixture = await openTokenFixture([hanging]);
  const watcher = openTokenWatcher({
    payments: fixture.payments,
    ledger: payment.database,
    intervalMs: 1,
    clock: payment.clock.now,
    random: () => 0,
    log: createLog({
      level: "error",
      format: "json",
      clock: Date.now,
      write: (line) => expect(line).toBe(""),
    }),
  });
  await entered.promise;
  await watcher.close();
  expect(prices).toBeDefined();
  await fixture.close();
});

test("a defect in a step is logged and does not end the watcher", async () => {
  const { chain, lines, watch, begun } = await open();
  const watcher = watch();
  await begun(watcher);
  const broken = { ...chain, scan: () => Promise.reject(new TypeError("a defect of ours")) };
  const fixture = await openTokenFixture([broken]);
  opened.push({ fixture, watchers: [] });
  const other = openTokenWatcher({
    payments: fixture.payments,
    ledger: fixture.payment.database,
    intervalMs: 1,
    clock: fixture.payment.clock.now,
    random: () => 0,
    log: createLog({
      level: "error",
      format: "json",
      clock: Date.now,
      write: (line) => lines.push(JSON.parse(line)),
    }),
  });
  await eventually(
    async () => other.status()[0]?.fault,
    (fault) => fault === "a defect",
  );
  const reported = () => lines.filter(({ message }) => message === "defect in a step of the token watcher").length;
  expect(reported()).toBe(1);
  other.wake("ethereum");
  await eventually(
    async () => reported(),
    (times) => times === 2,
  );
  await other.close();
});
