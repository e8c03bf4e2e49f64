/**
 * The call that every thread entry exports for health checks.
 * @module
 */

/** Returns "ok", which shows that the thread has started and runs jobs. */
export function ping(): "ok" {
  return "ok";
}
