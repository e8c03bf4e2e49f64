/**
 * Work on many things, a few at a time, that ends with its first failure.
 * @module
 */

/**
 * Works on all, in their order.
 *
 * @param most - Worked on at once.
 * @param stop - Aborted with the first failure, which ends the others; theirs say nothing new.
 * @throws The first failure, when none is under way any more.
 */
export async function eachAtOnce<Thing>(
  things: ArrayIterator<Thing>,
  most: number,
  stop: AbortController,
  work: (thing: Thing) => Promise<void>,
): Promise<void> {
  const worker = async () => {
    for (const thing of things) await work(thing);
  };
  const workers = Array.from({ length: most }, worker);
  try {
    await Promise.all(workers);
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(workers);
    throw error;
  }
}
