/**
 * What content has threads check for it: the functions of workers/verify.ts.
 * @module
 */

import type { CheckTransactionsJob } from "../../workers/verify.ts";
import { assert } from "../lib/assert.ts";
import type { Pool, Workers } from "../threads/pool.ts";
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

/** Runs the checks in the threads of `workers/verify.ts`. */
export function checksIn(verify: Pool<Workers["verify"]>): ContentChecks {
  return {
    transaction: async (id, text, signal) => {
      const job: CheckTransactionsJob = { transactions: [{ id, text }] };
      const [checked] = await verify.run("checkTransactions", job, { signal });
      assert(checked !== undefined, "one transaction asked about is one answer");
      return checked;
    },
    blockNames: (job, signal) => verify.run("checkBlockNames", job, { signal }),
    item: (job, signal) => verify.run("checkItem", job, { signal }),
    itemMessage: (job, signal) => verify.run("checkItemMessage", job, { signal }),
  };
}
