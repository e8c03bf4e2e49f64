/**
 * Work that runs once per key for all concurrent callers.
 * A caller that stops waiting does not stop the work for others; without callers, the work is aborted.
 * @module
 */
import { ignoreRejection, untilStopped } from "./stop.ts";

export type SingleFlight<Value> = Readonly<{
  /**
   * Joins the work of a key, or starts it.
   * @param signal - Ends this caller's wait only.
   * @param work - Must observe its signal, which is aborted when the last caller has left.
   */
  run: (key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>) => Promise<Value>;
  /** Number of running keys. */
  size: () => number;
}>;

type Flight<Value> = {
  waiting: number;
  readonly result: Promise<Value>;
  readonly controller: AbortController;
};

/** Creates an empty table of running work. Its size is bounded by the number of callers. */
export function createSingleFlight<Value>(): SingleFlight<Value> {
  const flights = new Map<string, Flight<Value>>();

  function start(key: string, work: (signal: AbortSignal) => Promise<Value>): Flight<Value> {
    const controller = new AbortController();
    const result = Promise.resolve()
      .then(() => work(controller.signal))
      .finally(() => {
        if (flights.get(key) === flight) flights.delete(key);
      });
    ignoreRejection(result); // each caller receives the rejection through its own promise
    const flight: Flight<Value> = { waiting: 0, result, controller };
    flights.set(key, flight);
    return flight;
  }

  function leave(key: string, flight: Flight<Value>): void {
    flight.waiting -= 1;
    if (flight.waiting > 0) return;
    if (flights.get(key) === flight) flights.delete(key); // a new caller must not join work that is being aborted
    flight.controller.abort(new DOMException("all callers have left", "AbortError"));
  }

  return {
    async run(key, signal, work) {
      signal.throwIfAborted();
      const flight = flights.get(key) ?? start(key, work);
      flight.waiting += 1;
      try {
        return await untilStopped(flight.result, signal);
      } finally {
        leave(key, flight);
      }
    },
    size: () => flights.size,
  };
}
