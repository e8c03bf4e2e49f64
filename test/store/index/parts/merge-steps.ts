/**
 * Merges of parts in random small steps between the other calls of a writer, as the thread of the merges makes them.
 * @module
 */
import type { IndexWriter } from "../../../../src/store/index/index-writer.ts";
import { type MergeStep, openMergeConnection } from "../../../../src/store/index/parts/merge-connection.ts";
import type { PartMerge } from "../../../../src/store/index/parts/part-merge.ts";
import type { Random } from "../../../support/random.ts";

export type MergeSteps = Readonly<{
  step: () => void;
  finish: () => void;
  /** Makes a filter again that is missing or damaged. @param made - Called before it is stored. */
  repair: (made?: () => void) => boolean;
  close: () => void;
}>;

/** Small enough that merges have several steps, and parts have filters in files. */
export const mergeSizes = { filterFileRowsMin: 40, rangeEntries: 64 };

export function createMergeSteps(writer: IndexWriter, path: string, random: Random): MergeSteps {
  const connection = openMergeConnection(path, mergeSizes);
  /** Each one is made between two steps of the one before it. */
  let underWay: Readonly<{ merge: PartMerge; step: MergeStep }>[] = [];
  const begin = (within?: PartMerge): boolean => {
    const merge = writer.beginMerge(within);
    if (within === undefined) underWay = [];
    if (merge !== undefined) underWay.push({ merge, step: connection.begin(merge) });
    return merge !== undefined;
  };
  const repair = (made = (): void => undefined): boolean => {
    const repaired = connection.repairFilter();
    if (repaired === undefined) return false;
    made();
    writer.setFilter(repaired.part, repaired.filter);
    return true;
  };
  const beginWithin = (): boolean => {
    const last = underWay.at(-1);
    return last === undefined || "bodies" in last.step ? begin(last?.merge) : false;
  };
  const goOn = (): void => {
    const last = underWay.pop();
    if (last === undefined) return;
    const { merge, step } = last;
    if ("bodies" in step) {
      // The thread makes the next step before this one is stored.
      underWay.push({ merge, step: connection.next() });
      writer.addMerged(merge.part, step.bodies);
    } else writer.endMerge(merge, step.merged, step.filter);
  };
  return {
    step: () => {
      if (underWay.length > 0 && random.chance(0.9)) goOn();
      else {
        const { dropReplaced, sweepPostings } = writer;
        random.pick([() => begin(), beginWithin, beginWithin, dropReplaced, sweepPostings, () => repair()])();
      }
    },
    finish: () => {
      for (;;) {
        if (underWay.length > 0) goOn();
        else if (!begin() && !writer.dropReplaced() && !writer.sweepPostings() && !repair()) return;
      }
    },
    repair,
    close: connection.close,
  };
}
