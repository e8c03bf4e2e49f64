/**
 * Bounded waiting: the tests' only way to wait for a condition.
 * @module
 */

/** Long enough for a machine that is very busy: a test that fails here waits for what never happens. Milliseconds. */
const timeoutDefaultMs = 60_000;

const pauseMs = 5;

/** Waits until a condition holds. @throws Error that names the condition when the time is over. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = String(condition),
  timeoutMs = timeoutDefaultMs,
): Promise<void> {
  await eventually(condition, Boolean, timeoutMs, what);
}

/** Reads a value again until it is the wanted one. @throws Error with the last value when the time is over. */
export async function eventually<Value>(
  read: () => Value | Promise<Value>,
  isWanted: (value: Value) => boolean,
  timeoutMs = timeoutDefaultMs,
  what = String(isWanted),
): Promise<Value> {
  const endsAt = performance.now() + timeoutMs;
  for (;;) {
    const value = await read();
    if (isWanted(value)) return value;
    if (performance.now() > endsAt) {
      const last = Bun.inspect(value).slice(0, 2_000);
      throw new Error(`not within ${timeoutMs} ms: ${what}; the last value was ${last}`);
    }
    await Bun.sleep(pauseMs);
  }
}
