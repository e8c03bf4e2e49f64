/**
 * Transactions of a ledger on either database: the writing session, group commit, snapshot reads, and closing.
 * @module
 */
import { Failure } from "../../failures.ts";
import { type Span, traced } from "../../lib/spans.ts";
import {
  type LedgerDatabase,
  type Row,
  type Tx,
  type Value,
  type Work,
  waitingMax,
  workTimeoutMs,
} from "./ledger-database.ts";

/**
 * The effect of a statement's error on the transaction that a group shares.
 *
 * own     none: only the work that failed is undone
 * again   the complete transaction must run again
 * unsure  as `again` when it is the work's first time, as `own` when it is not
 * lost    the transaction has ended, and its outcome is unknown
 * damage  as `lost`, and the state of the disk is unknown: no further writes are allowed
 */
export type Fault = "own" | "again" | "unsure" | "lost" | "damage";

/** The writing connection. One transaction at a time; within it one mark at a time. */
export type Session = Readonly<{
  /** The statements of the open transaction. */
  statements: Statements;
  /** Opens a transaction that no other one, of any process, runs beside. Throws a Failure when that cannot be. */
  begin: () => Promise<void>;
  /** Sets a savepoint; `keep` keeps the later statements, `undo` undoes them. */
  mark: () => void | Promise<void>;
  keep: () => void | Promise<void>;
  undo: () => void | Promise<void>;
  /** Commits the transaction. When it throws, the outcome may be unknown. */
  commit: () => Promise<void>;
  /** Rolls the transaction back, whatever its state; never throws. */
  abandon: () => Promise<void>;
  /** Waits until all earlier commits are on the disk. */
  durable: () => Promise<void>;
  faultOf: (error: unknown) => Fault;
}>;

/** The statements of an open transaction. */
export type Statements = Readonly<{
  all: (sql: string, values: readonly Value[]) => readonly Row[] | Promise<readonly Row[]>;
  run: (sql: string, values: readonly Value[]) => number | Promise<number>;
}>;

const lateName = "LateWork";
const lateText = "ledger work waits for something other than its transaction, or its database does not respond";

/** Whether work was aborted because it took too long, or because its database did not respond. */
export function isLate(error: unknown): boolean {
  const cause = error instanceof Failure ? error.cause : error;
  return cause instanceof Error && cause.name === lateName;
}

/** Waits for a response, at most `timeoutMs`; then it throws an error for which `isLate` is true. */
export async function withinTime<Result>(response: Promise<Result>, timeoutMs: number): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(Object.assign(new Error(lateText), { name: lateName })), timeoutMs);
  try {
    return await Promise.race([response, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs work with a `tx` that ends with the work; after a failed statement all later ones fail.
 *
 * @returns The work's result, when all its statements succeeded.
 * @throws what the work threw, the error of a statement that it caught, or after `workTimeoutMs` an Error, which is
 *   Failure `database_unavailable` while a statement has no response.
 */
export async function runWork<Result>(statements: Statements, work: Work<Result>): Promise<Result> {
  const { tx, isWaiting, end } = createTx(statements);
  try {
    const response = await withinTime(work(tx), workTimeoutMs);
    const broken = end();
    // PostgreSQL does not continue after a failed statement, so SQLite does not either.
    if (broken !== undefined) throw broken.error;
    return response;
  } catch (error) {
    if (!isLate(error) || !isWaiting()) throw error;
    throw new Failure("database_unavailable", { reason: "the ledger's database does not respond" }, error);
  } finally {
    end();
  }
}

function createTx(statements: Statements) {
  let ended = false;
  let waiting = 0; // statements without a response
  let broken: { error: unknown } | undefined;

  async function perform<Result>(call: () => Result | Promise<Result>): Promise<Result> {
    if (ended) throw new Error("the ledger transaction has ended");
    if (broken !== undefined) throw broken.error;
    waiting += 1;
    try {
      return await call();
    } catch (error) {
      broken ??= { error };
      throw error;
    } finally {
      waiting -= 1;
    }
  }

  const tx: Tx = {
    // The caller states the shape of rows beside its SQL.
    all: async <Shape extends Row>(sql: string, ...values: Value[]) =>
      (await perform(() => statements.all(sql, values))) as Shape[],
    get: async <Shape extends Row>(sql: string, ...values: Value[]) =>
      (await perform(() => statements.all(sql, values)))[0] as Shape | undefined,
    run: (sql, ...values) => perform(() => statements.run(sql, values)),
  };
  return {
    tx,
    /** Whether a statement has no response yet. */
    isWaiting: () => waiting > 0,
    /** Ends it. @returns The first failure, if any. */
    end: () => {
      ended = true;
      return broken;
    },
  };
}

/**
 * Writes through one session: a queue, and groups of transactions that share a commit and a wait for the disk.
 *
 * Each transaction is committed or undone alone. No caller gets a result or its own failure before the group is
 * durable: a rejection may depend on what another transaction of the group did.
 */
export type Writes = Readonly<{
  write: LedgerDatabase["write"];
  confirmed: LedgerDatabase["confirmed"];
  faults: LedgerDatabase["faults"];
  /** Rejects new writes, and resolves when all accepted ones have a result. */
  finish: () => Promise<void>;
}>;

/** Transactions that share one commit: about 3 ms, the longest wait of another process and of the event loop. */
const groupMax = 64;
/** Attempts of a group that conflicts with other transactions. */
const triesMax = 8;
/** Pause before the second attempt, milliseconds; doubled each time. */
const pauseMs = 2;

/** A transaction in the queue. */
type Job = {
  readonly work: Work<unknown>;
  readonly resolve: (response: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Whether an error of an earlier attempt may have been caused by another transaction. */
  wasUnsure: boolean;
};

/** A transaction that has run; `report` settles its promise once the group is durable. */
type Done = Readonly<{ job: Job; report: () => void }>;

/** Creates the write side of a session. The caller closes the session. */
export function createWrites(session: Session): Writes {
  const waiting: Job[] = [];
  /** Groups that are committed and not yet durable. */
  const unanswered = new Set<Promise<void>>();
  let running: Promise<void> | undefined;
  let damage: Failure | undefined;
  /** Why the last group could not be committed; `undefined` after a success. */
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
      const group = await runGroup(session, jobs);
      const responded = whenDurable(group).finally(() => unanswered.delete(responded));
      unanswered.add(responded);
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

  /** Reports the results of a group once it is durable; never rejects. */
  async function whenDurable(group: readonly Done[]): Promise<void> {
    try {
      await session.durable();
    } catch (error) {
      shut(error);
    }
    // The system reports a page that it could not write once. A later sync succeeds, though what it covers comes behind
    // the lost page in the log, and is lost with it.
    for (const { job, report } of group) {
      if (damage === undefined) report();
      else job.reject(damage);
    }
  }

  return {
    write: <Result>(work: Work<Result>): Promise<Result> => {
      const rejection = damage ?? rejectionOf(finished, waiting.length);
      if (rejection !== undefined) return Promise.reject(rejection);
      const { promise, resolve, reject } = Promise.withResolvers<Result>();
      // The queue holds work of many kinds; each result goes to the promise that was created with its work.
      waiting.push({ work, resolve: resolve as (response: unknown) => void, reject, wasUnsure: false });
      // Writes of one iteration of the event loop share the group.
      running ??= Promise.resolve().then(drain);
      return promise;
    },
    confirmed: async () => {
      try {
        await session.durable();
      } catch (error) {
        shut(error);
      }
      if (damage !== undefined) throw damage;
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

function rejectionOf(finished: boolean, waiting: number): Failure | undefined {
  if (finished) return new Failure("database_unavailable", { reason: "the ledger is closed" });
  if (waiting >= waitingMax) return new Failure("busy", { reason: "too many ledger transactions wait" });
  return undefined;
}

/** Commits jobs in one transaction; runs all of them again after a conflict with another transaction. */
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
      if (tries === triesMax)
        throw new Failure("busy", { reason: "every attempt conflicted with another transaction" }, error);
    }
    await Bun.sleep(pauseMs * 2 ** tries);
  }
}

/**
 * Runs one job between two marks of the group's transaction.
 *
 * @throws an error that affects the whole transaction.
 */
async function runAlone(session: Session, job: Job): Promise<Done> {
  const { statements, sharedFault } = watched(session, job);
  await session.mark();
  try {
    const response = await runWork(statements, job.work);
    await session.keep();
    return { job, report: () => job.resolve(response) };
  } catch (error) {
    const fault = sharedFault();
    if (fault !== undefined) throw fault.error;
    if (isLate(error)) {
      // Its statements may still be under way: their position in the transaction is unknown.
      job.reject(error);
      throw error;
    }
    await session.undo();
    return { job, report: () => job.reject(error) };
  }
}

/** Statements that remember an error which is not the work's own, even if the work catches it. */
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

/** Snapshot reads, with a limit on how many wait. */
export type Reads = Readonly<{
  read: LedgerDatabase["read"];
  /** Rejects new reads, and resolves when all accepted ones have ended. */
  finish: () => Promise<void>;
}>;

/** @param snapshot - Runs work on one snapshot; it may wait in a queue. */
export function createReads(snapshot: <Result>(work: Work<Result>) => Promise<Result>): Reads {
  const running = new Set<Promise<unknown>>();
  let finished = false;
  return {
    read: <Result>(work: Work<Result>): Promise<Result> => {
      if (finished) return Promise.reject(new Failure("database_unavailable", { reason: "the ledger is closed" }));
      if (running.size >= waitingMax)
        return Promise.reject(new Failure("busy", { reason: "too many ledger reads wait" }));
      const mine = snapshot(work).finally(() => running.delete(mine));
      running.add(mine);
      return mine;
    },
    finish: async () => {
      finished = true;
      await Promise.allSettled(running);
    },
  };
}

/** Combines writes and reads. @param closeAll - Closes the connections once nothing is running. */
export function openedLedger(
  kind: LedgerDatabase["kind"],
  writes: Writes,
  reads: Reads,
  closeAll: () => Promise<void>,
): LedgerDatabase {
  let closed: Promise<void> | undefined;
  const close = async () => {
    await Promise.all([writes.finish(), reads.finish()]);
    await closeAll();
  };
  return {
    kind,
    write: (work) => traced("ledger.write", (span) => noting(span, kind, writes.write(work))),
    read: (work) => traced("ledger.read", (span) => noting(span, kind, reads.read(work))),
    confirmed: writes.confirmed,
    faults: writes.faults,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

function noting<Result>(
  span: Span | undefined,
  kind: LedgerDatabase["kind"],
  result: Promise<Result>,
): Promise<Result> {
  if (span !== undefined) span.attributes = { "db.system.name": kind === "sqlite" ? "sqlite" : "postgresql" };
  return result;
}
