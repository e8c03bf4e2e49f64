/**
 * What content has threads check for it: the functions of workers/verify.ts.
 * @module
 */
import { assert } from "../lib/assert.ts";
import { untilStopped } from "../lib/stop.ts";
import type { CheckedItemPayload, CheckedTransaction, CheckTransactionsJob } from "../store/thread-jobs.ts";
import type { Pool } from "../threads/pool.ts";
import type { CheckTransaction } from "./bodies.ts";
import type { CheckItem } from "./find-item.ts";
import type { CheckBlockNames } from "./root-transactions.ts";
import type { CheckItemMessage } from "./whole.ts";

/** Checks that take a thread's time. */
export type ContentChecks = Readonly<{
  transaction: CheckTransaction;
  blockNames: CheckBlockNames;
  item: CheckItem;
  itemMessage: CheckItemMessage;
}>;

/**
 * Runs the checks in the threads of `workers/verify.ts`. A caller that leaves, as a source does that was not
 * the soonest, is not waited for; its thread finishes: ending it would cost more, and strangers could have
 * threads ended at will.
 */
export function checksIn(verify: Pool): ContentChecks {
  const run = <Answer>(name: string, job: unknown, signal: AbortSignal): Promise<Answer> =>
    untilStopped(verify.run<Answer>(name, job), signal);
  return {
    transaction: async (id, text, signal) => {
      const job: CheckTransactionsJob = { transactions: [{ id, text }] };
      const [checked] = await run<readonly CheckedTransaction[]>("checkTransactions", job, signal);
      assert(checked !== undefined, "one transaction asked about is one answer");
      return checked;
    },
    blockNames: (job, signal) => run<string | undefined>("checkBlockNames", job, signal),
    item: (job, signal) => run<CheckedItemPayload>("checkItem", job, signal),
    itemMessage: (job, signal) => run<string | undefined>("checkItemMessage", job, signal),
  };
}
