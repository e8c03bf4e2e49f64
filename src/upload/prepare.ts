/**
 * Preparing a bundle: from chosen items to a signed transaction.
 *
 * Every item is read and compared with its digest. Those whose bytes are not what they were fail alone, and are paid
 * back; the others are planned anew.
 * Source: reference/upload.md §2 "Prepare".
 * @module
 */
import { isId } from "../arweave/id.ts";
import type { Tag } from "../arweave/tags.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { BundleItem, PrepareBundleAnswer, PrepareBundleJob } from "../store/bundle-jobs.ts";
import type { Tx } from "../store/ledger/database.ts";
import { version } from "../version.ts";
import { type Bundle, dropBundle, stepBundle } from "./bundles.ts";
import type { PipelineParts } from "./pipeline-parts.ts";
import { bundleItemsMax } from "./plan.ts";
import { failUpload, uploadsOfBundle } from "./uploads.ts";

/** What is said of every bundle. Source: ANS-104 §2. */
const tags: readonly Tag[] = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
  { name: "App-Name", value: "Cairn" },
  { name: "App-Version", value: version },
];

/** Signs a transaction for a planned bundle, or fails the items that cannot be in it. */
export async function prepare(parts: PipelineParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { ledger, threads, chain, folder, walletFile, clock, log } = parts;
  const items = await itemsOf(parts, bundle);
  // The height first: the anchor is then not older than the block that this says.
  const postedHeight = chain.height();
  if (postedHeight === undefined)
    throw new Failure("not_synced", { reason: "no block has been followed yet" });
  const anchor = await chain.anchor(signal);
  const reward = await chain.price(bundle.dataSize, signal);
  await checkBalance(parts, reward, signal);
  const job: PrepareBundleJob = { folder, bundleId: bundle.id, items, walletFile, anchor, reward, tags };
  const answer = await threads.run<PrepareBundleAnswer>("prepareBundle", job, { signal });
  const now = clock();
  if (answer.kind === "poisoned") {
    log.error("items of a bundle cannot be read", { bundleId: bundle.id, items: answer.items });
    await ledger.write((tx) => failItems(parts, tx, bundle, answer.items, now));
    return;
  }
  const { transactionId, text } = answer;
  assert(isId(transactionId), "a signed transaction has an id");
  const transaction = { id: transactionId, text, postedHeight };
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "prepared", now, nextAt: now, transaction }));
}

/** The items of a bundle in their order, as threads read them. */
export async function itemsOf({ ledger }: PipelineParts, bundle: Bundle): Promise<BundleItem[]> {
  const uploads = await ledger.read((tx) => uploadsOfBundle(tx, bundle.id, 0, bundleItemsMax));
  assert(uploads.length === bundle.itemCount, "a bundle has the items that it was planned with");
  return uploads.map(({ id, bytes, headerSize, digest }) => ({ id, ...bytes, headerSize, digest }));
}

async function checkBalance({ chain }: PipelineParts, reward: bigint, signal: AbortSignal): Promise<void> {
  const balance = await chain.balance(signal);
  if (balance < reward)
    throw new Failure("busy", {
      reason: `the wallet holds ${balance} winston, the next bundle costs ${reward}`,
    });
}

async function failItems(
  parts: PipelineParts,
  tx: Tx,
  bundle: Bundle,
  items: readonly Readonly<{ id: string; reason: string }>[],
  now: number,
): Promise<void> {
  for (const { id, reason } of items) {
    const failed = await failUpload(tx, id, bundle.id, reason, now);
    if (failed?.reservationId !== undefined)
      await parts.refund(tx, failed.reservationId, { now, makeId: parts.makeId });
  }
  await dropBundle(tx, bundle, now);
}
