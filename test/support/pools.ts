/**
 * Calls of a thread pool that a test performs or observes.
 * @module
 */
import type { JobOptions, Pool } from "../../src/threads/pool.ts";

/** Types a test's function as the calls of a worker; the test is responsible for the results. */
export function asRun<Worker>(
  run: (name: string, job: unknown, options?: JobOptions) => Promise<unknown>,
): Pool<Worker>["run"] {
  return run as Pool<Worker>["run"];
}
