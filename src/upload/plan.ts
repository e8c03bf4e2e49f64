/**
 * Planning: which items go into a bundle together, and where in it each stands.
 *
 * Items go in the order in which they came. A bundle is planned when it is full, or when its oldest item has waited
 * long enough. The places are worked out in the database, in the one transaction that takes the items.
 * Source: reference/upload.md §2, §3 (bundle header); design.md §9.
 * @module
 */
import { bundleCountSize, bundleEntrySize } from "../arweave/bundle.ts";
import type { LedgerDatabase, Tx } from "../store/ledger/database.ts";
import type { MakeId } from "../store/ledger/transfer-ids.ts";
import { readCount, readTime } from "../store/ledger/values.ts";

/** How bundles are planned. */
export type PlanRules = Readonly<{
  itemsMax: number;
  /** Of the items together; a larger item goes alone. Bytes. */
  bytesMax: number;
  /** Longest that an item waits for others. Milliseconds. */
  waitMs: number;
}>;

/** The rules of design.md §9. */
export const bundleItemsMax = 10_000;
export const bundleBytesMax = 2 * 2 ** 30;

/** What became of planning. */
export type Planned = Readonly<{
  bundles: number /** When to look again, Unix milliseconds. */;
  nextAt: number | undefined;
}>;

/** Plans every bundle that is due. */
export async function planBundles(
  ledger: LedgerDatabase,
  rules: PlanRules,
  makeId: MakeId,
  now: number,
): Promise<Planned> {
  let bundles = 0;
  for (;;) {
    const step = await ledger.write((tx) => planOne(tx, rules, makeId, now));
    if (step.kind === "waiting") return { bundles, nextAt: step.nextAt };
    bundles += 1;
  }
}

type PlanStep = Readonly<{ kind: "planned" }> | Readonly<{ kind: "waiting"; nextAt: number | undefined }>;

type WaitingRow = Readonly<{ id: string; size: bigint; received_at: bigint }>;

async function planOne(tx: Tx, rules: PlanRules, makeId: MakeId, now: number): Promise<PlanStep> {
  const waiting = await tx.all<WaitingRow>(
    "SELECT id, size, received_at FROM uploads WHERE state = 'stored' ORDER BY received_at, id LIMIT ?",
    BigInt(rules.itemsMax + 1),
  );
  const [oldest] = waiting;
  if (oldest === undefined) return { kind: "waiting", nextAt: undefined };
  const chosen = fitting(waiting, rules);
  const isFull = chosen.length < waiting.length;
  const dueAt = readTime(oldest.received_at) + rules.waitMs;
  if (!isFull && now < dueAt) return { kind: "waiting", nextAt: dueAt };

  const id = makeId();
  const headerSize = bundleCountSize + bundleEntrySize * chosen.length;
  const dataSize = chosen.reduce((sum, { size }) => sum + size, BigInt(headerSize));
  const at = BigInt(now);
  await tx.run(
    "INSERT INTO bundles (id, state, item_count, data_size, created_at, changed_at, next_at) " +
      "VALUES (?, 'planned', ?, ?, ?, ?, ?)",
    ...[id, BigInt(chosen.length), dataSize, at, at, at],
  );
  const last = chosen.at(-1) ?? oldest;
  await tx.run(
    "UPDATE uploads SET state = 'planned', bundle_id = ?, changed_at = ?, position = placed.n - 1, " +
      "bundle_offset = ? + placed.behind FROM (" +
      "SELECT id, ROW_NUMBER() OVER (ORDER BY received_at, id) AS n, " +
      "CAST(SUM(size) OVER (ORDER BY received_at, id) AS BIGINT) - size AS behind " +
      "FROM uploads WHERE state = 'stored' AND (received_at < ? OR (received_at = ? AND id <= ?))" +
      ") AS placed WHERE uploads.id = placed.id",
    ...[id, at, BigInt(headerSize), last.received_at, last.received_at, last.id],
  );
  return { kind: "planned" };
}

/** The first items that fit together: at least one. */
function fitting(waiting: readonly WaitingRow[], { itemsMax, bytesMax }: PlanRules): readonly WaitingRow[] {
  let bytes = 0;
  let count = 0;
  for (const { size } of waiting) {
    bytes += readCount(size);
    if (count === itemsMax || (count > 0 && bytes > bytesMax)) break;
    count += 1;
  }
  return waiting.slice(0, count);
}
