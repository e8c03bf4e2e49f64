/**
 * Rows of bundles on their way to the chain. A step names the state that the bundle must be in: one that was taken
 * already changes nothing.
 * @module
 */
import { bundleCountSize, bundleEntrySize } from "../../arweave/bundle.ts";
import type { Id } from "../../arweave/id.ts";
import { assert } from "../../lib/assert.ts";
import { type Row, readCount, readTime, type Tx } from "../../store/ledger/ledger-database.ts";

const states = ["filling", "planned", "prepared", "posted", "seeded", "permanent", "dropped"] as const;

/** How far a bundle is on its way (store/ledger/ledger-schema.ts). */
export type BundleState = (typeof states)[number];

/** A signed transaction. */
export type BundleTransaction = Readonly<{
  id: Id;
  /** JSON, without data. */
  text: string;
  /** Height of the block that it is anchored to. */
  anchorHeight: number;
}>;

/** A bundle on its way. */
export type Bundle = Readonly<{
  id: string;
  state: BundleState;
  itemCount: number;
  /** Of its items together. Bytes. */
  itemsSize: number;
  /** Of the transaction's data, the bundle's header included. Bytes. */
  dataSize: number;
  transaction: BundleTransaction | undefined;
  /** Whether the transaction may have left this machine. */
  wasSent: boolean;
  /** So many of its first chunks were taken by nodes. */
  seededChunks: number;
  /** Of the block that it was last seen in. */
  blockHeight: number | undefined;
  /** Times that nodes forgot what they had taken of this transaction. */
  setbacks: number;
  /** Unix milliseconds of the last change of state. */
  changedAt: number;
  /** When the next step is due, Unix milliseconds. */
  nextAt: number;
  /** Steps that failed since the last one that did not. */
  attempts: number;
}>;

/** Which bundles of a store are asked for. */
export type BundlesWanted = Readonly<{ store: string; states: readonly BundleState[]; limit: number }>;

/** Bundles in some states, whose next step is due the soonest. */
export async function nextBundles(tx: Tx, { store, states: wanted, limit }: BundlesWanted): Promise<Bundle[]> {
  const rows = await tx.all<BundleRow>(
    `SELECT * FROM bundles WHERE store = ? AND state IN (${wanted.map(() => "?").join(", ")}) ` +
      "AND state NOT IN ('permanent', 'dropped') ORDER BY next_at, id LIMIT ?",
    ...[store, ...wanted, BigInt(limit)],
  );
  return rows.map(readBundle);
}

/** Ids of the bundles of a store that are on their way, whatever their state. */
export async function unfinishedBundles(tx: Tx, store: string): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM bundles WHERE store = ? AND state NOT IN ('permanent', 'dropped') ORDER BY id",
    store,
  );
  return rows.map(({ id }) => id);
}

/** A step forward. */
export type BundleStep = Readonly<{
  bundle: Bundle;
  to: BundleState;
  now: number;
  /** When the step after it is due, Unix milliseconds. */
  nextAt: number;
  /** Where the step signed a transaction. */
  transaction?: BundleTransaction;
  /** Where the step saw it in a block. */
  blockHeight?: number;
}>;

/** Writes a step forward. @returns Whether the bundle was as the step expects it. */
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

/** A step back, because nodes have forgotten what they took, or never will take it. */
export type BundleReturn = Readonly<{
  bundle: Bundle;
  /**
   * `planned`: the transaction is given up, and must never be mined; `prepared`: posted again; `posted`: seeded
   * again.
   */
  to: "planned" | "prepared" | "posted";
  now: number;
  nextAt: number;
  /** For people. */
  reason: string;
}>;

/** Writes a step back. @returns Whether the bundle was as the step expects it. */
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

/** Notes that a step is to be tried again. @param reason - Why; `undefined`: it is only early. */
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
 * Notes that the transaction is about to leave this machine.
 *
 * @returns `first`: nobody can have had it before; `gone`: it is the bundle's no more, and must not be sent.
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

/** Notes how many of the first chunks nodes have taken. */
export async function noteSeeded(tx: Tx, bundle: Bundle, chunks: number): Promise<void> {
  await tx.run(
    "UPDATE bundles SET seeded_chunks = ? WHERE id = ? AND state = ? AND seeded_chunks < ?",
    ...[BigInt(chunks), bundle.id, bundle.state, BigInt(chunks)],
  );
}

/** Stores the block that contains a bundle, or that no block does any more. */
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

/** Gives the items of a bundle back to be planned anew. @returns Whether the bundle was as it is expected. */
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
  return reason.slice(0, reasonLengthMax);
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
