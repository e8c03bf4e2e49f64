/**
 * Whether a transaction is lost for good: only then may another one be signed for the same items, or they would be on
 * the chain twice.
 * Source: docs/reference/formats.md#anchors.
 * @module
 */
import { stableDepth } from "../../store/index/rows.ts";
import type { BundleTransaction } from "./bundle-rows.ts";
import { anchorBlocks, type BundleChain } from "./pipeline-context.ts";

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
