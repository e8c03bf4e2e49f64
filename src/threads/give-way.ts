/**
 * Threads whose work can wait, behind the one that serves.
 * @module
 */
import { getPriority, setPriority } from "node:os";

/** By so much a thread is nicer than its process: of a processor that both want, it gets a tenth. */
const nicer = 10;
const nicestAtAll = 19;

/**
 * Lets the calling thread give way to the others of this process, where the system ranks threads one by one.
 *
 * @returns Whether it does from now on.
 */
export function giveWay(): boolean {
  // Elsewhere the calls rank the whole process.
  if (process.platform !== "linux") return false;
  try {
    setPriority(0, Math.min(nicestAtAll, getPriority(0) + nicer));
    return true;
  } catch {
    return false; // a system that forbids it: all threads stay alike, which only costs latency under load
  }
}
