/**
 * Posts the transaction of a bundle.
 *
 * Once sent, a transaction may be mined regardless of the responses. Another transaction replaces it only when all
 * nodes reject the first post, or when it can never be mined.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain; docs/reference/node-api.md#posting-transactions.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import { blockedItems } from "./blocked-items.ts";
import { type Bundle, type BundleTransaction, noteSent, returnBundle, stepBundle } from "./bundle-rows.ts";
import { isLost } from "./confirm-bundle.ts";
import { anchorBlocks, type StepParts } from "./pipeline-context.ts";

/** A transaction is not sent for the first time with fewer blocks until its anchor expires. */
const blocksLeftMin = 10;

/** First backoff after a rejection, whose cause may last. Milliseconds. */
const rejectedPauseMs = 1_000;

/** @throws Failure `source_failed` {reason} when no node accepted the transaction. */
export async function post(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, clock } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is prepared with its transaction");
  if (await isOver(parts, bundle, transaction, signal)) {
    await giveUp(parts, bundle, 0, "its transaction is too late to be mined");
    return;
  }
  if (!bundle.wasSent && (await blockedItems(parts, bundle)).length > 0) {
    await giveUp(parts, bundle, 0, "items in it were blocked");
    return;
  }
  const sending = await ledger.write((tx) => noteSent(tx, bundle, clock()));
  if (sending === "gone") return;
  const posted = await chain.post("/tx", utf8Bytes(transaction.text), signal);
  if (posted.kind === "fault")
    throw new Failure("source_failed", { reason: `no node accepted the transaction: ${posted.reason}` });
  if (posted.kind === "rejected") {
    const reason = `the nodes rejected the transaction: ${posted.reason}`;
    if (sending === "again" || !posted.isByAll) throw new Failure("source_failed", { reason });
    await giveUp(parts, bundle, rejectedPauseMs * 2 ** Math.min(bundle.attempts, rejectedDoublingsMax), reason);
    return;
  }
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "posted", now, nextAt: now }));
}

const rejectedDoublingsMax = 6;

/** Whether the transaction can never be mined, or is not worth a first post: another one can replace it safely. */
async function isOver(
  { chain }: StepParts,
  bundle: Bundle,
  transaction: BundleTransaction,
  signal: AbortSignal,
): Promise<boolean> {
  if (bundle.wasSent) return await isLost(chain, transaction, signal);
  const height = chain.height();
  return height !== undefined && height > transaction.anchorHeight + anchorBlocks - blocksLeftMin;
}

async function giveUp(
  { ledger, clock, log }: StepParts,
  bundle: Bundle,
  pauseMs: number,
  reason: string,
): Promise<void> {
  const now = clock();
  log.warn("a bundle is signed again", { bundleId: bundle.id, transaction: bundle.transaction?.id, reason });
  await ledger.write((tx) => returnBundle(tx, { bundle, to: "planned", now, nextAt: now + pauseMs, reason }));
}
