/**
 * A bounded queue whose jobs go to workers in batches. While all workers are busy, jobs gather into larger batches.
 * @module
 */
import { outsideSpans, traced } from "./spans.ts";

/** One job in the queue. The worker of its batch resolves or rejects it. */
export type BatchJob<Input, Output> = Readonly<{
  input: Input;
  resolve: (output: Output) => void;
  reject: (error: unknown) => void;
}>;

export type BatcherOptions<Input, Output, Worker> = Readonly<{
  /** Names the span of a job, from its queue to its result. A batch belongs to no request. */
  name: string;
  /** Each worker processes one batch at a time; the worker that has been idle longest gets the next batch. */
  workers: readonly Worker[];
  /** Maximum number of queued jobs; running jobs do not count. */
  waitingMax: number;
  /** Number of jobs from the front of the queue for the next batch: 1 or more. `idle` workers share the queue. */
  batchSize: (waiting: readonly BatchJob<Input, Output>[], idle: number) => number;
  /** Settles every job of a batch. Must not reject. */
  run: (batch: readonly BatchJob<Input, Output>[], worker: Worker) => Promise<void>;
  /** Delays the first batch so that jobs of one iteration of the event loop share it; `setImmediate` by default. */
  defer?: (start: () => void) => void;
}>;

export type Batcher<Input, Output> = Readonly<{
  /** @returns `undefined` when the queue is full. */
  add: (input: Input) => Promise<Output> | undefined;
  waiting: () => number;
}>;

export function createBatcher<Input, Output, Worker>(
  options: BatcherOptions<Input, Output, Worker>,
): Batcher<Input, Output> {
  const { name, workers, waitingMax, batchSize, run, defer = setImmediate } = options;
  const waiting: BatchJob<Input, Output>[] = [];
  const idle = new Set(workers.entries());
  let isStarting = false;

  function start(): void {
    isStarting = false;
    for (const slot of idle) {
      if (waiting.length === 0) return;
      const batch = waiting.splice(0, batchSize(waiting, idle.size));
      idle.delete(slot);
      void outsideSpans(() => run(batch, slot[1])).finally(() => {
        idle.add(slot);
        start();
      });
    }
  }

  return {
    add: (input) => {
      if (waiting.length >= waitingMax) return undefined;
      const { promise, resolve, reject } = Promise.withResolvers<Output>();
      waiting.push({ input, resolve, reject });
      if (!isStarting && idle.size > 0) {
        isStarting = true;
        defer(start);
      }
      return traced(name, () => promise);
    },
    waiting: () => waiting.length,
  };
}
