/**
 * A process that writes an index despite failures: `bun fault-child.ts <file> <seed> <blocks>`. Prints the
 * height of each block and how many items of it were added, or `failed`; a step that failed is tried once more.
 * @module
 */
import { writeSync } from "node:fs";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { createRandom } from "../../support/random.ts";
import { growingChain } from "./growing-chain.ts";
import { bundleOf, itemOf, ownerOf, tagOf } from "./rows-of.ts";

const [path = "", seed = "0", blocks = "0"] = process.argv.slice(2);
const random = createRandom(Number(seed));
const owner = ownerOf(random);
const partSizes = {
  rowsMin: 3,
  sealRows: 60,
  levelRows: 16,
  fanIn: 3,
  inlineRowsMax: 500,
  mergedRowsMin: 500,
  mergedRowsMax: 500,
};
const itemsOfBlock = 40;

/** A file that cannot be opened is reported to every caller. */
function opened() {
  try {
    return openIndexWriter(path, { clock: () => 1_800_000_000_000, cacheBytes: 2 ** 16, partSizes });
  } catch {
    writeSync(1, "not opened\n");
    process.exit(0);
  }
}

const writer = opened();
const chain = growingChain(writer, random, owner, 10);

/** Executes a step, and retries it once. @returns Whether it succeeded. */
function attempt(step: () => unknown): boolean {
  for (let tries = 0; tries < 2; tries += 1) {
    try {
      step();
      return true;
    } catch {
      writeSync(1, "failed\n");
    }
  }
  return false;
}

for (let count = 0; count < Number(blocks); count += 1) {
  let height = 0;
  const isAdded = attempt(() => {
    const { block } = chain.add({
      transactions: Array.from({ length: 5 }, () => ({ dataSize: 10 ** 6, tags: [tagOf("n", "1")] })),
      bundles: (at, rows) =>
        rows.slice(0, 1).map(({ id }) => bundleOf({ height: at, txIndex: 0, offset: -1 }, id, 10 ** 6)),
    });
    height = block.height;
  });
  // Without its parent no block can follow.
  if (!isAdded) break;
  writeSync(1, `${height} 0\n`);
  const place = { height, txIndex: 0, offset: -1 };
  const rows = Array.from({ length: itemsOfBlock }, (_, index) =>
    itemOf(random, owner, {
      place: { ...place, offset: 64_000 + index * 256 },
      tags: [tagOf("n", String(index % 9))],
    }),
  );
  const added = attempt(() =>
    writer.addItems({ bundle: place, rows, firstEntry: 0, nextEntry: itemsOfBlock, bundles: [] }),
  );
  if (added) writeSync(1, `${height} ${itemsOfBlock}\n`);
  if (count % 4 === 3) attempt(() => writer.checkpoint());
}
attempt(() => writer.close());
process.exit(0);
