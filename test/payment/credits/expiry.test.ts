/**
 * The rounds that give back what expired: they go on after a failure, and end when they are notified.
 * @module
 */
import { expect, test } from "bun:test";
import { silentLog } from "../../../src/lib/log.ts";
import { openExpiry } from "../../../src/payment/credits/credits.ts";
import { openTestPayment, testAddress } from "../../support/payment.ts";

const ada = testAddress("ada");
const never = new AbortController().signal;

test("expired credits are returned in the background", async () => {
  const payment = await openTestPayment();
  await payment.credit(ada, 10n);
  const expiresAt = payment.clock.now();
  await payment.credits.reserve({
    itemId: "item",
    signer: ada,
    paidBy: [],
    directive: "list-or-signer",
    winc: 10n,
    expiresAt,
  });
  const ended = Promise.withResolvers<number>();
  const expire = async (signal: AbortSignal) => {
    const count = await payment.credits.expire(signal);
    if (count > 0) ended.resolve(count);
    return count;
  };
  const expiry = openExpiry({ credits: { expire }, everyMs: 1, log: silentLog });
  expect(await ended.promise).toBe(1);
  await expiry.close();
  expect(await payment.credits.reservation("item")).toMatchObject({ state: "expired" });
  expect(await payment.credits.expire(never)).toBe(0);
  await payment.close();
});

test("a failed round is logged, and the next round tries again", async () => {
  const said: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void said.push(message) };
  let rounds = 0;
  const again = Promise.withResolvers<void>();
  const expire = async () => {
    rounds += 1;
    if (rounds === 1) throw new Error("the disk is gone");
    if (rounds === 3) again.resolve();
    return 0;
  };
  const expiry = openExpiry({ credits: { expire }, everyMs: 1, log });
  await again.promise;
  await expiry.close();
  expect(said).toEqual(["expired credits were not returned; the next round tries again"]);
});

test("close aborts the running round, waits for its end, and starts no other", async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const finish = Promise.withResolvers<number>();
  let rounds = 0;
  const expire = (signal: AbortSignal) => {
    rounds += 1;
    begun.resolve(signal);
    return finish.promise;
  };
  const expiry = openExpiry({ credits: { expire }, everyMs: 1, log: silentLog });
  const signal = await begun.promise;
  let isClosed = false;
  const closed = expiry.close().then(() => {
    isClosed = true;
  });
  expect(signal.aborted).toBe(true);
  await Bun.sleep(0); // time for the close, which must not happen
  expect(isClosed).toBe(false);
  finish.resolve(0);
  await closed;
  expect(rounds).toBe(1);
});
