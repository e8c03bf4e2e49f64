/**
 * What the test of a starved process and the process itself have in common.
 * @module
 */
import { type MadeData, makeData } from "../chain/data-node.ts";

/** What the process says. */
export type Report = {
  /** Counts of reads with the right bytes, of reported faults, and of the rest. */
  right: number;
  fault: number;
  wrong: string[];
  /** Readings after which, or data of which, everything was on the disk although it had run out. */
  cachedAgain: number;
  rejectedWrites: number;
  /** Files and steps that were found lost or damaged. */
  lost: number;
  /** Errors of the map and of the disk at the end. */
  faults: string[];
};

/** How often the disk is filled and freed. */
export const starvedCycles = Number(process.env["CYCLES"] ?? 3);

/** Data by number, of five chunks. */
export function starvedData(number: number): MadeData {
  return makeData(3_000 + number, 2 ** 20 + 10_000 * number);
}
