/**
 * Streams of ledger operations that a seed decides, so that a process that takes over does what the dead one did
 * next, and a judge knows what each answer must have left behind.
 * @module
 */
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { Credits } from "../../../src/payment/credits.ts";
import { provider, user } from "../../../src/store/ledger/accounts.ts";
import type { LedgerDatabase, Tx } from "../../../src/store/ledger/database.ts";
import { claimEvent } from "../../../src/store/ledger/events.ts";
import type { MakeId } from "../../../src/store/ledger/transfer-ids.ts";
import { transfer } from "../../../src/store/ledger/transfers.ts";
import { createRandom } from "../random.ts";

/** Streams that run at once. */
export const streamCount = 16;

/** The n-th operation of a stream. */
export type Operation = Readonly<{
  kind: "credit" | "approve" | "reserve" | "post" | "void" | "revoke";
  /** The event, approval, item or revocation; for post and void the item that was reserved before. */
  name: string;
  stream: number;
  winc: bigint;
}>;

/** What an operation answers: what it did, `again` when a dead process had done it, `refused` when it cannot be. */
export type Answer = "done" | "again" | "refused";

/** What operations need. */
export type Bench = Readonly<{ database: LedgerDatabase; credits: Credits; makeId: MakeId; now: number }>;

const cycle = ["credit", "approve", "reserve", "end", "reserve", "end", "reserve", "revoke"] as const;

/** The operation at a place of a stream: the same for the same seed, whoever asks. */
export function operationAt(seed: number, stream: number, index: number): Operation {
  const random = createRandom(seed * 7_919 + stream * 104_729 + index);
  const kind = cycle[index % cycle.length] ?? "credit";
  const at = (place: number) => `${stream}-${place}`;
  const winc = BigInt(1 + random.below(500));
  if (kind !== "end") return { kind, name: at(index), stream, winc: kind === "credit" ? winc * 3n : winc };
  return { kind: random.chance(0.6) ? "post" : "void", name: at(index - 1), stream, winc };
}

/** The address of a stream. Each approves the next one, so that streams meet. */
export function addressOf(stream: number): UserAddress {
  // The ledger takes any text; canonical addresses are another test's concern.
  return `stream-${(stream + streamCount) % streamCount}` as UserAddress;
}

/** Performs one operation. Rejects only when the ledger fails. */
export async function perform(bench: Bench, operation: Operation): Promise<Answer> {
  const { credits } = bench;
  const { kind, name, stream, winc } = operation;
  const own = addressOf(stream);
  const next = addressOf(stream + 1);
  const expiresAt = bench.now + 1_000_000;
  switch (kind) {
    case "credit":
      return (await credit(bench, operation)) ? "done" : "again";
    case "approve":
      return await unlessRefused(
        () => credits.approve({ approvalId: name, payer: own, approved: next, winc }),
        async () => (await credits.approval(name)) !== undefined,
      );
    case "reserve": {
      const paidBy = [addressOf(stream - 1)];
      const request = {
        itemId: name,
        signer: own,
        paidBy,
        directive: "list-or-signer",
        winc,
        expiresAt,
      } as const;
      return await unlessRefused(
        () => credits.reserve(request),
        async () => false,
      );
    }
    case "post":
    case "void": {
      const reservation = await credits.reservation(name);
      if (reservation === undefined) return "refused";
      const state = await credits[kind](reservation.id);
      if (state !== (kind === "post" ? "posted" : "voided"))
        throw new Error(`${name} is ${state} after ${kind}`);
      return reservation.state === "pending" ? "done" : "again";
    }
    case "revoke":
      return await unlessRefused(
        () => credits.revoke({ payer: own, approved: next, revokeId: name }),
        async () => false,
      );
  }
}

async function credit({ database, makeId, now }: Bench, { name, stream, winc }: Operation): Promise<boolean> {
  const id = makeId();
  return await database.write(async (tx) => {
    if (!(await claimEvent(tx, "card", name, now))) return false;
    const legs = [
      { account: provider("card"), amount: -winc },
      { account: user(addressOf(stream)), amount: winc },
    ];
    await transfer(tx, { id, kind: "payment", at: now, changeId: name, legs });
    return true;
  });
}

async function unlessRefused(act: () => Promise<unknown>, wasDone: () => Promise<boolean>): Promise<Answer> {
  try {
    await act();
    return "done";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    if (code !== "insufficient_balance" && code !== "payment_refused") throw error;
    return (await wasDone()) ? "again" : "refused";
  }
}

/** Rows that an operation leaves behind when it is done, each exactly so often. */
const traces: Readonly<Record<Operation["kind"], readonly (readonly [sql: string, count: bigint])[]>> = {
  credit: [
    ["SELECT COUNT(*) AS count FROM events WHERE source = 'card' AND event_id = ?", 1n],
    ["SELECT COUNT(*) AS count FROM transfers WHERE kind = 'payment' AND change_id = ?", 1n],
  ],
  approve: [
    ["SELECT COUNT(*) AS count FROM approvals WHERE id = ?", 1n],
    ["SELECT COUNT(*) AS count FROM transfers WHERE kind = 'approval' AND change_id = ?", 1n],
  ],
  reserve: [
    ["SELECT COUNT(*) AS count FROM reservations WHERE item_id = ?", 1n],
    ["SELECT COUNT(*) AS count FROM transfers WHERE kind = 'reservation' AND change_id = ?", 1n],
  ],
  post: [
    ["SELECT COUNT(*) AS count FROM reservations WHERE state = 'posted' AND item_id = ?", 1n],
    ["SELECT COUNT(*) AS count FROM transfers WHERE kind = 'reservation_posted' AND change_id = ?", 1n],
  ],
  void: [
    ["SELECT COUNT(*) AS count FROM reservations WHERE state = 'voided' AND item_id = ?", 1n],
    ["SELECT COUNT(*) AS count FROM transfers WHERE kind = 'reservation_voided' AND change_id = ?", 1n],
  ],
  revoke: [
    ["SELECT CASE WHEN COUNT(*) > 0 THEN 1 ELSE 0 END AS count FROM approvals WHERE revoke_id = ?", 1n],
  ],
};

/** Counts what an operation has left behind: how many of its rows are there so often as they must be. */
export async function tracesOf(tx: Tx, { kind, name }: Operation): Promise<"whole" | "absent" | "broken"> {
  const counts = await Promise.all(traces[kind].map(([sql]) => tx.get<{ count: bigint }>(sql, name)));
  if (counts.every((row, index) => row?.count === traces[kind][index]?.[1])) return "whole";
  return counts.every((row) => row?.count === 0n) ? "absent" : "broken";
}
