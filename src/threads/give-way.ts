/**
 * Lowers the priority of threads with deferrable work.
 * @module
 */
import { getPriority, setPriority } from "node:os";

/** Added to the process's nice value: under contention the thread gets about a tenth of a processor. */
const nicer = 10;
const niceMax = 19;

/**
 * Lowers the priority of the calling thread below the other threads of the process, on Linux.
 *
 * @returns Whether the priority was lowered.
 */
export function giveWay(): boolean {
  // Elsewhere the call changes the priority of the whole process.
  if (process.platform !== "linux") return false;
  try {
    setPriority(0, Math.min(niceMax, getPriority(0) + nicer));
    return true;
  } catch {
    return false; // not permitted: equal priorities only cost latency under load
  }
}
