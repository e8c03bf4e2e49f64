/**
 * Plans bundles: chooses the items of a bundle, and their order.
 *
 * Items are bundled in the order of arrival. Waiting items are added to the one filling bundle of their store in
 * slices, so that other transactions of the ledger need not wait long. The bundle is closed when it is full, or when
 * its oldest item has waited long enough. The database computes the positions in the transaction that adds the items.
 * Concurrent planners and crashes between slices are therefore safe.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain; docs/reference/formats.md#bundles.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import { type LedgerDatabase, readCount, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";

export type PlanRules = Readonly<{
  /** Most items of one bundle. */
  itemsMax: number;
  /** Largest total size of the items of one bundle, bytes. A larger item is bundled alone. */
  bytesMax: number;
  /** Longest time that an item waits for others. Milliseconds. */
  waitMs: number;
}>;

export const bundleItemsMax = 10_000;
export const bundleBytesMax = 2 * 2 ** 30;

/** Number of new items that makes a run due before `waitMs`. */
const notedItemsMax = 500;

/**
 * Longest time between two runs: an item whose transaction was stored with an unknown outcome is never noted, and its
 * receipt promises a bundle. Milliseconds.
 */
const lookEveryMs = 10 * 60_000;

/** Items of one transaction, which blocks the event loop for about 8 ms on SQLite (measured). */
const sliceItemsMax = 200;

/** Plans the bundles of one store. */
export type Planner = Readonly<{
  /**
   * Notes a new waiting item.
   * @param size - Of the complete item. Bytes.
   * @returns Whether `look` is due earlier than before.
   */
  note: (size: number) => boolean;
  /** Makes `look` due at once, for the items of a dropped bundle. */
  again: () => void;
  /** Whether `look` is due. */
  isDue: () => boolean;
  /** Latest time at which `look` is due, Unix milliseconds. */
  nextAt: () => number;
  /** Adds all waiting items to bundles, and closes full and due bundles. Calls must not overlap. */
  look: () => Promise<void>;
}>;

export type PlannerParts = Readonly<{
  ledger: LedgerDatabase;
  /** Name of the folder of uploads (store/uploads/item-files.ts). */
  storeName: string;
  rules: PlanRules;
  makeId: MakeId;
  clock: Clock;
}>;

/** Creates the planner; its first `look` is due at once. */
export function createPlanner(parts: PlannerParts): Planner {
  const { ledger, rules, clock } = parts;
  // Items noted since the last run; only the ledger has all waiting items.
  let notedItems = 0;
  let notedBytes = 0;
  let dueAt = Number.NEGATIVE_INFINITY;
  const isDue = () => clock() >= dueAt || notedItems >= notedItemsMax || notedBytes >= rules.bytesMax;

  /** @returns Time to close the filling bundle. Unix milliseconds. */
  async function planAll(): Promise<number> {
    for (;;) {
      const step = await ledger.write((tx) => planSlice(tx, parts, clock()));
      if (step.kind === "done") return step.nextAt;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  return {
    isDue,
    nextAt: () => dueAt,
    again: () => {
      dueAt = Number.NEGATIVE_INFINITY;
    },
    note: (size) => {
      const wasDue = isDue();
      const isFirst = notedItems === 0;
      notedItems += 1;
      notedBytes += size;
      const before = dueAt;
      if (isFirst) dueAt = Math.min(dueAt, clock() + rules.waitMs);
      return dueAt < before || (!wasDue && isDue());
    },
    look: async () => {
      const before = { notedItems, notedBytes, dueAt };
      notedItems = 0;
      notedBytes = 0;
      // Items that arrive during this run may be too late for it.
      dueAt = Number.POSITIVE_INFINITY;
      try {
        const nextAt = await planAll();
        dueAt = Math.min(dueAt, nextAt, clock() + lookEveryMs);
      } catch (error) {
        notedItems += before.notedItems;
        notedBytes += before.notedBytes;
        dueAt = Math.min(dueAt, before.dueAt);
        throw error;
      }
    },
  };
}

/** `more`: another slice may follow; `done`: all items are in bundles, and the filling one is closed at `nextAt`. */
type PlanStep = Readonly<{ kind: "more" }> | Readonly<{ kind: "done"; nextAt: number }>;

type WaitingRow = Readonly<{ id: string; size: bigint; received_at: bigint }>;

/** The filling bundle. */
type Filling = Readonly<{ id: string; itemCount: number; itemsSize: number; nextAt: number }>;

const nothingWaits: PlanStep = { kind: "done", nextAt: Number.POSITIVE_INFINITY };
const more: PlanStep = { kind: "more" };

async function planSlice(tx: Tx, parts: PlannerParts, now: number): Promise<PlanStep> {
  const { storeName, rules } = parts;
  const filling = await findFilling(tx, storeName);
  const waiting = await tx.all<WaitingRow>(
    "SELECT id, size, received_at FROM uploads WHERE store = ? AND bundle_id IS NULL AND failed_reason IS NULL " +
      "ORDER BY received_at, id LIMIT ?",
    ...[storeName, BigInt(sliceItemsMax)],
  );
  if (waiting.length === 0) {
    if (filling === undefined) return nothingWaits;
    if (now < filling.nextAt) return { kind: "done", nextAt: filling.nextAt };
    await close(tx, filling.id, now);
    return nothingWaits;
  }
  const chosen = fitting(waiting, filling, rules);
  if (chosen.length > 0) {
    const filled = await fill(tx, parts, filling, chosen, now);
    if (filled.itemCount < rules.itemsMax && filled.itemsSize < rules.bytesMax) return more;
    await close(tx, filled.id, now);
  } else if (filling !== undefined) await close(tx, filling.id, now);
  return more;
}

async function findFilling(tx: Tx, storeName: string): Promise<Filling | undefined> {
  const row = await tx.get<{ id: string; item_count: bigint; items_size: bigint; next_at: bigint }>(
    "SELECT id, item_count, items_size, next_at FROM bundles WHERE store = ? AND state = 'filling' " +
      "AND state NOT IN ('permanent', 'dropped')",
    storeName,
  );
  if (row === undefined) return undefined;
  const { id, item_count, items_size, next_at } = row;
  return {
    id,
    itemCount: readCount(item_count),
    itemsSize: readCount(items_size),
    nextAt: readTime(next_at),
  };
}

/** The first items that fit; at least one for an empty bundle. */
function fitting(
  waiting: readonly WaitingRow[],
  filling: Filling | undefined,
  { itemsMax, bytesMax }: PlanRules,
): readonly WaitingRow[] {
  let count = filling?.itemCount ?? 0;
  let bytes = filling?.itemsSize ?? 0;
  let chosen = 0;
  for (const { size } of waiting) {
    bytes += readCount(size);
    if (count === itemsMax || (count > 0 && bytes > bytesMax)) break;
    count += 1;
    chosen += 1;
  }
  return waiting.slice(0, chosen);
}

/** Adds items to the filling bundle, and creates the bundle if necessary. */
async function fill(
  tx: Tx,
  { storeName, rules, makeId }: PlannerParts,
  filling: Filling | undefined,
  chosen: readonly WaitingRow[],
  now: number,
): Promise<Pick<Filling, "id" | "itemCount" | "itemsSize">> {
  const [first] = chosen;
  const last = chosen.at(-1) ?? first;
  assert(first !== undefined && last !== undefined, "a bundle is filled with something");
  const id = filling?.id ?? makeId();
  const itemCount = filling?.itemCount ?? 0;
  const itemsSize = filling?.itemsSize ?? 0;
  const count = itemCount + chosen.length;
  const size = chosen.reduce((sum, each) => sum + readCount(each.size), itemsSize);
  if (filling === undefined)
    await tx.run(
      "INSERT INTO bundles (id, store, state, item_count, items_size, created_at, changed_at, next_at) " +
        "VALUES (?, ?, 'filling', ?, ?, ?, ?, ?)",
      ...[id, storeName, BigInt(count), BigInt(size), BigInt(now), BigInt(now)],
      first.received_at + BigInt(rules.waitMs),
    );
  else
    await tx.run(
      "UPDATE bundles SET item_count = ?, items_size = ?, changed_at = ? WHERE id = ?",
      ...[BigInt(count), BigInt(size), BigInt(now), id],
    );
  await tx.run(
    "UPDATE uploads SET bundle_id = ?, position = ? + placed.n, behind = ? + placed.upto - uploads.size FROM (" +
      "SELECT id, ROW_NUMBER() OVER (ORDER BY received_at, id) - 1 AS n, " +
      "CAST(SUM(size) OVER (ORDER BY received_at, id) AS BIGINT) AS upto " +
      "FROM uploads WHERE store = ? AND bundle_id IS NULL AND failed_reason IS NULL " +
      "AND (received_at < ? OR (received_at = ? AND id <= ?))" +
      ") AS placed WHERE uploads.id = placed.id",
    ...[id, BigInt(itemCount), BigInt(itemsSize), storeName],
    ...[last.received_at, last.received_at, last.id],
  );
  return { id, itemCount: count, itemsSize: size };
}

async function close(tx: Tx, id: string, now: number): Promise<void> {
  const at = BigInt(now);
  await tx.run(
    "UPDATE bundles SET state = 'planned', changed_at = ?, next_at = ? WHERE id = ? AND state = 'filling'",
    ...[at, at, id],
  );
}
