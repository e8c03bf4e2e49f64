/**
 * The writes of a ledger file: a queue, groups of transactions that share a commit, and the wait for the disk.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { LedgerDatabase, Work } from "./database.ts";
import { createGroupSync } from "./group-sync.ts";
import { waitingMax } from "./limits.ts";
import { runWork } from "./run-work.ts";
import type { Connection } from "./sqlite-connection.ts";
import { explained, isBusy, isDamage } from "./sqlite-errors.ts";

/** Writes on one connection. */
export type Writes = Readonly<{
  write: LedgerDatabase["write"];
  /** Refuses what comes now, and resolves when all that was accepted has been answered. */
  finish: () => Promise<void>;
}>;

/** Transactions that share one commit: another process, and the event loop, wait no longer than these take (3 ms). */
const groupMax = 64;
/** How long the lock of another process is waited for. */
const lockTimeoutMs = 10_000;
/** First and longest pause between two tries to take it. */
const lockPauseMs = { first: 1, longest: 20 } as const;

/** A transaction that waits for its turn. */
type Job = Readonly<{
  work: Work<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}>;

/** A transaction that has run: what is to be answered once it is durable. */
type Done = Readonly<{ job: Job; answer: unknown }>;

/**
 * Creates the write side of a connection that stays the caller's.
 *
 * @param sync - Brings the log to the disk, off the event loop. When it fails, nothing is written any more: what the
 *   disk then holds is known only to a program that starts anew.
 */
export function createWrites(connection: Connection, sync: () => Promise<void>): Writes {
  const waiting: Job[] = [];
  const unanswered = new Set<Promise<void>>();
  const onDisk = createGroupSync(sync);
  let running: Promise<void> | undefined;
  let damage: Failure | undefined;
  let finished = false;

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const refusal = damage ?? (await beginFailure(connection));
      if (refusal === undefined) await commitGroup();
      else rejectAll(waiting.splice(0), refusal);
      // Requests are served between two groups.
      if (waiting.length > 0) await new Promise(setImmediate);
    }
    running = undefined;
  }

  async function commitGroup(): Promise<void> {
    const done: Done[] = [];
    try {
      await runGroup(connection, waiting, done);
      connection.run("COMMIT", []);
    } catch (error) {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
      rejectAll(jobsOf(done), isDamage(error) ? shut(error) : uncommitted(error));
      return;
    }
    if (done.length > 0) answerWhenDurable(done);
  }

  function answerWhenDurable(done: readonly Done[]): void {
    const answered = onDisk()
      .then(
        () => {
          for (const { job, answer } of done) job.resolve(answer);
        },
        (error) => rejectAll(jobsOf(done), shut(error)),
      )
      .finally(() => unanswered.delete(answered));
    unanswered.add(answered);
  }

  function shut(cause: unknown): Failure {
    damage ??= new Failure("database_unavailable", { reason: "the ledger could not reach its disk" }, cause);
    return damage;
  }

  return {
    write: <Answer>(work: Work<Answer>): Promise<Answer> => {
      const refusal = damage ?? refusalOf(finished, waiting.length);
      if (refusal !== undefined) return Promise.reject(refusal);
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      // The queue holds work of many kinds; each answer goes back to the promise that was made with its work.
      waiting.push({ work, resolve: resolve as (answer: unknown) => void, reject });
      // What is asked for in the same turn of the event loop shares the group.
      running ??= Promise.resolve().then(drain);
      return promise;
    },
    finish: async () => {
      finished = true;
      await running;
      await Promise.all(unanswered);
    },
  };
}

function refusalOf(finished: boolean, waiting: number): Failure | undefined {
  if (finished) return new Failure("database_unavailable", { reason: "the ledger is closed" });
  if (waiting >= waitingMax) return new Failure("busy", { reason: "too many ledger transactions wait" });
  return undefined;
}

function uncommitted(error: unknown): Failure {
  return new Failure("database_unavailable", { reason: "the ledger could not commit" }, error);
}

function jobsOf(done: readonly Done[]): Job[] {
  return done.map(({ job }) => job);
}

function rejectAll(jobs: readonly Job[], failure: Failure): void {
  for (const job of jobs) job.reject(failure);
}

/** Takes the lock for writing without holding up the event loop; answers why that failed, if it did. */
async function beginFailure(connection: Connection): Promise<Failure | undefined> {
  const deadline = performance.now() + lockTimeoutMs;
  let pauseMs: number = lockPauseMs.first;
  while (true) {
    try {
      connection.run("BEGIN IMMEDIATE", []);
      return undefined;
    } catch (error) {
      if (!isBusy(error)) return new Failure("database_unavailable", { reason: "cannot begin" }, error);
      if (performance.now() > deadline)
        return new Failure("busy", { reason: "another process holds the ledger" }, error);
    }
    await Bun.sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, lockPauseMs.longest);
  }
}

/**
 * Runs waiting jobs, each within a savepoint of the open transaction.
 *
 * @param done - Takes the jobs that succeeded; those that failed have been told.
 * @throws what ended the whole transaction: damage, or a full disk, which leaves no savepoint to go back to.
 */
async function runGroup(connection: Connection, waiting: Job[], done: Done[]): Promise<void> {
  for (let taken = 0; taken < groupMax; taken += 1) {
    const job = waiting.shift();
    if (job === undefined) return;
    connection.run("SAVEPOINT job", []);
    try {
      const answer = await runWork(connection, job.work);
      connection.run("RELEASE job", []);
      done.push({ job, answer });
    } catch (error) {
      job.reject(explained(error));
      if (isDamage(error) || !connection.inTransaction()) throw error;
      connection.run("ROLLBACK TO job", []);
      connection.run("RELEASE job", []);
    }
  }
}
