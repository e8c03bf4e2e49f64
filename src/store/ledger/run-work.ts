/**
 * Running one piece of work inside an open transaction, whichever database holds it.
 *
 * @module
 */
import type { Row, Tx, Value, Work } from "./database.ts";
import { workTimeoutMs } from "./limits.ts";

/** The statements of an open transaction. */
export type Statements = Readonly<{
  all: (sql: string, values: readonly Value[]) => readonly Row[] | Promise<readonly Row[]>;
  run: (sql: string, values: readonly Value[]) => number | Promise<number>;
}>;

const lateName = "LateWork";
const lateText = "ledger work waits for something other than its transaction, or its database does not answer";

/** Whether work was given up because it took too long. */
export function isLate(error: unknown): boolean {
  return error instanceof Error && error.name === lateName;
}

/** Waits for an answer, but no longer than so many milliseconds; then `isLate` is true of what it throws. */
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
 * Runs work with a `tx` that ends with it, and that a failed statement breaks for good.
 *
 * @returns The work's answer, when all its statements succeeded.
 * @throws what the work threw, the error of a statement that it caught, or an Error after `workTimeoutMs`.
 */
export async function runWork<Result>(statements: Statements, work: Work<Result>): Promise<Result> {
  const { tx, end } = createTx(statements);
  try {
    const response = await withinTime(work(tx), workTimeoutMs);
    const broken = end();
    // PostgreSQL refuses to go on after a failed statement, so SQLite does too.
    if (broken !== undefined) throw broken.error;
    return response;
  } finally {
    end();
  }
}

function createTx(statements: Statements) {
  let ended = false;
  let broken: { error: unknown } | undefined;

  async function perform<Result>(call: () => Result | Promise<Result>): Promise<Result> {
    if (ended) throw new Error("the ledger transaction has ended");
    if (broken !== undefined) throw broken.error;
    try {
      return await call();
    } catch (error) {
      broken ??= { error };
      throw error;
    }
  }

  const tx: Tx = {
    // The shape of rows is the caller's word, stated beside its SQL.
    all: async <Shape extends Row>(sql: string, ...values: Value[]) =>
      (await perform(() => statements.all(sql, values))) as Shape[],
    get: async <Shape extends Row>(sql: string, ...values: Value[]) =>
      (await perform(() => statements.all(sql, values)))[0] as Shape | undefined,
    run: (sql, ...values) => perform(() => statements.run(sql, values)),
  };
  return {
    tx,
    /** Ends it; answers the first failure, if any. */
    end: () => {
      ended = true;
      return broken;
    },
  };
}
