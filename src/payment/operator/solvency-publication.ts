/**
 * Publishes a root of solvency for each period, such as a day.
 *
 * The moment of a root is the start of its period, in Unix time: a day begins at 00:00 UTC. Its row is the claim to the
 * period, and has the signed data item: a crash, and another process of the ledger, repeat the upload with the same
 * bytes, which the upload service accepts once. A period that ends before its root is published has none.
 * Source: docs/reference/payment.md#proof-of-solvency.
 * @module
 */
import { explainError } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { settledMs } from "./solvency.ts";
import { insertRoot, markPublished, newestRoots, type StoredRoot } from "./solvency-roots.ts";

export type PublicationParts = Readonly<{
  ledger: Pick<LedgerDatabase, "read" | "write">;
  /** Length of a period. Milliseconds. */
  everyMs: number;
  /** Signs the root of the balances of a moment. */
  sign: (at: number, signal: AbortSignal) => Promise<Pick<StoredRoot, "id" | "item" | "secret">>;
  /** Uploads a data item. The same bytes, uploaded again, change nothing. */
  upload: (item: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<void>;
  metrics: Pick<Metrics, "counter" | "gaugeOf">;
  clock: Clock;
  log: Log;
}>;

export type Publication = Readonly<{
  /** Publishes what is due. Rejects when it failed; it is due again then. */
  step: (signal: AbortSignal) => Promise<void>;
  /** Why the root of this period is not published, while the last attempt failed or none ended in time. */
  reasons: () => readonly string[];
}>;

/** A root that is this late is a reason of bad health, also without a failure. Milliseconds. */
const overdueMs = 60 * 60_000;

/** Creates the publication; a loop calls its `step`. */
export function createPublication(parts: PublicationParts): Publication {
  const { ledger, everyMs, clock, log } = parts;
  const startedAt = clock();
  const counter = parts.metrics.counter({
    name: "solvency_publications_total",
    help: "Roots of solvency that this process published, and attempts that failed.",
    labels: { result: ["published", "failed"] },
  });
  /** The moment of the newest published root; undefined while unknown, or without one. */
  let publishedTo: number | undefined;
  let fault: string | undefined;
  parts.metrics.gaugeOf({
    name: "solvency_root_age_seconds",
    help: "Seconds since the moment of the newest published root of solvency; absent without one.",
    read: () => {
      if (publishedTo === undefined) throw new Error("not known yet");
      return (clock() - publishedTo) / 1_000;
    },
  });

  /** The start of the last period whose balances no longer change. */
  const due = () => Math.floor((clock() - settledMs) / everyMs) * everyMs;

  /** The newest root, which is that of the period that is due: this process signs it unless another one did. */
  async function current(signal: AbortSignal): Promise<StoredRoot> {
    const at = due();
    const [newest] = await ledger.read((tx) => newestRoots(tx, 1));
    if (newest !== undefined && newest.at >= at) return newest;
    const signed = await parts.sign(at, signal);
    return await ledger.write(async (tx) => {
      await insertRoot(tx, { at, ...signed, signedAt: clock() });
      const [stored] = await newestRoots(tx, 1);
      assert(stored !== undefined, "a root was inserted, now or by another process");
      return stored;
    });
  }

  async function step(signal: AbortSignal): Promise<void> {
    const root = await current(signal);
    if (root.publishedAt === undefined) {
      await parts.upload(decodeItem(root), signal);
      if (await ledger.write((tx) => markPublished(tx, root.at, clock()))) {
        counter.inc({ result: "published" });
        log.info("root of solvency published", { id: root.id, at: dateOf(root.at) });
      }
    }
    publishedTo = root.at;
  }

  return {
    step: async (signal) => {
      try {
        await step(signal);
        fault = undefined;
      } catch (error) {
        if (!signal.aborted) {
          fault = explainError(error);
          counter.inc({ result: "failed" });
        }
        throw error;
      }
    },
    reasons: () => {
      const at = due();
      if (publishedTo !== undefined && publishedTo >= at) return [];
      if (fault !== undefined) return [`The root of solvency of ${dateOf(at)} is not published: ${fault}.`];
      const isLate = clock() >= Math.max(startedAt, at + settledMs) + overdueMs;
      return isLate ? [`The root of solvency of ${dateOf(at)} is overdue.`] : [];
    },
  };
}

function decodeItem({ id, item }: StoredRoot): Uint8Array<ArrayBuffer> {
  const bytes = decodeBase64url(item);
  if (bytes === undefined) throw new Error(`the stored data item of the root ${id} is damaged`);
  return Uint8Array.from(bytes);
}

function dateOf(at: number): string {
  return new Date(at).toISOString();
}
