/**
 * Watches a seeded bundle until it is permanent: deep enough in the chain, and read back completely by our own index.
 *
 * Data that nodes lost is posted and seeded again: the same transaction while it can still be mined, and only then
 * another one, so that no item is on the chain twice.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { stableDepth } from "../../store/index/index-types.ts";
import { layoutFolder } from "../../store/uploads/bundle-layout.ts";
import { itemsOfBundle } from "../upload-rows.ts";
import {
  type Bundle,
  type BundleTransaction,
  noteBlock,
  postponeBundle,
  returnBundle,
  stepBundle,
} from "./bundle-rows.ts";
import { anchorBlocks, type BundleChain, type StepParts } from "./pipeline-context.ts";

/** Checks the bundle on the chain, and changes its state if the chain requires it. */
export async function confirm(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, rules, clock } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is seeded with its transaction");
  const now = clock();
  const lookAt = now + rules.lookMs;
  const mined = chain.status(transaction.id);
  if (mined?.height !== bundle.blockHeight) {
    // The bundle waits for another event from here on, so the time of `isOverdue` starts again.
    await ledger.write((tx) => noteBlock(tx, bundle, mined?.height, now, lookAt));
    if (mined === undefined) parts.onLeftBlock(bundle.id);
    return;
  }
  const isOverdue = now - bundle.changedAt > rules.againMs * 2 ** Math.min(bundle.setbacks, doublingsMax);
  if (mined === undefined) return await lookForBlock(parts, bundle, isOverdue, signal);
  const isReadBack = chain.isReadBack(transaction.id, bundle.itemCount);
  if (isReadBack && mined.confirmations >= rules.confirmations) return await finish(parts, bundle);
  if (isReadBack || !isOverdue) return await lookAgain(parts, bundle);
  await goBack(parts, bundle, "posted", "our own index cannot read it back from the nodes");
}

const doublingsMax = 6;

/** Checks a bundle that no followed block contains. */
async function lookForBlock(parts: StepParts, bundle: Bundle, isOverdue: boolean, signal: AbortSignal): Promise<void> {
  const { chain } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is seeded with its transaction");
  if (await isLost(chain, transaction, signal))
    return await goBack(parts, bundle, "planned", "no block contains its transaction, and none will");
  if (isOverdue && (await chain.isUnknown(transaction.id, signal)))
    return await goBack(parts, bundle, "prepared", "the nodes have lost its transaction");
  await lookAgain(parts, bundle);
}

async function lookAgain({ ledger, rules, clock }: StepParts, bundle: Bundle): Promise<void> {
  await ledger.write((tx) => postponeBundle(tx, bundle, clock() + rules.lookMs, undefined));
}

async function goBack(
  { ledger, clock, log }: StepParts,
  bundle: Bundle,
  to: "planned" | "prepared" | "posted",
  reason: string,
): Promise<void> {
  const now = clock();
  log.warn("a bundle returned to an earlier state", {
    bundleId: bundle.id,
    transaction: bundle.transaction?.id,
    to,
    reason,
  });
  await ledger.write((tx) => returnBundle(tx, { bundle, to, now, nextAt: now, reason }));
}

/** The bundle is permanent: its files may be removed. */
async function finish(parts: StepParts, bundle: Bundle): Promise<void> {
  const { ledger, chain, clock } = parts;
  const items = await itemsOfBundle(ledger, bundle.id);
  // The rows of the block replace the pending rows, which would otherwise stay forever. Repeated after a crash.
  await chain.forgetPending(items.map(({ id }) => id as Id));
  // The chain may have changed meanwhile.
  if (bundle.transaction === undefined || chain.status(bundle.transaction.id)?.height !== bundle.blockHeight)
    return await lookAgain(parts, bundle);
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "permanent", now, nextAt: now }));
  parts.onEnded("permanent", bundle.itemCount);
  parts.onLeft([...new Set(items.map(({ file }) => file)), `${layoutFolder}/${bundle.id}`]);
}

/** Largest ordinary difference of the heights of nodes. */
const heightsApartMax = 2;

/**
 * Whether a transaction can never be mined, on any branch of the chain: its anchor has been too old for longer than
 * branches live, or the chain was reset. False if unknown.
 */
export async function isLost(
  chain: Pick<BundleChain, "height" | "status" | "isUnknown" | "nodesHeight">,
  { id, anchorHeight }: BundleTransaction,
  signal: AbortSignal,
): Promise<boolean> {
  const height = chain.height();
  if (height === undefined || chain.status(id) !== undefined) return false;
  const isExpired = height > anchorHeight + anchorBlocks + stableDepth;
  const isBelow = height < anchorHeight - stableDepth;
  if (!isExpired && !isBelow) return false;
  // The height of an index that is behind its nodes is not the height of the chain.
  if (isBelow && (await chain.nodesHeight(signal)) > height + heightsApartMax) return false;
  return await chain.isUnknown(id, signal);
}
