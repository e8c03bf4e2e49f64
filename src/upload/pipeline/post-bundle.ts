/**
 * Posting a bundle's transaction.
 *
 * Once sent, a transaction may be mined whatever the nodes respond. Another one replaces it only when all nodes
 * reject it at once, or when it is lost for good.
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

/** A transaction that has not left this machine is not sent any more when so few blocks are left to it. */
const blocksLeftMin = 10;

/** Pause between a rejection and the next transaction: its cause may last a while. Milliseconds. */
const rejectedPauseMs = 1_000;

/** Posts the transaction. @throws Failure `source_failed` {reason} when nobody took it. */
export async function post(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, clock } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is prepared with its transaction");
  if (await isOver(parts, bundle, transaction, signal)) {
    await giveUp(parts, bundle, 0, "its transaction came too late to be mined");
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
    throw new Failure("source_failed", { reason: `the transaction was not taken: ${posted.reason}` });
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

/** Whether there is no use in sending it, and no harm in another one. */
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
  log.warn("a bundle is signed anew", { bundleId: bundle.id, transaction: bundle.transaction?.id, reason });
  await ledger.write((tx) => returnBundle(tx, { bundle, to: "planned", now, nextAt: now + pauseMs, reason }));
}
