/**
 * The ledger on SQLite: one writer in the process, several processes on a file, group commit.
 *
 * Transactions run one after another on the main thread; those that wait together share one, each within a savepoint,
 * so that one of them can fail alone. A commit goes to the log without waiting; then one `fdatasync` of the log, off
 * the event loop, makes all of them durable, and only then are they answered. That is what `synchronous=FULL` does,
 * but for many at once. SQLite itself synchronises log and file around checkpoints (NORMAL).
 * Source: docs/decisions/070-ledger.md.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { Failure } from "../../failures.ts";
import type { LedgerDatabase, Row, Tx, Value, Work } from "./database.ts";
import { createGroupSync } from "./group-sync.ts";
import { waitingMax, workTimeoutMs } from "./limits.ts";
import { migrate } from "./schema.ts";
import { type Connection, connectForReading, connectForWriting } from "./sqlite-connection.ts";

/** How the file is opened. */
export type SqliteLedgerOptions = Readonly<{
  path: string;
  /** Brings a file to the disk; tests make it fail. */
  sync?: (file: FileHandle) => Promise<void>;
}>;

/** Transactions that share one commit: another process waits no longer for the lock than these take. */
const groupMax = 64;
/** How long the lock of another process is waited for. */
const lockTimeoutMs = 10_000;
/** First and longest pause between two tries. */
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
 * Opens the ledger and brings it to the newest version.
 *
 * @throws Error when the file is no ledger, or a newer program's.
 */
export async function openSqliteLedger(options: SqliteLedgerOptions): Promise<LedgerDatabase> {
  const { path, sync = (file: FileHandle) => file.datasync() } = options;
  const writer = connectForWriting(path);
  // The log exists as soon as the file has been read.
  writer.all("SELECT count(*) AS tables FROM sqlite_schema", []);
  const log = await open(`${path}-wal`, "r");
  await syncFolder(dirname(path));
  const writes = openWrites(writer, () => sync(log));
  try {
    await writes.write(migrate);
  } catch (error) {
    await log.close();
    writer.close();
    throw error;
  }
  const reader = connectForReading(path);
  const reads = createReads(reader);
  return {
    kind: "sqlite",
    write: writes.write,
    read: reads.read,
    close: async () => {
      await Promise.all([writes.close(), reads.close()]);
      reader.close();
      await log.close();
      writer.close();
    },
  };
}

/** The write side: a queue, groups, and the wait for the disk. */
function openWrites(connection: Connection, sync: () => Promise<void>) {
  const waiting: Job[] = [];
  const unanswered = new Set<Promise<void>>();
  const onDisk = createGroupSync(sync);
  let running: Promise<void> | undefined;
  let closed: Failure | undefined;

  function shut(cause: unknown): Failure {
    // What the disk has after a failed synchronisation is unknown: only a new start reads it again.
    closed ??= new Failure("database_unavailable", { reason: "the ledger could not reach its disk" }, cause);
    return closed;
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const refused = closed ?? (await beginFailure(connection));
      if (refused === undefined) await runGroup();
      else for (const job of waiting.splice(0)) job.reject(refused);
    }
    running = undefined;
  }

  async function runGroup(): Promise<void> {
    const done: Done[] = [];
    try {
      while (done.length < groupMax) {
        const job = waiting.shift();
        if (job === undefined) break;
        const answer = await runAlone(connection, job);
        if (answer !== undefined) done.push(answer);
      }
      connection.run("COMMIT", []);
    } catch (error) {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
      const failure = isDamage(error)
        ? shut(error)
        : new Failure("database_unavailable", { reason: "the ledger could not commit" }, error);
      for (const { job } of done) job.reject(failure);
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
        (error) => {
          const failure = shut(error);
          for (const { job } of done) job.reject(failure);
        },
      )
      .finally(() => unanswered.delete(answered));
    unanswered.add(answered);
  }

  return {
    write: <Answer>(work: Work<Answer>): Promise<Answer> => {
      if (closed !== undefined) return Promise.reject(closed);
      if (waiting.length >= waitingMax)
        return Promise.reject(new Failure("busy", { reason: "too many ledger transactions wait" }));
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      // The queue holds work of many kinds; each answer goes back to the promise that was made with its work.
      waiting.push({ work, resolve: resolve as (answer: unknown) => void, reject });
      running ??= Promise.resolve().then(drain);
      return promise;
    },
    close: async () => {
      while (running !== undefined) await running;
      await Promise.all(unanswered);
      closed ??= new Failure("database_unavailable", { reason: "the ledger is closed" });
    },
  };
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
 * Runs one job within a savepoint of the group's transaction.
 *
 * @returns What to answer; nothing when the job failed, which it has been told.
 * @throws what ended the whole transaction.
 */
async function runAlone(connection: Connection, job: Job): Promise<Done | undefined> {
  connection.run("SAVEPOINT job", []);
  try {
    const answer = await withinTime(connection, job.work);
    connection.run("RELEASE job", []);
    return { job, answer };
  } catch (error) {
    job.reject(error);
    // A full disk ends the transaction of all: there is no savepoint to go back to.
    if (!connection.inTransaction()) throw error;
    connection.run("ROLLBACK TO job", []);
    connection.run("RELEASE job", []);
    return undefined;
  }
}

/** Runs work with a `tx` that ends with it. */
async function withinTime<Answer>(connection: Connection, work: Work<Answer>): Promise<Answer> {
  const { tx, end } = createTx(connection);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error("ledger work waits for something other than its transaction")),
    workTimeoutMs,
  );
  try {
    const answer = await Promise.race([work(tx), late.promise]);
    const broken = end();
    if (broken !== undefined) throw broken.error;
    return answer;
  } finally {
    clearTimeout(timer);
    end();
  }
}

/** A view of the connection that refuses after its end, and after its first failed statement. */
function createTx(connection: Connection): Readonly<{ tx: Tx; end: () => { error: unknown } | undefined }> {
  let ended = false;
  let broken: { error: unknown } | undefined;

  // Nothing waits here: the promises only keep the interface of a database behind a socket.
  async function perform<Answer>(call: () => Answer): Promise<Answer> {
    if (ended) throw new Error("the ledger transaction has ended");
    if (broken !== undefined) throw broken.error;
    try {
      return call();
    } catch (error) {
      broken = { error };
      throw error;
    }
  }

  const tx: Tx = {
    // The shape of rows is the caller's word, stated beside its SQL.
    all: <Shape extends Row>(sql: string, ...values: Value[]) =>
      perform(() => connection.all(sql, values) as Shape[]),
    get: <Shape extends Row>(sql: string, ...values: Value[]) =>
      perform(() => connection.all(sql, values)[0] as Shape | undefined),
    run: (sql, ...values) => perform(() => connection.run(sql, values)),
  };
  return {
    tx,
    end: () => {
      ended = true;
      return broken;
    },
  };
}

/** The read side: one snapshot after another, beside the writer. */
function createReads(connection: Connection) {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  async function snapshot<Answer>(work: Work<Answer>): Promise<Answer> {
    connection.run("BEGIN", []);
    try {
      return await withinTime(connection, work);
    } finally {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
      waiting -= 1;
    }
  }

  return {
    read: <Answer>(work: Work<Answer>): Promise<Answer> => {
      if (waiting >= waitingMax)
        return Promise.reject(new Failure("busy", { reason: "too many ledger reads wait" }));
      waiting += 1;
      const mine = last.then(
        () => snapshot(work),
        () => snapshot(work),
      );
      last = mine;
      return mine;
    },
    close: async () => {
      await Promise.allSettled([last]);
    },
  };
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}

/** Errors after which what is on the disk is unknown. */
function isDamage(error: unknown): boolean {
  return /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(codeOf(error));
}
