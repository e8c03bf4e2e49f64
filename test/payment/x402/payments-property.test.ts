/**
 * Payments by x402 in a fixture where everything happens by chance: facilitators of every kind, a chain that mines late
 * and goes back, nodes that fail, repeats, cancellations, strangers who carry payments out, time that passes. In the
 * end every dollar that came for a payment is credited once, and no other is.
 *
 * RUNS sets how many fixtures (12 by default).
 * @module
 */
import { expect, test } from "bun:test";
import { checkLedger } from "../../../src/store/ledger/ledger-check.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { seedsOr } from "../../support/seed.ts";
import type { Behaviour } from "./facilitators.ts";
import { type Payer, sign } from "./payers.ts";
import { funded, openX402Fixture, type X402Fixture } from "./x402-fixture.ts";

const { RUNS = "12" } = process.env;

const behaviours: readonly Behaviour[] = [
  "settles",
  "settles twice, and reports both in one body",
  "settles after a while",
  "is silent after it has sent",
  "cuts the connection after it has sent",
  "reports a settlement that did not happen",
  "names the transaction of another payment",
  "responses 500, and settles nothing",
  "responses 500 after it has sent",
  "responses junk, and settles nothing",
  "responses junk after it has sent",
  "rejects",
  "rejects what it has sent",
  "rejects with the hash of what it has sent",
  "says 401",
];

const held = 1_000_000n;
const wincEach = 1_000_000n;
/** Above 0, so that every payment is of another value and each dollar tells what it was for. */
const worthOf = (payment: number) => 2_000n + BigInt(payment);

type Made = Readonly<{ from: Payer; authorization: ReturnType<X402Fixture["authorize"]> }>;

test(
  "every dollar that came for a payment is credited once, and no other is",
  async () => {
    const first = Date.now() % 1_000_000;
    const seeds = seedsOr(Array.from({ length: Number(RUNS) }, (_, index) => first + index));
    for (const seed of seeds) await runFixture(seed);
  },
  1_200_000 + Number(RUNS) * 20_000,
);

async function runFixture(seed: number): Promise<void> {
  const random = createRandom(seed);
  const fixture = await openX402Fixture({ seed });
  const payers = [funded(fixture, 1, held), funded(fixture, 2, held), funded(fixture, 3, held)];
  const made: Made[] = [];
  fixture.node.mine(20); // no chain takes back what they hold
  try {
    for (let step = 0; step < 60; step += 1) await happen(fixture, random, payers, made);
    fixture.node.setManual(false);
    fixture.node.fault(() => undefined);
    fixture.node.mine();
    fixture.facilitator.behave("settles");
    await fixture.pass(3_000);
    await fixture.pass(3_000);
    for (const from of payers) {
      const paid = held - fixture.node.balanceOf(from.address);
      const credited = await fixture.balance(from);
      expect([seed, from.address, credited]).toEqual([seed, from.address, paid * wincEach]);
    }
    for (const { authorization } of made) {
      const row = await fixture.row(authorization);
      expect(["settled", "rejected", "reversed", undefined]).toContain(row?.state);
      expect(row?.due_at ?? null).toBeNull();
    }
    expect(await checkLedger(fixture.payment.database)).toEqual([]);
  } finally {
    await fixture.close();
  }
}

/** One thing happens. */
async function happen(fixture: X402Fixture, random: Random, payers: readonly Payer[], made: Made[]): Promise<void> {
  const { node, facilitator, payment, x402 } = fixture;
  const things: readonly (() => unknown)[] = [
    () => pay(fixture, random, payers, made),
    () => pay(fixture, random, payers, made),
    () => again(fixture, random, made),
    () => facilitator.behave(random.pick(behaviours)),
    () => node.setManual(random.chance(0.5)),
    () => node.mine(1 + random.below(3)),
    () => node.takeBack(1 + random.below(4), random.chance(0.5)),
    () => node.fault(random.chance(0.4) ? () => (random.chance(0.3) ? "error" : undefined) : () => undefined),
    () => strangerActs(fixture, random, made),
    async () => {
      payment.clock.advance(random.below(90) * 1_000);
      await x402.look(new AbortController().signal);
    },
  ];
  await random.pick(things)();
}

/** A new payment, by some at once. */
async function pay(fixture: X402Fixture, random: Random, payers: readonly Payer[], made: Made[]): Promise<void> {
  const from = random.pick(payers);
  const authorization = fixture.authorize(from, worthOf(made.length));
  made.push({ from, authorization });
  const requests = 1 + random.below(3);
  await Promise.all(Array.from({ length: requests }, () => fixture.pay(authorization, from)));
}

async function again(fixture: X402Fixture, random: Random, made: readonly Made[]): Promise<void> {
  if (made.length === 0) return;
  const { from, authorization } = random.pick(made);
  const before = await fixture.row(authorization);
  const { status } = await fixture.pay(authorization, from);
  if (before?.state === "settled") expect(status).toBe(200);
}

/**
 * Any observer of a payment may carry it out, its owner may cancel it; only of those that were taken, for what never
 * came to us is not one of our payments.
 */
async function strangerActs(fixture: X402Fixture, random: Random, made: readonly Made[]): Promise<void> {
  if (made.length === 0) return;
  const { from, authorization } = random.pick(made);
  const row = await fixture.row(authorization);
  if (row === undefined || row.due_at === null) return;
  if (random.chance(0.3)) fixture.node.send({ kind: "cancel", from: from.address, nonce: authorization.nonce });
  else
    fixture.node.send({
      kind: "authorized",
      authorization,
      signature: sign(fixture.node.domain, authorization, from.key),
    });
}
