/**
 * The writes of a ledger: a queue, and groups of transactions that share a commit and a wait for the disk.
 *
 * Each is undone or kept alone. None is answered, also not with its own failure, before what it has seen is durable:
 * a refusal may rest on what another one of the group has done.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { LedgerDatabase, Work } from "./database.ts";
import { waitingMax } from "./limits.ts";
import { isLate, runWork, type Statements } from "./run-work.ts";
import type { Fault, Session } from "./session.ts";

/** Writes through one session. */
export type Writes = Readonly<{
  write: LedgerDatabase["write"];
  faults: LedgerDatabase["faults"];
  /** Refuses what comes now, and resolves when all that was accepted has been answered. */
  finish: () => Promise<void>;
}>;

/** Transactions that share one commit: another process, and the event loop, wait no longer than these take (3 ms). */
const groupMax = 64;
/** How often a group is run again when another transaction was in its way. */
const triesMax = 8;
/** The pause before it is: doubled each time. */
const pauseMs = 2;

/** A transaction that waits for its turn. */
type Job = {
  readonly work: Work<unknown>;
  readonly resolve: (response: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Whether it has met a trouble that may have been another's. */
  wasUnsure: boolean;
};

/** A transaction that has run: what it is told once that is durable. */
type Done = Readonly<{ job: Job; tell: () => void }>;

/** Creates the write side of a session that stays the caller's. */
export function createWrites(session: Session): Writes {
  const waiting: Job[] = [];
  const unanswered = new Set<Promise<void>>();
  let running: Promise<void> | undefined;
  let damage: Failure | undefined;
  /** Why the last group could not be committed; nothing after one that could. */
  let fault: Failure | undefined;
  let finished = false;

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      await commitGroup(waiting.splice(0, groupMax));
      // Requests are served between two groups.
      if (waiting.length > 0) await new Promise(setImmediate);
    }
    running = undefined;
  }

  async function commitGroup(jobs: readonly Job[]): Promise<void> {
    try {
      if (damage !== undefined) throw damage;
      responseWhenDurable(await runGroup(session, jobs));
      fault = undefined;
    } catch (error) {
      const failure = failureOf(error);
      fault = failure;
      for (const job of jobs) job.reject(failure);
    }
  }

  function failureOf(error: unknown): Failure {
    if (error instanceof Failure) return error;
    if (session.faultOf(error) === "damage") return shut(error);
    return new Failure("database_unavailable", { reason: "the ledger could not commit" }, error);
  }

  function shut(cause: unknown): Failure {
    damage ??= new Failure("database_unavailable", { reason: "the ledger could not reach its disk" }, cause);
    return damage;
  }

  function responseWhenDurable(group: readonly Done[]): void {
    const responded = session
      .durable()
      .then(
        () => {
          for (const { tell } of group) tell();
        },
        (error) => {
          const failure = shut(error);
          for (const { job } of group) job.reject(failure);
        },
      )
      .finally(() => unanswered.delete(responded));
    unanswered.add(responded);
  }

  return {
    write: <Result>(work: Work<Result>): Promise<Result> => {
      const refusal = damage ?? refusalOf(finished, waiting.length);
      if (refusal !== undefined) return Promise.reject(refusal);
      const { promise, resolve, reject } = Promise.withResolvers<Result>();
      // The queue holds work of many kinds; each answer goes back to the promise that was made with its work.
      waiting.push({ work, resolve: resolve as (response: unknown) => void, reject, wasUnsure: false });
      // What is asked for in the same turn of the event loop shares the group.
      running ??= Promise.resolve().then(drain);
      return promise;
    },
    faults: () => {
      const wrong = damage ?? fault;
      return wrong === undefined ? [] : [`Credits cannot be written: ${wrong.context["reason"]}.`];
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

/** Commits jobs in one transaction; runs all of them again while others are in the way. */
async function runGroup(session: Session, jobs: readonly Job[]): Promise<Done[]> {
  for (let tries = 1; ; tries += 1) {
    await session.begin();
    try {
      const done: Done[] = [];
      for (const job of jobs) done.push(await runAlone(session, job));
      await session.commit();
      return done;
    } catch (error) {
      await session.abandon();
      const fault = session.faultOf(error);
      if (fault !== "again" && fault !== "unsure") throw error;
      if (tries === triesMax) throw new Failure("busy", { reason: "other transactions were always in the way" }, error);
    }
    await Bun.sleep(pauseMs * 2 ** tries);
  }
}

/**
 * Runs one job between two marks of the group's transaction.
 *
 * @throws what troubles the whole transaction.
 */
async function runAlone(session: Session, job: Job): Promise<Done> {
  const { statements, sharedFault } = watched(session, job);
  await session.mark();
  try {
    const response = await runWork(statements, job.work);
    await session.keep();
    return { job, tell: () => job.resolve(response) };
  } catch (error) {
    const fault = sharedFault();
    if (fault !== undefined) throw fault.error;
    if (isLate(error)) {
      // Its statements may still be under way: there is no telling where in the transaction they would end up.
      job.reject(error);
      throw error;
    }
    await session.undo();
    return { job, tell: () => job.reject(error) };
  }
}

/** Statements that remember an error which is not the work's own, whatever the work makes of it. */
function watched(session: Session, job: Job) {
  let found: { error: unknown } | undefined;

  function note(error: unknown): void {
    const fault: Fault = session.faultOf(error);
    const isOwn = fault === "own" || (fault === "unsure" && job.wasUnsure);
    if (fault === "unsure") job.wasUnsure = true;
    if (!isOwn) found ??= { error };
  }

  async function noted<Result>(call: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      note(error);
      throw error;
    }
  }

  const statements: Statements = {
    all: (sql, values) => noted(() => session.statements.all(sql, values)),
    run: (sql, values) => noted(() => session.statements.run(sql, values)),
  };
  return { statements, sharedFault: () => found };
}
