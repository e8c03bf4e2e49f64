/**
 * Rows of bundles on their way to the chain. Each change of state names the required earlier state, so that a repeated
 * step has no effect.
 * @module
 */
import { bundleCountSize, bundleEntrySize } from "../../arweave/bundle.ts";
import type { Id } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { type Row, readCount, readTime, storableText, type Tx } from "../../store/ledger/ledger-database.ts";

const states = ["filling", "planned", "prepared", "posted", "seeded", "permanent", "dropped"] as const;

/** State of a bundle (pipeline/bundle-pipeline.ts). */
export type BundleState = (typeof states)[number];

/** A signed transaction. */
export type BundleTransaction = Readonly<{
  id: Id;
  /** JSON, without data. */
  text: string;
  /** Height of the block that it is anchored to. */
  anchorHeight: number;
}>;

export type Bundle = Readonly<{
  id: string;
  state: BundleState;
  itemCount: number;
  /** Total size of its items. Bytes. */
  itemsSize: number;
  /** Size of the transaction's data, including the bundle header. Bytes. */
  dataSize: number;
  transaction: BundleTransaction | undefined;
  /** Whether the transaction may have been sent. */
  wasSent: boolean;
  /** Number of first chunks that nodes have accepted. */
  seededChunks: number;
  /** Height of the block that last contained it. */
  blockHeight: number | undefined;
  /** Number of times that nodes lost accepted data of this transaction. */
  setbacks: number;
  /** Unix milliseconds of the last change of state. */
  changedAt: number;
  /** Time of the next step. Unix milliseconds. */
  nextAt: number;
  /** Failed steps since the last successful one. */
  attempts: number;
}>;

export type BundlesWanted = Readonly<{ store: string; states: readonly BundleState[]; limit: number }>;

/** Bundles in the given states, ordered by the time of their next step. */
export async function nextBundles(tx: Tx, { store, states: wanted, limit }: BundlesWanted): Promise<Bundle[]> {
  const rows = await tx.all<BundleRow>(
    `SELECT * FROM bundles WHERE store = ? AND state IN (${wanted.map(() => "?").join(", ")}) ` +
      "AND state NOT IN ('permanent', 'dropped') ORDER BY next_at, id LIMIT ?",
    ...[store, ...wanted, BigInt(limit)],
  );
  return rows.map(readBundle);
}

/** All bundles of a store whose items are permanent. */
export async function permanentBundles(tx: Tx, store: string): Promise<Bundle[]> {
  const rows = await tx.all<BundleRow>("SELECT * FROM bundles WHERE store = ? AND state = 'permanent'", store);
  return rows.map(readBundle);
}

/** Ids of the unfinished bundles of a store. */
export async function unfinishedBundles(tx: Tx, store: string): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM bundles WHERE store = ? AND state NOT IN ('permanent', 'dropped') ORDER BY id",
    store,
  );
  return rows.map(({ id }) => id);
}

/** A change to a later state. */
export type BundleStep = Readonly<{
  bundle: Bundle;
  to: BundleState;
  now: number;
  /** Time of the next step. Unix milliseconds. */
  nextAt: number;
  /** Set if the step signed a transaction. */
  transaction?: BundleTransaction;
  /** Set if the step found the transaction in a block. */
  blockHeight?: number;
}>;

/** Writes a change to a later state. @returns Whether the bundle had the expected state. */
export async function stepBundle(tx: Tx, step: BundleStep): Promise<boolean> {
  const { bundle, to, now, nextAt } = step;
  const transaction = step.transaction ?? bundle.transaction;
  const blockHeight = step.blockHeight ?? bundle.blockHeight;
  const changed = await tx.run(
    "UPDATE bundles SET state = ?, transaction_id = ?, signed = ?, anchor_height = ?, block_height = ?, " +
      "changed_at = ?, next_at = ?, attempts = 0, last_error = NULL WHERE id = ? AND state = ?",
    ...[to, transaction?.id ?? null, transaction?.text ?? null],
    ...[transaction === undefined ? null : BigInt(transaction.anchorHeight)],
    ...[blockHeight === undefined ? null : BigInt(blockHeight)],
    ...[BigInt(now), BigInt(nextAt), bundle.id, bundle.state],
  );
  return changed === 1;
}

/** A change to an earlier state, because nodes lost data, or will never accept the transaction. */
export type BundleReturn = Readonly<{
  bundle: Bundle;
  /**
   * `planned`: the transaction is abandoned, and must never be mined; `prepared`: posted again; `posted`: seeded
   * again.
   */
  to: "planned" | "prepared" | "posted";
  now: number;
  nextAt: number;
  /** For the operator. */
  reason: string;
}>;

/** Writes a change to an earlier state. @returns Whether the bundle had the expected state. */
export async function returnBundle(tx: Tx, step: BundleReturn): Promise<boolean> {
  const { bundle, to, now, nextAt, reason } = step;
  const given =
    to === "planned"
      ? "transaction_id = NULL, signed = NULL, anchor_height = NULL, sent_at = NULL, setbacks = 0"
      : "setbacks = setbacks + 1";
  const changed = await tx.run(
    `UPDATE bundles SET state = ?, ${given}, seeded_chunks = 0, block_height = NULL, changed_at = ?, next_at = ?, ` +
      "attempts = attempts + 1, last_error = ? WHERE id = ? AND state = ?",
    ...[to, BigInt(now), BigInt(nextAt), cut(reason), bundle.id, bundle.state],
  );
  return changed === 1;
}

/** Schedules a retry. @param reason - The failure; `undefined` if the step was only too early. */
export async function postponeBundle(
  tx: Tx,
  bundle: Bundle,
  nextAt: number,
  reason: string | undefined,
): Promise<void> {
  await tx.run(
    "UPDATE bundles SET next_at = ?, attempts = attempts + ?, last_error = ? WHERE id = ? AND state = ?",
    ...[BigInt(nextAt), reason === undefined ? 0n : 1n, reason === undefined ? null : cut(reason)],
    ...[bundle.id, bundle.state],
  );
}

/**
 * Records that the transaction is about to be sent.
 *
 * @returns `first`: it was never sent before; `gone`: the bundle has another transaction, so this one must not be sent.
 */
export async function noteSent(tx: Tx, bundle: Bundle, now: number): Promise<"first" | "again" | "gone"> {
  const row = await tx.get<{ sent_at: bigint | null }>(
    "SELECT sent_at FROM bundles WHERE id = ? AND state = ? AND transaction_id = ?",
    ...[bundle.id, bundle.state, bundle.transaction?.id ?? null],
  );
  if (row === undefined) return "gone";
  if (row.sent_at !== null) return "again";
  await tx.run("UPDATE bundles SET sent_at = ? WHERE id = ?", BigInt(now), bundle.id);
  return "first";
}

/** Stores the number of first chunks that nodes have accepted. */
export async function noteSeeded(tx: Tx, bundle: Bundle, chunks: number): Promise<void> {
  await tx.run(
    "UPDATE bundles SET seeded_chunks = ? WHERE id = ? AND state = ? AND seeded_chunks < ?",
    ...[BigInt(chunks), bundle.id, bundle.state, BigInt(chunks)],
  );
}

/** Stores the height of the block that contains a bundle; `undefined` if no block contains it. */
export async function noteBlock(
  tx: Tx,
  bundle: Bundle,
  blockHeight: number | undefined,
  now: number,
  nextAt: number,
): Promise<void> {
  await tx.run(
    "UPDATE bundles SET block_height = ?, changed_at = ?, next_at = ? WHERE id = ? AND state = ?",
    ...[blockHeight === undefined ? null : BigInt(blockHeight), BigInt(now), BigInt(nextAt)],
    ...[bundle.id, bundle.state],
  );
}

/** Drops a bundle, so that its items are planned again. @returns Whether the bundle had the expected state. */
export async function dropBundle(tx: Tx, bundle: Bundle, now: number, reason: string): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE bundles SET state = 'dropped', changed_at = ?, last_error = ? WHERE id = ? AND state = ?",
    ...[BigInt(now), cut(reason), bundle.id, bundle.state],
  );
  if (changed === 1)
    await tx.run("UPDATE uploads SET bundle_id = NULL, position = NULL, behind = NULL WHERE bundle_id = ?", bundle.id);
  return changed === 1;
}

const reasonLengthMax = 500;

function cut(reason: string): string {
  return storableText(reason).slice(0, reasonLengthMax);
}

type BundleRow = Row &
  Readonly<{
    id: string;
    state: string;
    item_count: bigint;
    items_size: bigint;
    transaction_id: string | null;
    signed: string | null;
    anchor_height: bigint | null;
    sent_at: bigint | null;
    seeded_chunks: bigint;
    block_height: bigint | null;
    setbacks: bigint;
    changed_at: bigint;
    next_at: bigint;
    attempts: bigint;
  }>;

function readBundle(row: BundleRow): Bundle {
  const state = states.find((each) => each === row.state);
  assert(state !== undefined, "the ledger holds states that are known");
  const itemCount = readCount(row.item_count);
  const itemsSize = readCount(row.items_size);
  return {
    id: row.id,
    state,
    itemCount,
    itemsSize,
    dataSize: bundleCountSize + bundleEntrySize * itemCount + itemsSize,
    transaction: readSigned(row),
    wasSent: row.sent_at !== null,
    seededChunks: readCount(row.seeded_chunks),
    blockHeight: row.block_height === null ? undefined : readCount(row.block_height),
    setbacks: readCount(row.setbacks),
    changedAt: readTime(row.changed_at),
    nextAt: readTime(row.next_at),
    attempts: readCount(row.attempts),
  };
}

function readSigned({ transaction_id, signed, anchor_height }: BundleRow): Bundle["transaction"] {
  if (transaction_id === null || signed === null || anchor_height === null) return undefined;
  // Written from an `Id`.
  return { id: transaction_id as Id, text: signed, anchorHeight: readCount(anchor_height) };
}
