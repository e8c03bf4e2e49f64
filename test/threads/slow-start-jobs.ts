/**
 * An entry whose threads take long to start, as all do on a busy machine.
 * @module
 */
Bun.sleepSync(1_500);

/** Responses what it is given. */
export function echo(job: { ms: number }): { ms: number } {
  return job;
}
