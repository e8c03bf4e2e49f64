/**
 * Credits held to a model over random interleavings: reserve, post, void, approve, revoke, expire, pay, charge back,
 * several at once, also through two handles as two processes have them.
 *
 * RUNS sets how many (300 by default); from 1,000 on they must have reached everything.
 * @module
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { createCredits } from "../../../src/payment/credits/credits.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { describeWith } from "../../support/helpers.ts";
import { type LedgerKind, ledgerKinds } from "../../support/ledger-databases.ts";
import { createTestClock } from "../../support/payment.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { type Batch, interleavings, runInterleaving, type Subject, type Tally } from "./credits-interleavings.ts";
import { emptyLedger } from "./empty-ledger.ts";

const { RUNS } = process.env;
const runs = Number(RUNS ?? 300);

for (const kind of ledgerKinds())
  describeWith(kind.need, `credits on ${kind.name}`, () => {
    test(
      `L2: ${runs} random interleavings end as the model says, with a clean ledger after every step`,
      async () => {
        const seed = newSeed();
        const tally: Tally = new Map();
        // While one worker waits for the disk, another computes.
        const slot = (number: number) => runSlot(kind, seed + number, Math.ceil(runs / slots), tally);
        await Promise.all(Array.from({ length: slots }, (_, number) => slot(number)));
        console.log(
          [...tally]
            .sort()
            .map(([what, times]) => `${times} × ${what}`)
            .join("\n"),
        );
        // Fewer runs may miss what is rare.
        for (const what of runs < enoughRuns ? [] : expected)
          expect({ what, times: tally.get(what) ?? 0 }).not.toEqual({ what, times: 0 });
      },
      runsTimeoutMs,
    );
  });

const slots = 3;

/** One run in so many has two handles. On SQLite they wait for each other's lock, which takes its time. */
const singleRuns = { sqlite: 10, postgres: 2 } as const;

/** Eight hours: far above what 100,000 take. */
const runsTimeoutMs = 28_800_000;

/** Runs interleavings on one ledger; a failing one is shrunk, and printed with its seed. */
async function runSlot(kind: LedgerKind, seed: number, runs: number, tally: Tally): Promise<void> {
  const ledger = await kind.open();
  const second = await ledger.openAgain();
  const clock = createTestClock();
  const random = createRandom(seed);
  const makeId = createTransferIds(clock.now, () => random.below(2 ** 32) / 2 ** 32);
  const handles = [ledger.database, second].map((database) => createCredits({ database, clock: clock.now, makeId }));
  let run = 0;
  const property = fc.asyncProperty(interleavings, async (batches: readonly Batch[]) => {
    run += 1;
    const some = run % singleRuns[kind.name] === 0 ? handles : handles.slice(0, 1);
    const subject: Subject = { handles: some, database: ledger.database, clock, makeId };
    await emptyLedger(ledger.database);
    await runInterleaving(subject, batches, tally);
  });
  try {
    await fc.assert(property, { seed, numRuns: runs });
  } finally {
    await second.close();
    await ledger.remove();
  }
}

/** So many runs reach everything, unless something is wrong with them. */
const enoughRuns = 1_000;

/** What the runs must have reached, or they prove nothing about it. */
const expected: readonly string[] = [
  "approve: ok",
  "approve: rejected",
  "approve: short",
  "reserve: ok",
  "reserve: short",
  "reserve: from approvals",
  "pay: ok",
  "pay: short",
  "pay: from approvals",
  "post: posted",
  "post: voided",
  "post: expired",
  "void: voided",
  "void: posted",
  "void: expired",
  "revoke: ok",
  "revoke: rejected",
  "approval ends active",
  "approval ends used",
  "approval ends revoked",
  "approval ends expired",
];
