/**
 * Failures of writing calls, which strace injects into a process.
 * @module
 */
import type { Need } from "../support/helpers.ts";

export const strace: Need = { there: Bun.which("strace") !== null, what: "strace" };

/** The calls, their error, and whether all later calls fail too. */
export const writeFaults: readonly (readonly [calls: string, error: string, forGood: boolean])[] = [
  ["pwrite64", "ENOSPC", false],
  ["pwrite64", "EIO", false],
  ["pwrite64", "ENOSPC", true],
  ["fdatasync,fsync", "EIO", false],
  ["fdatasync,fsync", "EIO", true],
  ["ftruncate", "EIO", true],
];
