/**
 * Bundles on a chain that drops, forgets, rejects and rounds at will, by seed, while the program ends and begins again:
 * in the end every item is on the chain, and none is there twice, although another miner mines what nodes have forgotten
 * whenever the chain still allows it.
 *
 * SEED runs one seed alone; RUNS runs so many seeds from 1 on.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { checkLedger } from "../../src/store/ledger/ledger-check.ts";
import type { Pipeline } from "../../src/upload/pipeline/bundle-pipeline.ts";
import { nextBundles } from "../../src/upload/pipeline/bundle-rows.ts";
import type { Posted } from "../../src/upload/pipeline/pipeline-context.ts";
import { findUpload } from "../../src/upload/upload-rows.ts";
import { createRandom, type Random } from "../support/random.ts";
import { seedsOr } from "../support/seed.ts";
import { until } from "../support/until.ts";
import {
  type BundleFixture,
  openBundleFixture,
  type SignedItem,
  storeName,
} from "../upload/pipeline/bundle-fixture.ts";
import { createFakeChain, type FakeChain } from "../upload/pipeline/fake-chain.ts";

const { RUNS } = process.env;
const usual = RUNS === undefined ? [1, 2, 3] : Array.from({ length: Number(RUNS) }, (_, index) => index + 1);

const rules = {
  plan: { itemsMax: 5, bytesMax: 900_000, waitMs: 15 },
  confirmations: 4,
  lookMs: 5,
  againMs: 40,
};

/** Steps of the fixture; in each of them something happens. */
const semaphore = 220;

describe("bundles on a bad chain", () => {
  test.each(seedsOr(usual))(
    "are all on it in the end, each item once (seed %p)",
    async (seed) => {
      const fixture = await openBundleFixture({ seed });
      try {
        await run(fixture, createFakeChain(100), createRandom(seed * 7_919));
      } finally {
        await fixture.close();
      }
    },
    120_000,
  );
});

async function run(fixture: BundleFixture, chain: FakeChain, random: Random): Promise<void> {
  const items: SignedItem[] = [];
  let pipeline: Pipeline = fixture.start(chain, rules);
  const reported: Record<string, number> = {};
  const note = (what: string) => {
    reported[what] = (reported[what] ?? 0) + 1;
  };
  const fault: Posted = { kind: "fault", reason: "by chance" };
  const rejection: Posted = { kind: "rejected", reason: "400 by chance", word: "", isByAll: false };
  chain.fixture.faults = {
    tx: () => {
      if (random.chance(0.15)) return "taken and dropped";
      if (random.chance(0.1)) return fault;
      return random.chance(0.1) ? { ...rejection, isByAll: random.chance(0.5) } : undefined;
    },
    chunk: () => {
      if (random.chance(0.2)) return "taken and dropped";
      return random.chance(0.05) ? fault : undefined;
    },
  };

  let tallest = 0;
  const happenings: readonly (readonly [weight: number, what: () => Promise<void> | void])[] = [
    [
      20,
      async () => {
        const [item] = fixture.sign([random.chance(0.1) ? random.below(800_000) : random.below(2_000)]);
        if (item === undefined) return;
        await fixture.take([item]);
        items.push(item);
        pipeline.onItem(item.bytes.length);
      },
    ],
    [40, () => chain.mine()],
    [
      4,
      () => {
        // What may be permanent stays, also over several rollbacks in a row.
        tallest = Math.max(tallest, chain.tip());
        const depthMax = chain.tip() - (tallest - rules.confirmations + 1);
        const depth = Math.min(1 + random.below(3), depthMax);
        if (depth <= 0) return;
        chain.rollBack(depth, () => random.chance(0.7));
        note("rotated back");
      },
    ],
    [
      6,
      () => {
        const waiting = chain.waiting();
        if (waiting.length === 0) return;
        chain.forgetTx(random.pick(waiting));
        note("forgotten by nodes");
      },
    ],
    [
      6,
      () => {
        if (chain.mineForgotten((ids) => random.pick(ids)) !== undefined) note("mined though forgotten");
      },
    ],
    [
      4,
      () => {
        const mined = chain.mined();
        if (mined.length === 0) return;
        const transaction = random.pick(mined.slice(-3));
        // What may be permanent was read back: from then on it is the chain's to keep, also where a round has made it
        // less deep, or our index is behind.
        if (chain.deepest(transaction.id) >= rules.confirmations) return;
        chain.forgetChunks(transaction.dataRoot, () => random.chance(0.5));
        note("chunks forgotten");
      },
    ],
    [
      3,
      () => {
        chain.fixture.areNodesSilent = random.chance(0.5);
      },
    ],
    [
      3,
      () => {
        chain.fixture.indexLag = random.chance(0.5) ? random.below(12) : 0;
      },
    ],
    [1, () => chain.mine(80)],
    [
      3,
      async () => {
        await pipeline.close();
        note("ended and begun again");
        pipeline = fixture.start(chain, rules);
      },
    ],
  ];
  const total = happenings.reduce((sum, [weight]) => sum + weight, 0);
  for (let round = 0; round < semaphore; round += 1) {
    let at = random.below(total);
    for (const [weight, what] of happenings) {
      at -= weight;
      if (at >= 0) continue;
      await what();
      break;
    }
    await Bun.sleep(random.below(12));
  }

  chain.fixture.areNodesSilent = false;
  chain.fixture.indexLag = 0;
  chain.fixture.faults = { chunk: () => (random.chance(0.3) ? "taken and dropped" : undefined) };
  const endsAt = Date.now() + 90_000;
  await until(
    async () => {
      if (Date.now() > endsAt) throw new Error(await tell(fixture, chain));
      chain.mine();
      const left = await fixture.database.read((tx) =>
        nextBundles(tx, {
          store: storeName,
          states: ["filling", "planned", "prepared", "posted", "seeded"],
          limit: 1,
        }),
      );
      const states = await Promise.all(items.map(({ id }) => fixture.database.read((tx) => findUpload(tx, id))));
      return left.length === 0 && states.every((each) => each?.state === "permanent");
    },
    "every item is permanent",
    120_000,
  );
  await pipeline.close();
  console.log(`${items.length} items in ${chain.mined().length} bundles; ${JSON.stringify(reported)}`);
  expectOnce(chain, items);
  expect(await checkLedger(fixture.database)).toEqual([]);
}

/** The rest, for people. */
async function tell(fixture: BundleFixture, chain: FakeChain): Promise<string> {
  const left = await fixture.database.read((tx) =>
    tx.all(
      "SELECT id, state, transaction_id, anchor_height, sent_at, seeded_chunks, block_height, setbacks, attempts, " +
        "next_at, last_error FROM bundles WHERE state NOT IN ('permanent', 'dropped')",
    ),
  );
  const waiting = await fixture.database.read((tx) =>
    tx.all("SELECT id, store, received_at, bundle_id, failed_reason FROM uploads WHERE bundle_id IS NULL"),
  );
  const lines = fixture.lines.slice(-6).map((line) => JSON.stringify(line).slice(0, 300));
  return `height ${chain.height()}, now ${Date.now()}; left: ${Bun.inspect(left)}; waiting: ${Bun.inspect(waiting)}; log: ${lines.join("\n")}`;
}

/** Which transaction carries an item is notified by its data; no item is in two that are on the chain. */
function expectOnce(chain: FakeChain, items: readonly SignedItem[]): void {
  const counts = new Map(items.map(({ id }) => [id, 0]));
  for (const transaction of chain.mined()) {
    const data = chain.dataOf(transaction);
    expect(data).toBeDefined();
    for (const { id, bytes } of items)
      if (Buffer.from(data ?? []).includes(bytes)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  const wrong = [...counts].filter(([, count]) => count !== 1);
  expect(wrong).toEqual([]);
}
