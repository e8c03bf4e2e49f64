/**
 * Credits: the rules of reservations, approvals and balances, each step one durable transaction of the ledger.
 *
 * The clock is read when a step is requested. Two processes may call every function on one ledger; steps on the same
 * money run one after another.
 * Source: docs/reference/payment.md#approvals.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type BackgroundLoop, openBackgroundLoop } from "../../lib/loop.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import {
  claimEvent,
  findBalance,
  type HistoryEntry,
  historyOf,
  type MakeId,
  promo,
  transfer,
  user,
} from "../../store/ledger/transfers.ts";
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
import {
  expireReservations,
  findReservation,
  post,
  type Reservation,
  type ReservationRequest,
  type ReservationState,
  reserve,
  voidReservation,
} from "./reservations.ts";

/** The interface of credits for the services. Failures are those of the named functions. */
export type Credits = Readonly<{
  /** `readBalance`: the balances of an address; `undefined` for an unknown address. Writes nothing. */
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
  /** `post`: spends the credits of a reservation, by its id. Only the returned state `posted` means success. */
  post: (reservationId: string) => Promise<ReservationState>;
  /** `voidReservation`: returns the credits of a reservation, by its id. */
  void: (reservationId: string) => Promise<ReservationState>;
  /** `giveApproval`: moves credits into an approval. */
  approve: (request: ApprovalRequest) => Promise<Approval>;
  /** `revokeApprovals`: ends the approvals of a pair; idempotent by `revokeId`. */
  revoke: (request: RevocationRequest) => Promise<Approval[]>;
  /** Ends expired reservations and approvals. @returns How many. */
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

/** Reservations or approvals that end in one transaction, so that other transactions wait only briefly. */
const expiredPerStep = 50;

export type CreditsOptions = Readonly<{ database: LedgerDatabase; clock: Clock; makeId: MakeId }>;

/** Creates the credits of a ledger. The caller closes the ledger. */
export function createCredits({ database, clock, makeId }: CreditsOptions): Credits {
  const step = (): Step => ({ now: clock(), makeId });
  /** Writes a step with the time of its request. */
  const write = <Result>(work: (tx: Tx, at: Step) => Promise<Result>): Promise<Result> => {
    const at = step();
    return database.write((tx) => work(tx, at));
  };

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
    reserve: (request) => write((tx, at) => reserve(tx, request, at)),
    reservation: (itemId) => database.read((tx) => findReservation(tx, itemId)),
    post: (reservationId) => write((tx, at) => post(tx, reservationId, at)),
    void: (reservationId) => write((tx, at) => voidReservation(tx, reservationId, at)),
    approve: (request) => write((tx, at) => giveApproval(tx, request, at)),
    revoke: (request) => write((tx, at) => revokeApprovals(tx, request, at)),
    expire: async (signal) =>
      (await expireAll(expireReservations, signal)) + (await expireAll(expireApprovals, signal)),
  };
}

/** The balances of an address, winc. */
export type Balance = Readonly<{
  /** Its spendable credits; below 0 after a payment was reversed. Expired approvals count as returned. */
  winc: bigint;
  /** `winc` and the rest of the approvals that it gave. */
  controlledWinc: bigint;
  /** `winc` and the rest of the approvals that it received. */
  effectiveBalance: bigint;
  /** Approvals with a rest, soonest expiry first; at most 1,000, while the sums include all of them. */
  givenApprovals: readonly Approval[];
  /** As `givenApprovals`. */
  receivedApprovals: readonly Approval[];
}>;

/** @returns `undefined` for an address that never had credits and has received none. */
export async function readBalance(tx: Tx, address: UserAddress, now: number): Promise<Balance | undefined> {
  const account = await findBalance(tx, user(address));
  const given = await approvalsNow(tx, { payer: address }, now);
  const received = await approvalsNow(tx, { approved: address }, now);
  if (account === undefined && received.unusedWinc === 0n) return undefined;
  const winc = (account ?? 0n) + given.expiredWinc;
  return {
    winc,
    controlledWinc: winc + given.unusedWinc,
    effectiveBalance: winc + received.unusedWinc,
    givenApprovals: given.approvals,
    receivedApprovals: received.approvals,
  };
}

export type ExpiryOptions = Readonly<{
  credits: Pick<Credits, "expire">;
  /** Wait between two rounds. Milliseconds. */
  everyMs: number;
  log: Log;
}>;

/**
 * Returns the credits of expired reservations and approvals in background rounds; the first starts at once.
 *
 * Correctness does not depend on the rounds: an expired approval cannot be spent, and reads count it as returned. A
 * failed round is logged, and the next round tries again. `close` ends the current round after its transaction.
 */
export function openExpiry({ credits, everyMs, log }: ExpiryOptions): BackgroundLoop {
  const round = async (signal: AbortSignal): Promise<number> => {
    const ended = await credits.expire(signal);
    if (ended > 0) log.debug("returned expired credits", { ended });
    return everyMs;
  };
  return openBackgroundLoop("credit expiry", round, (error) => {
    log.warn("expired credits were not returned; the next round tries again", { error });
    return everyMs;
  });
}

// Credits that an account begins with: once for ever, however often they are given.

export type StartingCreditsParts = Readonly<{ ledger: LedgerDatabase; clock: Clock; makeId: MakeId }>;

/** The source of the event that is claimed for each account. */
const source = "starting-credits";

/**
 * Gives credits to each account that has not received starting credits.
 *
 * @param winc - To each, above 0.
 * @returns The accounts that received credits now; the transfers are durable when it resolves.
 */
export async function giveStartingCredits(
  { ledger, clock, makeId }: StartingCreditsParts,
  accounts: readonly UserAddress[],
  winc: bigint,
): Promise<UserAddress[]> {
  const at = clock();
  return await ledger.write(async (tx) => {
    const given: UserAddress[] = [];
    for (const account of accounts) {
      if (!(await claimEvent(tx, source, account, at))) continue;
      const legs = [
        { account: promo, amount: -winc },
        { account: user(account), amount: winc },
      ];
      await transfer(tx, { id: makeId(), kind: "promotion", at, legs, note: "credits to begin with" });
      given.push(account);
    }
    return given;
  });
}
