/**
 * Credits: the rules of reservations, approvals and balances, each step one durable transaction of the ledger.
 *
 * The one clock is read when a step is asked for. Everything here may also be called from two processes on one
 * ledger; steps on the same money happen one after another.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { type HistoryEntry, historyOf, type MakeId, user } from "../../store/ledger/transfers.ts";
import type { UserAddress } from "../addresses.ts";
import {
  type Approval,
  type ApprovalRequest,
  type ApprovalSide,
  type ApprovalsNow,
  approvalsNow,
  expireApprovals,
  findApproval,
  giveApproval,
  type RevocationRequest,
  revokeApprovals,
  type Step,
} from "./approvals.ts";
import { type Balance, readBalance } from "./balances.ts";
import { findReservation, type Reservation, type ReservationState } from "./reservation-rows.ts";
import { expireReservations, post, type ReservationRequest, reserve, voidReservation } from "./reservations.ts";

/** The interface of credits for the services. Failures are those of the named functions. */
export type Credits = Readonly<{
  /** `readBalance`: what an address has; `undefined` for a stranger. Writes nothing. */
  balance: (address: UserAddress) => Promise<Balance | undefined>;
  /** `approvalsNow`: approvals that can be spent. Writes nothing. */
  approvals: (side: ApprovalSide) => Promise<ApprovalsNow>;
  /** An approval in any state, by the data item that gave it. Writes nothing. */
  approval: (approvalId: string) => Promise<Approval | undefined>;
  /** Movements of the address's own balance, newest first. Writes nothing. */
  history: (address: UserAddress, page: HistoryPage) => Promise<HistoryEntry[]>;
  /** `reserve`: holds credits for an item; idempotent by the item's id. */
  reserve: (request: ReservationRequest) => Promise<Reservation>;
  /** The newest reservation of an item. Writes nothing. */
  reservation: (itemId: string) => Promise<Reservation | undefined>;
  /** `post`: spends what a reservation holds, by the reservation's id; see what it returns. */
  post: (reservationId: string) => Promise<ReservationState>;
  /** `voidReservation`: gives back what a reservation holds, by the reservation's id. */
  void: (reservationId: string) => Promise<ReservationState>;
  /** `giveApproval`: moves credits into an approval. */
  approve: (request: ApprovalRequest) => Promise<Approval>;
  /** `revokeApprovals`: ends the approvals of a pair; idempotent by `revokeId`. */
  revoke: (request: RevocationRequest) => Promise<Approval[]>;
  /** Ends reservations and approvals whose time has passed. @returns How many. */
  expire: (signal: AbortSignal) => Promise<number>;
}>;

/** A page of a history. */
export type HistoryPage = Readonly<{
  /** Only movements older than this one, by its `transferId`, exclusive. */
  before?: string | undefined;
  /** 1 to `historyPageMax`. */
  limit: number;
}>;

/** Movements that one page of a history may hold. */
export const historyPageMax = 1_000;

/** Reservations or approvals that end in one transaction: others wait no longer than these take. */
const expiredPerStep = 50;

export type CreditsOptions = Readonly<{ database: LedgerDatabase; clock: Clock; makeId: MakeId }>;

/** Creates the credits of a ledger. The ledger stays the caller's to close. */
export function createCredits({ database, clock, makeId }: CreditsOptions): Credits {
  const step = (): Step => ({ now: clock(), makeId });

  async function expireAll(expireSome: typeof expireReservations, signal: AbortSignal): Promise<number> {
    const at = step();
    let ended = 0;
    while (!signal.aborted) {
      const some = await database.write((tx) => expireSome(tx, at, expiredPerStep));
      ended += some;
      if (some < expiredPerStep) break;
    }
    return ended;
  }

  return {
    balance: (address) => {
      const now = clock();
      return database.read((tx) => readBalance(tx, address, now));
    },
    approvals: (side) => {
      const now = clock();
      return database.read((tx) => approvalsNow(tx, side, now));
    },
    approval: (approvalId) => database.read((tx) => findApproval(tx, approvalId)),
    history: (address, page) => {
      assert(page.limit >= 1 && page.limit <= historyPageMax, "a page of a history has a size");
      return database.read((tx) => historyOf(tx, user(address), page));
    },
    reserve: (request) => {
      const at = step();
      return database.write((tx) => reserve(tx, request, at));
    },
    reservation: (itemId) => database.read((tx) => findReservation(tx, itemId)),
    post: (reservationId) => {
      const at = step();
      return database.write((tx) => post(tx, reservationId, at));
    },
    void: (reservationId) => {
      const at = step();
      return database.write((tx) => voidReservation(tx, reservationId, at));
    },
    approve: (request) => {
      const at = step();
      return database.write((tx) => giveApproval(tx, request, at));
    },
    revoke: (request) => {
      const at = step();
      return database.write((tx) => revokeApprovals(tx, request, at));
    },
    expire: async (signal) =>
      (await expireAll(expireReservations, signal)) + (await expireAll(expireApprovals, signal)),
  };
}
