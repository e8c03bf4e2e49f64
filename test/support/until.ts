/**
 * Bounded waiting: the tests' only way to wait for a condition.
 * @module
 */

/** Long enough for a very busy machine. Milliseconds. */
const timeoutDefaultMs = 60_000;

const pauseMs = 5;

/**
 * Waits until a condition holds.
 *
 * @param what - Describes the condition; a function is called only on a timeout.
 * @throws Error with the description on a timeout.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string) = String(condition),
  timeoutMs = timeoutDefaultMs,
): Promise<void> {
  await eventually(condition, Boolean, timeoutMs, what);
}

/** Polls until a value is as wanted. @throws Error with the last value on a timeout. */
export async function eventually<Value>(
  read: () => Value | Promise<Value>,
  isWanted: (value: Value) => boolean,
  timeoutMs = timeoutDefaultMs,
  what: string | (() => string) = String(isWanted),
): Promise<Value> {
  const endsAt = performance.now() + timeoutMs;
  for (;;) {
    const value = await read();
    if (isWanted(value)) return value;
    if (performance.now() > endsAt) {
      const last = Bun.inspect(value).slice(0, 2_000);
      const text = typeof what === "string" ? what : what();
      throw new Error(`not within ${timeoutMs} ms: ${text}; the last value was ${last}`);
    }
    await Bun.sleep(pauseMs);
  }
}
