/**
 * Payments by x402 while facilitators respond falsely, break off, reject and say nothing: the first response, what a repeat
 * gets a response, and what is left when the authorization is over. A payer is credited once; no other party is.
 * @module
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import type { Behaviour } from "./facilitators.ts";
import { type Payer, payTo } from "./payers.ts";
import { bytesCost, funded, openX402Fixture, type X402Fixture } from "./x402-fixture.ts";

let fixture: X402Fixture;
let payers = 0;
let anyPayer: Payer;

beforeAll(async () => {
  fixture = await openX402Fixture();
});

afterAll(() => fixture.close());

beforeEach(() => {
  fixture.facilitator.behave("settles");
  fixture.node.setManual(false);
  payers += 1;
  anyPayer = funded(fixture, payers);
});

const credited = bytesCost * 1_000_000n;

/** At once; then, by an honest facilitator, the response after so long. */
type Row = Readonly<{
  behaviour: Behaviour;
  first: 200 | 402 | 503;
  /** What the row says right after. */
  state: string;
  /** What it says when the facilitator has behaved like this until the end. */
  last: "settled" | "rejected";
}>;

const rows: readonly Row[] = [
  { behaviour: "settles", first: 200, state: "settled", last: "settled" },
  { behaviour: "settles after a while", first: 503, state: "settling", last: "settled" },
  {
    behaviour: "settles twice, and reports both in one body",
    first: 200,
    state: "settled",
    last: "settled",
  },
  { behaviour: "is silent, and settles nothing", first: 503, state: "settling", last: "rejected" },
  { behaviour: "is silent after it has sent", first: 200, state: "settled", last: "settled" },
  { behaviour: "cuts the connection after it has sent", first: 200, state: "settled", last: "settled" },
  { behaviour: "reports a settlement that did not happen", first: 503, state: "settling", last: "rejected" },
  { behaviour: "names the transaction of another payment", first: 503, state: "settling", last: "rejected" },
  { behaviour: "responses 500, and settles nothing", first: 503, state: "settling", last: "rejected" },
  { behaviour: "responses 500 after it has sent", first: 200, state: "settled", last: "settled" },
  { behaviour: "responses junk, and settles nothing", first: 503, state: "settling", last: "rejected" },
  { behaviour: "responses junk after it has sent", first: 200, state: "settled", last: "settled" },
  { behaviour: "responses without end", first: 503, state: "settling", last: "rejected" },
  { behaviour: "rejects", first: 402, state: "rejected", last: "rejected" },
  { behaviour: "rejects with a NUL in its reason", first: 402, state: "rejected", last: "rejected" },
  { behaviour: "rejects what it has sent", first: 200, state: "settled", last: "settled" },
  { behaviour: "rejects with the hash of what it has sent", first: 200, state: "settled", last: "settled" },
  { behaviour: "says 401", first: 503, state: "settling", last: "rejected" },
];

describe.each(rows)("L4: a facilitator that $behaviour", ({ behaviour, first, state, last }) => {
  test(`is responded ${first}, and ends ${last}`, async () => {
    const paid = fixture.node.balanceOf(payTo);
    fixture.facilitator.behave(behaviour);
    const authorization = fixture.authorize(anyPayer, bytesCost);
    const response = await fixture.pay(authorization, anyPayer);
    expect(response.status).toBe(first);
    if (first === 503) {
      expect(response.body).toBe("Payment settlement failed");
      expect(response.headers.get("retry-after")).toBe("5");
    }
    const seen = await fixture.row(authorization);
    // What was late may have come meanwhile.
    expect([state, last]).toContain(seen?.state ?? "");
    const asked = fixture.facilitator.orders.length;
    const repeat = await fixture.pay(authorization, anyPayer);
    expect(repeat.status).toBe(first);
    expect(repeat.body).toEqual(response.body);
    expect(fixture.facilitator.orders.length).toBe(asked);
    fixture.facilitator.letGo();
    await fixture.pass(900);
    expect((await fixture.row(authorization))?.state).toBe(last);
    expect((await fixture.pay(authorization, anyPayer)).status).toBe(last === "settled" ? 200 : 402);
    expect(await fixture.balance(anyPayer)).toBe(last === "settled" ? credited : 0n);
    expect(fixture.node.balanceOf(payTo) - paid).toBe(last === "settled" ? bytesCost : 0n);
    expect(await checkLedger(fixture.payment.database)).toEqual([]);
  });
});

test.each(rows.filter(({ first }) => first === 503))(
  "a facilitator that $behaviour is asked again, and one that is honest by then settles the payment",
  async ({ behaviour }) => {
    fixture.facilitator.behave(behaviour);
    const authorization = fixture.authorize(anyPayer, bytesCost);
    expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
    fixture.facilitator.behave("settles");
    await fixture.pass(120);
    expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
    expect(await fixture.balance(anyPayer)).toBe(credited);
  },
);

test("an unmined payment is 503 until a block contains it, and is sent only while its outcome is unknown", async () => {
  fixture.node.setManual(true);
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
  await fixture.pass(20);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
  fixture.node.mine();
  await fixture.pass(60);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
  expect(await fixture.balance(anyPayer)).toBe(credited);
  expect(await checkLedger(fixture.payment.database)).toEqual([]);
});

test("a rejection after an attempt with an unknown outcome is not final: that attempt may still be mined", async () => {
  fixture.node.setManual(true);
  fixture.facilitator.behave("is silent after it has sent");
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
  fixture.facilitator.behave("rejects");
  await fixture.pass(60);
  expect((await fixture.row(authorization))?.state).toBe("settling");
  fixture.node.mine();
  await fixture.pass(60);
  expect((await fixture.row(authorization))?.state).toBe("settled");
  expect(await fixture.balance(anyPayer)).toBe(credited);
});

test("a rejection that names a transaction is of one that the chain does not show yet: it is waited for", async () => {
  fixture.node.setManual(true);
  fixture.facilitator.behave("rejects with the hash of what it has sent");
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
  const transaction = (await fixture.row(authorization))?.transaction_hash;
  expect(transaction).toMatch(/^0x[0-9a-f]{64}$/);
  fixture.node.mine();
  await fixture.pass(60);
  expect(await fixture.row(authorization)).toMatchObject({
    state: "settled",
    transaction_hash: transaction ?? "",
  });
  expect(await fixture.balance(anyPayer)).toBe(credited);
});

test("a rejected payment is credited when an observer settles it on the chain", async () => {
  fixture.facilitator.behave("rejects");
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(402);
  fixture.facilitator.behave("settles");
  await carryOut(authorization, anyPayer);
  await fixture.pass(240);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
  expect(await fixture.balance(anyPayer)).toBe(credited);
  expect(await checkLedger(fixture.payment.database)).toEqual([]);
});

test("a payment that was settled before its request is credited", async () => {
  const authorization = fixture.authorize(anyPayer, bytesCost);
  await carryOut(authorization, anyPayer);
  const asked = fixture.facilitator.orders.length;
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
  expect(fixture.facilitator.orders.length).toBe(asked);
  expect(await fixture.balance(anyPayer)).toBe(credited);
});

test("a payment whose nonce is cancelled while it settles is rejected", async () => {
  fixture.facilitator.behave("is silent, and settles nothing");
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
  fixture.node.send({ kind: "cancel", from: anyPayer.address, nonce: authorization.nonce });
  await fixture.pass(10);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(402);
  await fixture.pass(900);
  expect(await fixture.row(authorization)).toMatchObject({ state: "rejected", due_at: null });
  expect(await fixture.balance(anyPayer)).toBe(0n);
});

test("a nonce that pays another address is not a payment, though its transaction also contains a payment", async () => {
  fixture.facilitator.behave("is silent, and settles nothing");
  const ours = [fixture.authorize(anyPayer, bytesCost), fixture.authorize(anyPayer, bytesCost)];
  for (const each of ours) expect((await fixture.pay(each, anyPayer)).status).toBe(503);
  const elsewhere = ours.map(({ nonce }) => fixture.authorize(anyPayer, 1n, { nonce, to: anyPayer.address }));
  const moves = [
    ...elsewhere.map((each) => authorized(each, anyPayer)),
    { kind: "transfer", from: anyPayer.address, to: payTo, value: bytesCost } as const,
  ];
  fixture.node.send({ kind: "several", moves });
  await fixture.pass(10);
  for (const each of ours) expect((await fixture.row(each))?.state).toBe("rejected");
  expect(await fixture.balance(anyPayer)).toBe(0n);
});

test("a payment that a reorg removes is settled again, or else its credit is reversed", async () => {
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
  fixture.node.takeBack(1, true);
  await fixture.pass(120);
  expect((await fixture.row(authorization))?.state).toBe("settled");
  expect(fixture.node.balanceOf(anyPayer.address)).toBe(1_000_000_000n - bytesCost);
  const late = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(late, anyPayer)).status).toBe(200);
  fixture.node.takeBack(1, true);
  fixture.facilitator.behave("says 401");
  await fixture.pass(900);
  expect((await fixture.row(late))?.state).toBe("reversed");
  expect((await fixture.pay(late, anyPayer)).status).toBe(402);
  expect(await fixture.balance(anyPayer)).toBe(credited);
  expect(await checkLedger(fixture.payment.database)).toEqual([]);
});

test("a settled payment is left alone once its block is final", async () => {
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(200);
  await fixture.pass(300);
  expect(await fixture.row(authorization)).toMatchObject({ state: "settled", due_at: null });
});

test("while the chain is unreachable no payment is accepted, and open payments stay open", async () => {
  fixture.facilitator.behave("is silent after it has sent");
  const open = fixture.authorize(anyPayer, bytesCost);
  fixture.node.setManual(true);
  expect((await fixture.pay(open, anyPayer)).status).toBe(503);
  fixture.node.mine();
  for (const kind of ["error", "silent"] as const) {
    fixture.node.fault(() => kind);
    const other = fixture.authorize(anyPayer, bytesCost);
    expect((await fixture.pay(other, anyPayer)).status).toBe(503);
    expect(await fixture.row(other)).toBeUndefined();
    fixture.payment.clock.advance(70_000);
    await fixture.x402.look(new AbortController().signal);
    expect(fixture.x402.fault()).toBeDefined();
    expect((await fixture.row(open))?.state).toBe("settling");
  }
  fixture.node.fault(() => undefined);
  await fixture.pass(60);
  expect(fixture.x402.fault()).toBeUndefined();
  expect(await fixture.balance(anyPayer)).toBe(credited);
});

test("logs that a server gives a block at a time are found", async () => {
  fixture.facilitator.behave("is silent after it has sent");
  fixture.node.setManual(true);
  const authorization = fixture.authorize(anyPayer, bytesCost);
  expect((await fixture.pay(authorization, anyPayer)).status).toBe(503);
  fixture.node.mine(30);
  let rejections = 0;
  fixture.node.fault((method) => {
    if (method !== "eth_getLogs") return undefined;
    rejections += 1;
    return rejections < 12 ? "error" : undefined;
  });
  await fixture.pass(30);
  fixture.node.fault(() => undefined);
  expect(await fixture.balance(anyPayer)).toBe(credited);
});

async function carryOut(authorization: ReturnType<X402Fixture["authorize"]>, by: Payer): Promise<void> {
  fixture.node.send(authorized(authorization, by));
}

function authorized(authorization: ReturnType<X402Fixture["authorize"]>, by: Payer) {
  const { signature } = JSON.parse(Buffer.from(fixture.header(authorization, by), "base64").toString()).payload;
  return { kind: "authorized", authorization, signature: Uint8Array.fromHex(signature.slice(2)) } as const;
}
