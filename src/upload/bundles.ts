/**
 * Rows of bundles on their way to the chain. A step names the state that the bundle must be in: one that was taken
 * already changes nothing.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import type { Row, Tx } from "../store/ledger/database.ts";
import { readCount, readTime } from "../store/ledger/values.ts";

const states = ["planned", "prepared", "posted", "seeded", "permanent", "dropped"] as const;

/** How far a bundle is on its way. */
export type BundleState = (typeof states)[number];

/** A bundle on its way. */
export type Bundle = Readonly<{
  id: string;
  state: BundleState;
  itemCount: number;
  /** Of the transaction's data, the bundle's header included. Bytes. */
  dataSize: number;
  /** The newest transaction that carries it, and its JSON without data. */
  transaction: Readonly<{ id: Id; text: string; postedHeight: number }> | undefined;
  blockHeight: number | undefined;
  /** Unix milliseconds of the last change of state. */
  changedAt: number;
  /** Steps that failed since the last one that did not. */
  attempts: number;
}>;

/** The bundle of an id. */
export async function findBundle(tx: Tx, id: string): Promise<Bundle | undefined> {
  const row = await tx.get<BundleRow>("SELECT * FROM bundles WHERE id = ?", id);
  return row === undefined ? undefined : readBundle(row);
}

/** Bundles whose next step is due, the longest overdue first. */
export async function dueBundles(tx: Tx, now: number, limit: number): Promise<Bundle[]> {
  const rows = await tx.all<BundleRow>(
    "SELECT * FROM bundles WHERE state NOT IN ('permanent', 'dropped') AND next_at <= ? ORDER BY next_at LIMIT ?",
    ...[BigInt(now), BigInt(limit)],
  );
  return rows.map(readBundle);
}

/** When the next step of any bundle is due, Unix milliseconds; `undefined` while there is none. */
export async function nextBundleStep(tx: Tx): Promise<number | undefined> {
  const row = await tx.get<{ at: bigint | null }>(
    "SELECT MIN(next_at) AS at FROM bundles WHERE state NOT IN ('permanent', 'dropped')",
  );
  return row?.at === undefined || row.at === null ? undefined : readTime(row.at);
}

/** A step of a bundle. */
export type BundleStep = Readonly<{
  bundle: Bundle;
  to: BundleState;
  now: number;
  /** When the step after it is due, Unix milliseconds. */
  nextAt: number;
  /** Where the step signed a transaction. */
  transaction?: Bundle["transaction"];
  /** Where the step saw it in a block. */
  blockHeight?: number;
}>;

/** Writes a step, and with it the state of the items. @returns Whether the bundle was as the step expects it. */
export async function stepBundle(tx: Tx, step: BundleStep): Promise<boolean> {
  const { bundle, to, now, nextAt } = step;
  const transaction = step.transaction ?? bundle.transaction;
  const changed = await tx.run(
    "UPDATE bundles SET state = ?, transaction_id = ?, signed = ?, posted_height = ?, block_height = ?, " +
      "changed_at = ?, next_at = ?, attempts = 0, last_error = NULL WHERE id = ? AND state = ?",
    ...[to, transaction?.id ?? null, transaction?.text ?? null],
    ...[transaction === undefined ? null : BigInt(transaction.postedHeight)],
    ...[step.blockHeight === undefined ? null : BigInt(step.blockHeight)],
    ...[BigInt(now), BigInt(nextAt), bundle.id, bundle.state],
  );
  if (changed === 0) return false;
  const itemState = itemStates[to];
  if (itemState !== undefined)
    await tx.run(
      "UPDATE uploads SET state = ?, changed_at = ? WHERE bundle_id = ? AND state IN ('planned', 'posted')",
      ...[itemState, BigInt(now), bundle.id],
    );
  return true;
}

/** What a bundle's state makes of its items. */
const itemStates: Readonly<Partial<Record<BundleState, string>>> = {
  planned: "planned",
  posted: "posted",
  permanent: "permanent",
};

/** Notes that a step is to be tried again. @param reason - Why; undefined: it is only early. */
export async function postponeBundle(
  tx: Tx,
  bundle: Bundle,
  nextAt: number,
  reason: string | undefined,
): Promise<void> {
  await tx.run(
    "UPDATE bundles SET next_at = ?, attempts = attempts + ?, last_error = ? WHERE id = ? AND state = ?",
    ...[BigInt(nextAt), reason === undefined ? 0n : 1n, reason?.slice(0, reasonLengthMax) ?? null],
    ...[bundle.id, bundle.state],
  );
}

const reasonLengthMax = 500;

/** Gives the items of a bundle that will never be posted back to be planned anew. */
export async function dropBundle(tx: Tx, bundle: Bundle, now: number): Promise<void> {
  const at = BigInt(now);
  await tx.run(
    "UPDATE uploads SET state = 'stored', bundle_id = NULL, position = NULL, bundle_offset = NULL, changed_at = ? " +
      "WHERE bundle_id = ? AND state = 'planned'",
    ...[at, bundle.id],
  );
  await tx.run(
    "UPDATE bundles SET state = 'dropped', changed_at = ? WHERE id = ? AND state = ?",
    ...[at, bundle.id, bundle.state],
  );
}

type BundleRow = Row &
  Readonly<{
    id: string;
    state: string;
    item_count: bigint;
    data_size: bigint;
    transaction_id: string | null;
    signed: string | null;
    posted_height: bigint | null;
    block_height: bigint | null;
    changed_at: bigint;
    attempts: bigint;
  }>;

function readBundle(row: BundleRow): Bundle {
  const state = states.find((each) => each === row.state);
  assert(state !== undefined, "the ledger holds states that are known");
  return {
    id: row.id,
    state,
    itemCount: readCount(row.item_count),
    dataSize: readCount(row.data_size),
    transaction: readSigned(row),
    blockHeight: row.block_height === null ? undefined : readCount(row.block_height),
    changedAt: readTime(row.changed_at),
    attempts: readCount(row.attempts),
  };
}

function readSigned({ transaction_id, signed, posted_height }: BundleRow): Bundle["transaction"] {
  if (transaction_id === null || signed === null || posted_height === null) return undefined;
  // Written from an `Id`.
  return { id: transaction_id as Id, text: signed, postedHeight: readCount(posted_height) };
}
