/**
 * Watches a seeded bundle until it is permanent: in a block that is deep enough, and read back whole by our own index.
 *
 * What nodes forgot is posted and seeded again: the same transaction while it can still be mined, and only then another
 * one, so that nothing is on the chain twice.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { stableDepth } from "../../store/index/rows.ts";
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

/** Looks whether the bundle is where it has to be, and does something about it when it is not. */
export async function confirm(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, chain, rules, clock } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is seeded with its transaction");
  const now = clock();
  const lookAt = now + rules.lookMs;
  const mined = chain.status(transaction.id);
  if (mined?.height !== bundle.blockHeight) {
    // From here on other things are waited for, for as long as they take.
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

/** The bundle is in no block that was followed. */
async function lookForBlock(parts: StepParts, bundle: Bundle, isOverdue: boolean, signal: AbortSignal): Promise<void> {
  const { chain } = parts;
  const { transaction } = bundle;
  assert(transaction !== undefined, "a bundle is seeded with its transaction");
  if (await isLost(chain, transaction, signal))
    return await goBack(parts, bundle, "planned", "no block has taken its transaction, and none will");
  if (isOverdue && (await chain.isUnknown(transaction.id, signal)))
    return await goBack(parts, bundle, "prepared", "the nodes have forgotten its transaction");
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
  log.warn("a bundle goes back", { bundleId: bundle.id, transaction: bundle.transaction?.id, to, reason });
  await ledger.write((tx) => returnBundle(tx, { bundle, to, now, nextAt: now, reason }));
}

/** The bundle is permanent: its files may be removed. */
async function finish(parts: StepParts, bundle: Bundle): Promise<void> {
  const { ledger, chain, clock } = parts;
  const items = await itemsOfBundle(ledger, bundle.id);
  // Their rows of the block stand for them; those from before it would stay for ever. Done again after a crash.
  await chain.forgetPending(items.map(({ id }) => id as Id));
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "permanent", now, nextAt: now }));
  parts.onEnded("permanent", bundle.itemCount);
  parts.onLeft([...new Set(items.map(({ file }) => file)), `${layoutFolder}/${bundle.id}`]);
}

/** As far as what is in no block may still come into one: nodes' heights differ by less. */
const heightsApartMax = 2;

/**
 * Tells whether a transaction can never be mined any more, on whichever branch of the chain: its anchor has been too
 * old for longer than branches live, or the chain itself was begun anew. In doubt it can.
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
  // An index that is only behind its nodes says nothing of where the chain is.
  if (isBelow && (await chain.nodesHeight(signal)) > height + heightsApartMax) return false;
  return await chain.isUnknown(id, signal);
}
