/**
 * Work that many ask for and that is done once.
 * Who leaves stops nothing that others wait for; when the last has left, the work is aborted.
 * @module
 */
import { ignoreRejection, untilStopped } from "./stop.ts";

/** Runs work once per key, however many ask while it is under way. */
export type SingleFlight<Value> = Readonly<{
  /**
   * Joins the work of a key, or starts it.
   * @param signal - Ends this caller's wait only.
   * @param work - Must heed its signal, which is aborted when nobody waits any more.
   */
  run: (key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>) => Promise<Value>;
  /** How many keys are under way. */
  size: () => number;
}>;

type Flight<Value> = {
  waiting: number;
  readonly result: Promise<Value>;
  readonly controller: AbortController;
};

/** Makes an empty table of work under way. It is bounded by those who wait. */
export function createSingleFlight<Value>(): SingleFlight<Value> {
  const flights = new Map<string, Flight<Value>>();

  function start(key: string, work: (signal: AbortSignal) => Promise<Value>): Flight<Value> {
    const controller = new AbortController();
    const result = Promise.resolve()
      .then(() => work(controller.signal))
      .finally(() => {
        if (flights.get(key) === flight) flights.delete(key);
      });
    ignoreRejection(result); // every waiter has its own copy of a failure
    const flight: Flight<Value> = { waiting: 0, result, controller };
    flights.set(key, flight);
    return flight;
  }

  function leave(key: string, flight: Flight<Value>): void {
    flight.waiting -= 1;
    if (flight.waiting > 0) return;
    if (flights.get(key) === flight) flights.delete(key); // who comes now starts afresh, not into a dying flight
    flight.controller.abort(new DOMException("nobody waits for it any more", "AbortError"));
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
