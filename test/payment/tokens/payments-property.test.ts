/**
 * Token payments held to a model over random histories: payments sent, reported by several at once, found by looking,
 * mined, forked away for a while or for good, with servers that fail, through two handles as two processes have them.
 *
 * At the end every chain comes to rest, and then each account has what its payments on the chain are worth: no more,
 * and no less. RUNS sets how many histories (80 by default).
 * @module
 */
import { expect, test } from "bun:test";
import { createRandom, type Random } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { createScriptedChain, type ScriptedChain, testHash, transferOf } from "./scripted-chain.ts";
import { ethereumAddressOf, lookAgainMs, never, openTokenFixture, type TokenFixture } from "./token-fixture.ts";

const { RUNS } = process.env;
const runs = RUNS === undefined ? 80 : Number(RUNS);
const stepsPerRun = 40;
const senders = [1, 2, 3].map(ethereumAddressOf);
const day = 24 * 60 * 60_000;

type Sent = Readonly<{ id: string; amounts: readonly bigint[]; succeeds: boolean }>;
type Run = Readonly<{
  fixture: TokenFixture;
  chain: ScriptedChain;
  handles: readonly TokenFixture["payments"][];
  sent: Sent[];
  random: Random;
  tally: Map<string, number>;
  number: number;
}>;

test(`${runs} random histories of a chain end with every payment on it credited once`, async () => {
  const seed = newSeed();
  const tally = new Map<string, number>();
  for (let number = 0; number < runs; number += 1) await runHistory(seed, number, tally);
  console.log([...tally].map(([what, times]) => `${times} × ${what}`).join("\n"));
  for (const what of ["credited", "reversed", "failed", "credited again", "report", "found", "take back"])
    expect({ what, times: tally.get(what) ?? 0 }).not.toEqual({ what, times: 0 });
}, 10_800_000);

async function runHistory(seed: number, number: number, tally: Run["tally"]): Promise<void> {
  const random = createRandom(seed + number * 1_000_003);
  const chain = createScriptedChain({ confirmations: 1 + random.below(3), finalConfirmations: 1_000 });
  const fixture = await openTokenFixture([chain]);
  const other = await fixture.payment.ledger.openAgain();
  const handles = [fixture.payments, fixture.otherPayments(other)];
  const run: Run = { fixture, chain, handles, sent: [], random, tally, number };
  try {
    for (let step = 0; step < stepsPerRun; step += 1) await takeStep(run);
    await comeToRest(run);
    await expectExact(run);
  } catch (error) {
    throw new Error(`SEED=${seed} history ${number}: ${error}`, { cause: error });
  } finally {
    await other.close();
    await fixture.close();
  }
}

async function takeStep(run: Run): Promise<void> {
  const { chain, random, fixture } = run;
  const kind = random.below(100);
  if (kind < 25) send(run);
  else if (kind < 45) chain.mine(1 + random.below(2));
  else if (kind < 55) await takeBack(run);
  else if (kind < 70) await report(run);
  else if (kind < 80) await Promise.all(run.handles.map((handle) => handle.follow(chain, 100, never)));
  else if (kind < 90) await find(run);
  else if (kind < 95) fixture.payment.clock.advance(lookAgainMs * random.below(20));
  else chain.fail(random.chance(0.5) ? "connect" : undefined);
}

function send({ chain, sent, random, number }: Run): void {
  const id = testHash(number * 1_000 + sent.length + 1);
  const amounts = senders.slice(0, 1 + random.below(3)).map(() => BigInt(1 + random.below(1_000)));
  const succeeds = random.chance(0.9);
  chain.send(id, {
    transfers: amounts.map((amount, index) => transferOf(senders[index]!, amount)),
    succeeded: succeeds,
  });
  sent.push({ id, amounts, succeeds });
}

/** Forks stay above the depth at which payments are left alone; what is gone is gone for good. */
async function takeBack({ chain, random, tally, handles, fixture }: Run): Promise<void> {
  const count = Math.min(1 + random.below(6), chain.height());
  if (count === 0) return;
  count1(tally, "take back");
  const isGone = random.chance(0.2);
  chain.takeBack(count, isGone ? "gone" : "waiting");
  if (random.chance(0.6)) chain.mine(1 + random.below(6), []);
  if (random.chance(0.5)) return;
  // A look while the payments wait elsewhere: they are taken back, and come again.
  fixture.payment.clock.advance(lookAgainMs * 20);
  await Promise.all(handles.map((handle) => handle.follow(chain, 100, never)));
}

async function report({ handles, sent, random, tally }: Run): Promise<void> {
  if (sent.length === 0) return;
  const { id } = random.pick(sent);
  count1(tally, "report");
  const at = () =>
    random.pick(handles).submit("ethereum", random.chance(0.5) ? id : `0x${id.slice(2).toUpperCase()}`, never);
  // A failure is reported to the observer; here it is one more event.
  await Promise.allSettled([at(), at(), at()]);
}

/** Everything that is deep enough, found again. */
async function find({ handles, chain, random, tally }: Run): Promise<void> {
  const found = await chain.scan("0", never);
  if (found.kind === "fault") return;
  count1(tally, "found");
  await random.pick(handles).take(chain, found.ids, never);
}

async function comeToRest({ chain, fixture, sent }: Run): Promise<void> {
  chain.fail(undefined);
  chain.mine(60); // above every block that there ever was: a shorter chain says nothing of what is gone
  let cursor: string | undefined = "0";
  for (;;) {
    const found = await chain.scan(cursor, never);
    if (found.kind === "fault") throw new Error("it fails no more");
    await fixture.payments.take(chain, found.ids, never);
    cursor = found.cursor;
    if (!found.hasMore) break;
  }
  for (const { id } of sent) await fixture.payments.submit("ethereum", id, never).catch(() => undefined);
  for (let pass = 0; pass < 4; pass += 1) {
    fixture.payment.clock.advance(day);
    await fixture.payments.follow(chain, 1_000, never);
  }
}

async function expectExact({ fixture, chain, sent, tally }: Run): Promise<void> {
  const owed = new Map(senders.map((sender) => [sender, 0n]));
  for (const { id, amounts, succeeds } of sent) {
    const payments = await fixture.stored(chain, id);
    for (const { state, credits } of payments) {
      count1(tally, state);
      if (credits > 1) count1(tally, "credited again");
    }
    if (!chain.knows(id) || !succeeds) continue;
    for (const [index, amount] of amounts.entries())
      owed.set(senders[index]!, owed.get(senders[index]!)! + amount * 2n);
  }
  for (const [sender, amount] of owed) expect(await fixture.balance(sender)).toBe(amount);
  expect(await fixture.findings()).toEqual([]);
}

function count1(tally: Run["tally"], what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}
