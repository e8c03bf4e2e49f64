/**
 * Streams of ledger operations that a seed decides, so that a process that takes over does what the dead one did
 * next, and a model knows what each response must have left behind.
 * @module
 */
import type { UserAddress } from "../../../src/payment/addresses.ts";
import type { Credits } from "../../../src/payment/credits/credits.ts";
import type { LedgerDatabase, Tx } from "../../../src/store/ledger/ledger-database.ts";
import { adjustment, claimEvent, type MakeId, transfer, user } from "../../../src/store/ledger/transfers.ts";
import { createRandom } from "../../support/random.ts";

/** Streams that run at once. */
export const streamCount = 16;

/** The n-th operation of a stream. */
export type Operation = Readonly<{
  kind: "credit" | "approve" | "reserve" | "post" | "void" | "lapse" | "expire" | "revoke";
  /** The event, approval, item or revocation; for post, void and expire the item that was reserved before. */
  name: string;
  stream: number;
  winc: bigint;
}>;

/** The result of an operation: what it did, `again` when a dead process had done it, `rejected` when it cannot be. */
export type Result = "done" | "again" | "rejected";

/** What operations need. */
export type Bench = Readonly<{ database: LedgerDatabase; credits: Credits; makeId: MakeId; now: number }>;

/** To lapse is to reserve what may be expired at once; any stream that expires ends what lapsed in all of them. */
const cycle = [
  "credit",
  "approve",
  "reserve",
  "end",
  "reserve",
  "end",
  "lapse",
  "expire",
  "reserve",
  "revoke",
] as const;

/** The operation at a place of a stream: the same for the same seed in every process. */
export function operationAt(seed: number, stream: number, index: number): Operation {
  const random = createRandom(seed * 7_919 + stream * 104_729 + index);
  const kind = cycle[index % cycle.length] ?? "credit";
  const at = (place: number) => `${stream}-${place}`;
  const winc = BigInt(1 + random.below(500));
  if (kind === "expire") return { kind, name: at(index - 1), stream, winc };
  if (kind !== "end") return { kind, name: at(index), stream, winc: kind === "credit" ? winc * 3n : winc };
  return { kind: random.chance(0.6) ? "post" : "void", name: at(index - 1), stream, winc };
}

/** The address of a stream. Each approves the next one, so that streams meet. */
export function addressOf(stream: number): UserAddress {
  // The ledger takes any text; canonical addresses are another test's concern.
  return `stream-${(stream + streamCount) % streamCount}` as UserAddress;
}

/** Performs one operation. Rejects only when the ledger fails. */
export async function perform(bench: Bench, operation: Operation): Promise<Result> {
  const { credits } = bench;
  const { kind, name, stream, winc } = operation;
  const own = addressOf(stream);
  const next = addressOf(stream + 1);
  const expiresAt = kind === "lapse" ? bench.now : bench.now + 1_000_000;
  switch (kind) {
    case "credit":
      return (await credit(bench, operation)) ? "done" : "again";
    case "approve":
      return await unlessRejected(
        () => credits.approve({ approvalId: name, payer: own, approved: next, winc }),
        async () => (await credits.approval(name)) !== undefined,
      );
    case "lapse":
    case "reserve": {
      // What has lapsed may have ended since: it would be reserved anew.
      if (kind === "lapse" && (await credits.reservation(name)) !== undefined) return "again";
      const paidBy = [addressOf(stream - 1)];
      const request = {
        itemId: name,
        signer: own,
        paidBy,
        directive: "list-or-signer",
        winc,
        expiresAt,
      } as const;
      return await unlessRejected(
        () => credits.reserve(request),
        async () => false,
      );
    }
    case "post":
    case "void": {
      const reservation = await credits.reservation(name);
      if (reservation === undefined) return "rejected";
      const state = await credits[kind](reservation.id);
      if (state !== (kind === "post" ? "posted" : "voided")) throw new Error(`${name} is ${state} after ${kind}`);
      return reservation.state === "pending" ? "done" : "again";
    }
    case "expire": {
      const reservation = await credits.reservation(name);
      if (reservation === undefined) return "rejected";
      await credits.expire(new AbortController().signal);
      return reservation.state === "pending" ? "done" : "again";
    }
    case "revoke":
      return await unlessRejected(
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
      { account: adjustment, amount: -winc },
      { account: user(addressOf(stream)), amount: winc },
    ];
    await transfer(tx, { id, kind: "adjustment", at: now, changeId: name, legs });
    return true;
  });
}

async function unlessRejected(act: () => Promise<unknown>, wasDone: () => Promise<boolean>): Promise<Result> {
  try {
    await act();
    return "done";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    if (code !== "insufficient_balance" && code !== "payment_rejected") throw error;
    return (await wasDone()) ? "again" : "rejected";
  }
}

/** How often each thing is in the ledger that an operation may have left behind. */
export type Traces = ReadonlyMap<string, bigint>;

/** Queries for traces: their names, and how often each is there. */
const traceQueries = [
  "SELECT 'event ' || event_id AS name, COUNT(*) AS count FROM events GROUP BY event_id",
  "SELECT 'transfer ' || kind || ' ' || change_id AS name, COUNT(*) AS count FROM transfers GROUP BY kind, change_id",
  "SELECT 'approval ' || id AS name, COUNT(*) AS count FROM approvals GROUP BY id",
  "SELECT 'reservation ' || item_id AS name, COUNT(*) AS count FROM reservations GROUP BY item_id",
  "SELECT state || ' ' || item_id AS name, COUNT(*) AS count FROM reservations GROUP BY state, item_id",
  "SELECT 'revocation ' || revoke_id AS name, COUNT(DISTINCT revoke_id) AS count FROM approvals GROUP BY revoke_id",
];

/** Reads all traces of a ledger. */
export async function readTraces(tx: Tx): Promise<Traces> {
  const traces = new Map<string, bigint>();
  for (const sql of traceQueries)
    for (const row of await tx.all<{ name: string | null; count: bigint }>(sql))
      if (row.name !== null) traces.set(row.name, row.count);
  return traces;
}

/** What an operation that is done has left behind, each once. */
const tracesOfKind: Readonly<Record<Operation["kind"], readonly string[]>> = {
  credit: ["event", "transfer adjustment"],
  approve: ["approval", "transfer approval"],
  reserve: ["reservation", "transfer reservation"],
  post: ["posted", "transfer reservation_posted"],
  void: ["voided", "transfer reservation_voided"],
  lapse: ["reservation", "transfer reservation"],
  expire: ["expired", "transfer reservation_expired"],
  revoke: ["revocation"],
};

/** Tells whether all that an operation leaves behind is there once, or nothing of it. */
export function stateOf(traces: Traces, { kind, name }: Operation): "whole" | "absent" | "broken" {
  const counts = tracesOfKind[kind].map((trace) => traces.get(`${trace} ${name}`) ?? 0n);
  if (counts.every((count) => count === 1n)) return "whole";
  return counts.every((count) => count === 0n) ? "absent" : "broken";
}
