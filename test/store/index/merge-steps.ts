/**
 * Merges of parts in random small steps between the other calls of a writer, as the thread of the merges makes them.
 * @module
 */
import type { IndexWriter } from "../../../src/store/index/index-writer.ts";
import type { PartMerge } from "../../../src/store/index/part-merge.ts";
import { openPartMerger } from "../../../src/store/index/part-merger.ts";
import type { Random } from "../../support/random.ts";

export type MergeSteps = Readonly<{ step: () => void; finish: () => void; close: () => void }>;

/** Parts of so many rows have filters in files. */
const filterFileRows = 40;

export function createMergeSteps(writer: IndexWriter, path: string, random: Random): MergeSteps {
  const merger = openPartMerger(path, filterFileRows);
  let underWay: PartMerge | undefined;
  const begin = (): boolean => {
    underWay = writer.beginMerge();
    if (underWay !== undefined) merger.begin(underWay);
    return underWay !== undefined;
  };
  const repair = (): boolean => {
    const repaired = merger.repairFilter();
    if (repaired !== undefined) writer.setFilter(repaired.part, repaired.filter);
    return repaired !== undefined;
  };
  const goOn = (merge: PartMerge): void => {
    const step = merger.next();
    if ("bodies" in step) writer.addMerged(merge.part, step.bodies);
    else {
      writer.endMerge(merge, step.merged, step.filter);
      underWay = undefined;
    }
  };
  return {
    step: () => {
      if (underWay !== undefined && random.chance(0.95)) goOn(underWay);
      else random.pick([begin, begin, writer.dropReplaced, writer.sweepPostings, repair])();
    },
    finish: () => {
      for (;;) {
        if (underWay !== undefined) goOn(underWay);
        else if (!begin() && !writer.dropReplaced() && !writer.sweepPostings() && !repair()) return;
      }
    },
    close: merger.close,
  };
}
