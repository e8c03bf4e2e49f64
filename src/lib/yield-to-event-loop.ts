/**
 * Giving way to the event loop in the middle of long work.
 * @module
 */

/** Resolves in the next turn of the event loop: requests that have come meanwhile are served before. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Gives values in their order, so many in each turn of the event loop. */
export async function* inOrder<Value>(values: readonly Value[], countEach: number): AsyncGenerator<Value> {
  for (const [index, value] of values.entries()) {
    if (index > 0 && index % countEach === 0) await yieldToEventLoop();
    yield value;
  }
}
