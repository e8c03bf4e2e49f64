/**
 * Reports over the whole ledger, made in a thread: the statement of a month, roots of solvency, and proofs.
 * Source: docs/reference/payment.md#statements; docs/reference/payment.md#proof-of-solvency.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";
import type { LedgerPlace } from "../../store/ledger/open-ledger.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import type { UserAddress } from "../addresses.ts";
import { settledMs } from "./solvency.ts";
import type { StoredRoot } from "./solvency-roots.ts";
import type { Month } from "./statement.ts";

type ReportParts = Readonly<{
  thread: Pick<Pool<Workers["ledger-reports"]>, "run">;
  ledger: LedgerPlace;
  /** The secret of the salts of roots that are made here. */
  secret: () => Uint8Array;
  clock: Clock;
}>;

/** All reject with Failure `busy` while too many wait, or with the signal's reason. */
export type LedgerReports = Readonly<{
  /** The statement of a month as CSV. */
  statement: (month: Month, signal: AbortSignal) => Promise<string>;
  /** The root of the newest balances that no longer change: `{version, at, accounts, winc, root}`. */
  currentRoot: (signal: AbortSignal) => Promise<JsonObject>;
  /** Signs the root of a moment. @param keyFile - An RSA key. */
  signRoot: (at: number, keyFile: string, signal: AbortSignal) => Promise<Pick<StoredRoot, "id" | "item" | "secret">>;
  /**
   * The proof of an account in the newest published root.
   * @throws Failure `not_found` before the first root, `user_not_found` for an account without credits in it.
   */
  prove: (account: UserAddress, signal: AbortSignal) => Promise<JsonObject>;
}>;

export function createLedgerReports({ thread, ledger, secret, clock }: ReportParts): LedgerReports {
  return {
    statement: (month, signal) => thread.run("statement", { ledger, month }, { signal }),
    currentRoot: async (signal) => {
      const job = { ledger, at: clock() - settledMs, secret: secret() };
      const root = readJson(await thread.run("rootAt", job, { signal }));
      assert(isJsonObject(root), "the payload of a root is an object");
      return root;
    },
    signRoot: async (at, keyFile, signal) => {
      const job = { ledger, at, secret: secret(), keyFile };
      return { ...(await thread.run("signRoot", job, { signal })), secret: job.secret };
    },
    prove: async (account, signal) => {
      const proof = await thread.run("prove", { ledger, account }, { signal });
      if (proof === "no root") throw new Failure("not_found", { reason: "no root of solvency is published" });
      if (proof === "no credits") throw new Failure("user_not_found", { account });
      return proof;
    },
  };
}
