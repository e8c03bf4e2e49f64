/**
 * Prepares a bundle: from planned items to a signed transaction.
 *
 * Every item is read and compared with its digest. Damaged items fail and are refunded; the others are planned again.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain.
 * @module
 */
import type { LayoutJob, LayoutSummary, SignBundleJob } from "../../../workers/bundles.ts";
import { isId } from "../../arweave/id.ts";
import type { Tag } from "../../arweave/tags.ts";
import { readTransactionHeader } from "../../arweave/transaction.ts";
import { Failure, failures } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Tx } from "../../store/ledger/ledger-database.ts";
import { layoutFolder } from "../../store/uploads/bundle-layout.ts";
import { version } from "../../version.ts";
import { failUpload, itemsOfBundle, type Upload } from "../upload-rows.ts";
import { blockedItems } from "./blocked-items.ts";
import { type Bundle, dropBundle, nextBundles, permanentBundles, returnBundle, stepBundle } from "./bundle-rows.ts";
import type { StepParts } from "./pipeline-context.ts";

/** Tags of every bundle. Source: ANS-104 §2. */
const tags: readonly Tag[] = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
  { name: "App-Name", value: "Cairn" },
  { name: "App-Version", value: version },
];

/**
 * Signs a transaction for a planned bundle, or fails the items that cannot be in it.
 *
 * The items are verified just before every signature. Otherwise, after the first post, damage could leave a transaction
 * on the chain without its data.
 */
export async function prepare(parts: StepParts, bundle: Bundle, signal: AbortSignal): Promise<void> {
  const { chain } = parts;
  if (await failBlocked(parts, bundle)) return;
  // Before the items are read: checks whether a signature is possible at all.
  await chain.anchor(signal);
  await checkBalance(parts, await chain.price(bundle.dataSize, signal), signal);
  const layout = await makeLayout(parts, bundle, signal);
  if (layout === undefined) return;
  assert(layout.dataSize === bundle.dataSize, "the layout has the planned size");
  await parts.inOrder(() => sign(parts, bundle, layout, signal));
}

/** Fails the items that were blocked while they waited; the others are planned again. @returns Whether any failed. */
async function failBlocked(parts: StepParts, bundle: Bundle): Promise<boolean> {
  const blocked = await blockedItems(parts, bundle);
  if (blocked.length === 0) return false;
  const reason = failures.blocked.message;
  parts.log.warn("items of a bundle are blocked", {
    bundleId: bundle.id,
    items: blocked.map(({ id }) => id),
  });
  await failItems(
    parts,
    bundle,
    blocked.map(({ id }) => ({ id, reason })),
  );
  return true;
}

async function sign(
  parts: StepParts,
  bundle: Bundle,
  { dataRoot, dataSize }: LayoutSummary,
  signal: AbortSignal,
): Promise<void> {
  const { ledger, threads, chain, walletFile, clock } = parts;
  signal.throwIfAborted();
  const anchor = await chain.anchor(signal);
  const reward = await chain.price(dataSize, signal);
  await checkBalance(parts, reward, signal);
  const unsigned: SignBundleJob = { walletFile, anchor: anchor.hash, reward, tags, dataRoot, dataSize };
  const { transactionId, text } = await threads.run("signBundle", unsigned, { signal });
  assert(isId(transactionId), "a signed transaction has an id");
  const transaction = { id: transactionId, text, anchorHeight: anchor.height };
  const now = clock();
  await ledger.write((tx) => stepBundle(tx, { bundle, to: "prepared", now, nextAt: now, transaction }));
}

/** Time for a layout, beside that of its bytes. Milliseconds. */
const layoutMsMin = 10 * 60_000;

/** Each byte is read from the disk and hashed twice. Bytes. */
const slowestBytesPerMs = 10_000;

/**
 * Verifies all items of a bundle and stores its layout.
 *
 * @returns `undefined` if items are damaged: these have failed, and the bundle is dropped.
 * @throws Failure `busy` {reason} when files cannot be read now.
 */
export async function makeLayout(
  parts: StepParts,
  bundle: Bundle,
  signal: AbortSignal,
): Promise<LayoutSummary | undefined> {
  const { ledger, threads, folder, log } = parts;
  const items = await itemsOfBundle(ledger, bundle.id);
  if (items.length < bundle.itemCount) {
    // The program ended during the failure of the other items.
    await drop(parts, bundle, "some of its items have failed");
    return undefined;
  }
  const job: LayoutJob = { folder, bundleId: bundle.id, items };
  const timeoutMs = layoutMsMin + Math.ceil(bundle.itemsSize / slowestBytesPerMs);
  const response = await threads.run("layoutBundle", job, { signal, timeoutMs });
  if (response.kind === "fault")
    throw new Failure("busy", { reason: `the items of a bundle cannot be read: ${response.reason}` });
  if (response.kind === "layout") return response;
  log.error("items of a bundle are damaged", { bundleId: bundle.id, items: response.items });
  await failItems(parts, bundle, response.items);
  return undefined;
}

/** @throws Failure `busy` when the wallet cannot pay for this bundle in addition to the pending ones. */
async function checkBalance(parts: StepParts, reward: bigint, signal: AbortSignal): Promise<void> {
  const balance = await parts.chain.balance(signal);
  const owed = await owedRewards(parts);
  if (balance < owed + reward)
    throw new Failure("busy", {
      reason:
        `the wallet holds ${balance} winston; ${reward} are needed for the next bundle` +
        (owed === 0n ? "" : ` and ${owed} for bundles that are in no block yet`),
    });
}

/** Most pending bundles whose rewards are counted. */
const owedMax = 1_000;

/** Rewards of signed bundles that are in no block yet: the balance of the wallet still includes them. */
async function owedRewards({ ledger, chain, storeName }: StepParts): Promise<bigint> {
  const states = ["prepared", "posted", "seeded"] as const;
  const signed = await ledger.read((tx) => nextBundles(tx, { store: storeName, states, limit: owedMax }));
  return signed
    .flatMap(({ transaction }) => transaction ?? [])
    .filter(({ id }) => chain.status(id) === undefined)
    .reduce((sum, { text }) => sum + readTransactionHeader(text).reward, 0n);
}

/** Items that fail, and are refunded, in one transaction. */
const failedAtOnce = 50;

async function failItems(
  parts: StepParts,
  bundle: Bundle,
  items: readonly Readonly<{ id: string; reason: string }>[],
  why = "some of its items are damaged or blocked",
): Promise<void> {
  for (let at = 0; at < items.length; at += failedAtOnce) {
    const some = items.slice(at, at + failedAtOnce);
    const failed = await parts.ledger.write((tx) => failSome(parts, tx, bundle, some));
    parts.onEnded("failed", failed.length);
    parts.onLeft(failed.map(({ bytes }) => bytes.file));
    await parts.chain.forgetPending(failed.map(({ id }) => id));
  }
  await drop(parts, bundle, why);
}

/** If the program ends amid the failure of permanent items, the next one prepares the rest again after this. */
const resumeMs = 10 * 60_000;

/**
 * Fails, and refunds, the items of permanent bundles that the chain has not got, because it was begun anew: they are
 * accepted again. The files of most are removed.
 */
export async function failPermanent(parts: StepParts): Promise<void> {
  const { ledger, chain, clock } = parts;
  const reason = "the chain was begun anew";
  for (const bundle of await ledger.read((tx) => permanentBundles(tx, parts.storeName))) {
    if (bundle.transaction === undefined || chain.status(bundle.transaction.id) !== undefined) continue;
    const now = clock();
    const back = { bundle, to: "planned", now, nextAt: now + resumeMs, reason } as const;
    if (!(await ledger.write((tx) => returnBundle(tx, back)))) continue;
    const items = await itemsOfBundle(ledger, bundle.id);
    const failed = items.map(({ id }) => ({ id, reason }));
    await failItems(parts, { ...bundle, state: "planned" }, failed, reason);
  }
}

async function failSome(
  { refund, clock, makeId }: StepParts,
  tx: Tx,
  bundle: Bundle,
  items: readonly Readonly<{ id: string; reason: string }>[],
): Promise<Upload[]> {
  const failed: Upload[] = [];
  for (const { id, reason } of items) {
    const upload = await failUpload(tx, id, bundle.id, reason);
    if (upload === undefined) continue;
    if (upload.reservationId !== undefined) await refund(tx, upload.reservationId, { now: clock(), makeId });
    failed.push(upload);
  }
  return failed;
}

async function drop({ ledger, clock, onLeft, planAgain }: StepParts, bundle: Bundle, why: string): Promise<void> {
  await ledger.write((tx) => dropBundle(tx, bundle, clock(), why));
  planAgain();
  onLeft([`${layoutFolder}/${bundle.id}`]);
}
