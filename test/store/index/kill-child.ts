/**
 * A writer that is killed: it adds blocks, items and pending rows, sometimes prunes or rolls back, merges parts, makes
 * their filters again, and prints its progress.
 *
 * Arguments: the index file, a seed, and `prunes` where it may prune, of which the journal says nothing. A line with
 * numbers is the tip's height and the items of its bundle that were added. A line without numbers begins or ends the
 * making of a filter, so that kills happen within it.
 * @module
 */
import { writeSync } from "node:fs";

import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { journalSizesDefault } from "../../../src/store/index/journal/journal.ts";
import { createRandom } from "../../support/random.ts";
import { growingChain } from "./growing-chain.ts";
import { createMergeSteps } from "./parts/merge-steps.ts";
import { bundleOf, itemOf, ownerOf, pendingOf, tagOf } from "./rows-of.ts";

const [path = "", seed = "0", prunes] = process.argv.slice(2);
const random = createRandom(Number(seed));
const owners = Array.from({ length: 3 }, () => ownerOf(random));
// Small parts, so that many kills happen while rows are sealed or parts are merged.
const partSizes = {
  rowsMin: 3,
  sealRows: 200,
  levelRows: 64,
  fanIn: 3,
  inlineRowsMax: 100,
  mergedRowsMin: 1_000,
  mergedRowsMax: 5_000,
};
// Without limits: while the test that kills it waits for a processor, it may add more than the journal would have.
const journalSizes = { ...journalSizesDefault, changesMax: 10 ** 7, bytesMax: 10 ** 10, burst: 10 ** 7 };
const writer = openIndexWriter(path, { clock: Date.now, partSizes, journalSizes });
const reader = openIndexReader(path);
const start = (reader.tip()?.height ?? 9) + 1;
const chain = growingChain(writer, random, random.pick(owners), start);

// Merges in steps between the calls, so that many kills happen while one is under way.
const merges = createMergeSteps(writer, path, random);
const merge = (): void => {
  for (let count = random.below(5); count > 0; count -= 1) merges.step();
};

const say = (height: number, items: number): void => {
  writeSync(1, `${height} ${items}\n`);
};
const repair = (): boolean => {
  writeSync(1, "repair\n");
  return merges.repair(() => writeSync(1, "made\n"));
};

// The test has damaged filters.
while (repair());

for (;;) {
  const { block } = chain.add({
    // The chain continues from the tip of an earlier run.
    block: reader.tip() === undefined ? {} : { previous: reader.tip()?.hash ?? "" },
    transactions: Array.from({ length: 20 }, () => ({
      dataSize: 10 ** 6,
      tags: [tagOf("n", String(random.below(9)))],
    })),
    bundles: (height, rows) =>
      rows.slice(0, 1).map(({ id }) => bundleOf({ height, txIndex: 0, offset: -1 }, id, 10 ** 6)),
  });
  say(block.height, 0);
  const place = { height: block.height, txIndex: 0, offset: -1 };
  for (let batch = 0; batch < 3; batch += 1) {
    const rows = Array.from({ length: 200 }, (_, index) =>
      itemOf(random, random.pick(owners), {
        place: { ...place, offset: 64_000 + (batch * 200 + index) * 256 },
        target: random.chance(0.3) ? random.pick(owners).address : "",
        tags: [tagOf("n", String(random.below(9))), tagOf("unique", String(random.below(10 ** 9)))],
      }),
    );
    merge();
    if (random.chance(0.3)) repair();
    writer.addItems({ bundle: place, rows, firstEntry: batch * 200, nextEntry: (batch + 1) * 200, bundles: [] });
    say(block.height, (batch + 1) * 200);
  }
  writer.addPending([pendingOf(random, random.pick(owners))]);
  if (prunes === "prunes" && random.chance(0.3)) {
    const height = Math.max(0, block.height - 4 - random.below(20));
    const ingestedBeforeSeconds = Math.floor(Date.now() / 1_000) + 1;
    writer.pruneItems({ ingestedBeforeSeconds, startHeight: height, endHeight: height });
  }
  if (random.chance(0.2) && block.height > start + 3) {
    const from = block.height - random.below(3);
    say(from - 1, -1);
    chain.rollback(from);
  }
}
