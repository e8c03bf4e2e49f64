/**
 * A writer that is killed while it migrates an index of an earlier release: it opens the file, rewrites its parts, and
 * prints where it is.
 *
 * Arguments: the index file and a seed.
 * @module
 */
import { writeSync } from "node:fs";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { createRandom } from "../../support/random.ts";
import { createMergeSteps } from "./parts/merge-steps.ts";

const [path = "", seed = "0"] = process.argv.slice(2);
writeSync(1, "opening\n");
const writer = openIndexWriter(path, { clock: Date.now });
writeSync(1, "opened\n");
const merges = createMergeSteps(writer, path, createRandom(Number(seed)));
for (let count = 0; count < 40; count += 1) {
  merges.step();
  writeSync(1, "step\n");
}
merges.finish();
merges.close();
writer.close();
writeSync(1, "done\n");
