/**
 * Settlement of token payments: the credits of a transfer or its rejection, the steps of a payment, and their writes.
 *
 * The order of the checks (quantity, sender, target, price) and their texts follow Turbo's payment service.
 * Source: docs/reference/payment.md#reports; docs/reference/payment.md#prices-of-payments-in-tokens.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Fault } from "../../lib/http-client.ts";
import type { Log } from "../../lib/log.ts";
import { amountMax, type LedgerDatabase, type Tx } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { PaymentPrice, Prices } from "../prices/price-types.ts";
import {
  type BlockRef,
  creditedAccount,
  type Observation,
  type Outline,
  type TokenChain,
  type TokenTransfer,
  type TransferStatus,
} from "./token-chain.ts";
import {
  type ChangeTime,
  creditPayment,
  dueTransactions,
  failPayment,
  keepOffer,
  notFoundReason,
  type Offer,
  paymentsOf,
  placePayment,
  reversePayment,
  type TokenPayment,
} from "./token-payment-store.ts";

/** A transfer and its index in its transaction. */
type PlacedTransfer = Readonly<{ part: number; transfer: TokenTransfer }>;

/** The creditable transfers, and the rejection of the first other transfer. */
type Offered = Readonly<{ offers: readonly Offer[]; rejection: Failure | undefined }>;

/** Prices transfers. @throws Failure `fiat_oracle_unavailable`. */
type Offering = (
  chain: TokenChain,
  transactionId: string,
  transfers: readonly PlacedTransfer[],
  signal: AbortSignal,
) => Promise<Offered>;

/** Creates the pricing of transfers. @param parts.excluded - Senders that are rejected, canonical. */
export function createOffering(
  parts: Readonly<{ prices: Pick<Prices, "token">; excluded: ReadonlySet<string> }>,
): Offering {
  async function offerFor(
    chain: TokenChain,
    transactionId: string,
    { part, transfer }: PlacedTransfer,
    signal: AbortSignal,
  ): Promise<Offer | Failure> {
    const { sender, amount } = transfer;
    if (amount <= 0n) return noQuantity();
    // Transfers by the address itself are not payments.
    if (parts.excluded.has(sender) || sender === chain.address) return excludedSender(transactionId, sender);
    const price = await priceOf(parts.prices, chain, amount, signal);
    if (price instanceof Failure) return price;
    if (price.winc > amountMax)
      return new Failure("payment_rejected", { reason: "The amount is larger than an account can hold" });
    const { address, type } = creditedAccount(transfer, chain.addressType);
    const account = { sender, destination: address, destinationType: type };
    return {
      token: chain.token,
      transactionId,
      part,
      ...account,
      quantity: amount,
      winc: price.winc,
      fees: price.fees,
    };
  }

  return async (chain, transactionId, transfers, signal) => {
    const offers: Offer[] = [];
    let rejection: Failure | undefined;
    for (const placed of transfers) {
      const offer = await offerFor(chain, transactionId, placed, signal);
      if (offer instanceof Failure) rejection ??= offer;
      else offers.push(offer);
    }
    return { offers, rejection };
  };
}

/** The rejection of a transaction without a payment to the address. */
export function strayRejection(transactionId: string, { target, amount }: Outline): Failure {
  if (amount <= 0n) return noQuantity();
  const reason = `Payment transaction '${transactionId}' has wrong target address '${target}'`;
  return new Failure("payment_rejected", { reason });
}

/** The rejection of a transaction that precedes the watch over the address. */
export function earlyRejection(transactionId: string): Failure {
  const reason = `Payment transaction '${transactionId}' was made before payments were taken here`;
  return new Failure("payment_rejected", { reason });
}

/** The rejection of a transaction with an unknown recipient. */
export function unminedRejection(transactionId: string): Failure {
  const reason = `Transaction with id '${transactionId}' has not been mined yet!`;
  return new Failure("payment_rejected", { reason });
}

async function priceOf(
  prices: Pick<Prices, "token">,
  chain: TokenChain,
  amount: bigint,
  signal: AbortSignal,
): Promise<PaymentPrice | Failure> {
  try {
    return await prices.token(chain.token, amount, signal);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "price_amount_invalid") throw error;
    return new Failure("payment_rejected", { reason: error.context["reason"] }, error);
  }
}

function noQuantity(): Failure {
  return new Failure("payment_rejected", { reason: "Transaction quantity must be greater than 0" });
}

function excludedSender(transactionId: string, sender: string): Failure {
  const reason = `Payment transaction '${transactionId}' has sender that is on the excluded address list: '${sender}'`;
  return new Failure("sender_excluded", { reason });
}

// The next step of a payment after an observation of the chain. Pure.
//
//   pending  → credited   enough confirmations
//   pending  → failed     the transaction failed, or was unknown for a day
//   credited → reversed   another block is at its height, and no block contains it
//   reversed → credited   a block contains it again
// Source: docs/reference/payment.md#token-payments.

/** The next step of a payment. `isFinal`: no further request to the chain is needed. */
type Step =
  | Readonly<{ kind: "credit"; block: BlockRef; isFinal: boolean }>
  | Readonly<{ kind: "reverse" }>
  | Readonly<{ kind: "fail"; reason: string }>
  | Readonly<{ kind: "place"; block: BlockRef | undefined; isFinal: boolean }>
  | Readonly<{ kind: "rest" }>;

/** One check of the chain. */
type Look = Readonly<{
  observation: Observation;
  /** Whether another block, with enough confirmations for a payment, replaced the block of a credited payment. */
  isReplaced: boolean;
  chain: Pick<TokenChain, "confirmations" | "finalConfirmations">;
  /** Unix milliseconds. */
  now: number;
}>;

const revertedReason = "The chain did not carry the transaction out";
const elsewhereReason = "The transaction pays nothing to this address";

/** Time after which a payment fails when its transaction stays unknown. Milliseconds. */
const absentMsMax = 24 * 60 * 60_000;

/** Returns the next step. */
function stepOf(payment: TokenPayment, look: Look): Step {
  switch (payment.state) {
    case "failed":
      return { kind: "rest" };
    case "credited":
      return creditedStep(payment, look);
    case "reversed":
      return reversedStep(payment, look);
    case "pending":
      return openStep(payment, look);
  }
}

/**
 * Time for which the price of an unmined payment holds. With a longer time, a sender of a payment with too low a fee
 * could wait for a better price, and then pay or send another. Milliseconds.
 */
const priceHeldMs = 60 * 60_000;

/**
 * The transfers of an observation that need a price, with their parts: transfers without a payment, transfers that
 * differ from the stored payment, and transfers that are mined after their price expired. A credited payment is never
 * replaced.
 *
 * @param now - Unix milliseconds.
 */
function newTransfers(
  observation: Observation,
  payments: readonly TokenPayment[],
  now: number,
): readonly Readonly<{ part: number; transfer: TokenTransfer }>[] {
  const transfers = observation.kind === "absent" ? [] : (observation.transfers ?? []);
  return transfers
    .map((transfer, part) => ({ part, transfer }))
    .filter(({ part, transfer }) => {
      const stored = payments.find((payment) => payment.part === part);
      if (stored === undefined) return true;
      if (stored.credits > 0) return false;
      if (stored.state === "failed") return stored.failureReason === notFoundReason;
      const isLate = observation.kind === "mined" && stored.block === undefined && now - stored.seenAt > priceHeldMs;
      return isLate || !isSame(stored, transfer);
    });
}

function openStep(payment: TokenPayment, look: Look): Step {
  const { observation, chain, now } = look;
  switch (observation.kind) {
    case "absent":
      return now - (payment.endedAt ?? payment.seenAt) > absentMsMax
        ? { kind: "fail", reason: notFoundReason }
        : { kind: "place", block: undefined, isFinal: false };
    case "waiting":
      return { kind: "place", block: undefined, isFinal: false };
    case "mined": {
      const { block, confirmations, succeeded } = observation;
      if (confirmations < chain.confirmations) return { kind: "place", block, isFinal: false };
      if (!succeeded) return { kind: "fail", reason: revertedReason };
      if (!pays(observation, payment)) return { kind: "fail", reason: elsewhereReason };
      return { kind: "credit", block, isFinal: confirmations >= chain.finalConfirmations };
    }
  }
}

/** A reversed payment stays reversed rather than fail. */
function reversedStep(payment: TokenPayment, look: Look): Step {
  const step = openStep(payment, look);
  return step.kind === "fail" ? { kind: "place", block: undefined, isFinal: true } : step;
}

function creditedStep(payment: TokenPayment, { observation, isReplaced, chain }: Look): Step {
  if (observation.kind === "mined" && observation.succeeded && pays(observation, payment)) {
    const isFinal = observation.confirmations >= chain.finalConfirmations;
    return { kind: "place", block: observation.block, isFinal };
  }
  // A server may lack the transaction or its block: only a replaced block proves that the payment is gone.
  return isReplaced ? { kind: "reverse" } : { kind: "place", block: payment.block, isFinal: false };
}

function pays(observation: Extract<Observation, { kind: "mined" }>, payment: TokenPayment): boolean {
  const transfer = observation.transfers[payment.part];
  return transfer !== undefined && isSame(payment, transfer);
}

function isSame({ sender, quantity }: TokenPayment, transfer: TokenTransfer): boolean {
  return sender === transfer.sender && quantity === transfer.amount;
}

// Settling a payment after a check of the chain: new transfers are priced and stored, then every payment of the
// transaction takes its step, in one transaction of the ledger.

/** The observation of a transaction. */
type Seen = Pick<Look, "observation" | "isReplaced">;

/** Payments of one transaction after a check. */
export type Settled = Readonly<{
  payments: readonly TokenPayment[];
  /** The rejection of the first uncredited transfer. */
  rejection: Failure | undefined;
}>;

/** Writes the result of a check. @throws Failure of the prices or the ledger. */
type Settle = (chain: TokenChain, transactionId: string, seen: Seen, signal: AbortSignal) => Promise<Settled>;

export type SettlingOptions = Readonly<{
  ledger: LedgerDatabase;
  clock: Clock;
  makeId: MakeId;
  /** The shortest time between two checks of an unreported payment. Milliseconds. */
  lookAgainMs: number;
  log: Log;
}>;

/** The longest time between two checks of one payment. Milliseconds. */
const lookAgainMsMax = 10 * 60_000;

/** The pause before the next check is this part of a payment's age. */
const ageDivisor = 10;

export function createSettling(options: SettlingOptions, offersOf: Offering): Settle {
  const { ledger, clock, makeId, lookAgainMs } = options;
  return async (chain, transactionId, seen, signal) => {
    const before = await ledger.read((tx) => paymentsOf(tx, chain.token, transactionId));
    const wanted = newTransfers(seen.observation, before, clock());
    const { offers, rejection } = await offersOf(chain, transactionId, wanted, signal);
    const now = clock();
    const payments = await ledger.write(async (tx) => {
      // Another process may have stored some in between; its prices stay.
      const fresh = newTransfers(seen.observation, await paymentsOf(tx, chain.token, transactionId), now);
      for (const offer of offers)
        if (fresh.some(({ part }) => part === offer.part))
          await keepOffer(tx, offer, { now, dueAt: now + lookAgainMs, makeId });
      for (const payment of await paymentsOf(tx, chain.token, transactionId)) {
        const dueAt = nextLookAt(payment, now, lookAgainMs);
        await takeStep(tx, payment, { ...seen, chain, now }, { now, dueAt, makeId });
      }
      return await paymentsOf(tx, chain.token, transactionId);
    });
    announce(options.log, before, payments);
    return { payments, rejection };
  };
}

/** The pause before the next check. @param ageMs - Time since the last change of state. */
export function nextPauseMs(ageMs: number, lookAgainMs: number): number {
  const age = Math.max(ageMs, 0);
  const wait = (age - (age % ageDivisor)) / ageDivisor;
  return Math.max(Math.min(wait, lookAgainMsMax), lookAgainMs);
}

/** Time of the next check: pauses grow with the time since the last change of state. */
function nextLookAt(payment: TokenPayment, now: number, lookAgainMs: number): number {
  const since = payment.endedAt ?? payment.creditedAt ?? payment.seenAt;
  return now + nextPauseMs(now - since, lookAgainMs);
}

async function takeStep(tx: Tx, payment: TokenPayment, look: Look, time: ChangeTime): Promise<void> {
  const step = stepOf(payment, look);
  switch (step.kind) {
    case "rest":
      return;
    case "reverse":
      return await reversePayment(tx, payment, time);
    case "fail":
      return await failPayment(tx, payment, step.reason, time);
    case "place":
      return await placePayment(tx, payment, step.block, step.isFinal ? undefined : time.dueAt);
    case "credit": {
      const dueAt = step.isFinal ? undefined : time.dueAt;
      const obstacle = await creditPayment(tx, payment, step.block, { ...time, dueAt });
      if (obstacle === undefined) return;
      if (payment.state === "pending") await failPayment(tx, payment, obstacle, time);
      else await placePayment(tx, payment, step.block, undefined);
    }
  }
}

/** Logs every change of a state. */
function announce(log: Log, before: readonly TokenPayment[], after: readonly TokenPayment[]): void {
  for (const payment of after) {
    const { id, state, destination, winc, failureReason } = payment;
    if (before.find((each) => each.id === id)?.state === state) continue;
    const reports = { payment: id, account: destination, winc, ...(failureReason && { failureReason }) };
    if (state === "reversed") log.warn("token payment reversed", reports);
    else log.info(`token payment ${state}`, reports);
  }
}

// Following stored payments: pending ones, and credited ones that a reorg may still remove.

/**
 * Checks the due payments of a chain, at most `limit` transactions. After a fault a payment is due later.
 *
 * @returns The last fault.
 * @throws Failure of the prices or the ledger.
 */
export type Follow = (chain: TokenChain, limit: number, signal: AbortSignal) => Promise<Fault | undefined>;

/** Concurrent checks. */
const slots = 4;

export function createFollowing(options: SettlingOptions, settle: Settle): Follow {
  const { ledger, clock, lookAgainMs } = options;

  /** Checks one transaction. @returns The fault of the check. */
  async function followOne(
    chain: TokenChain,
    transactionId: string,
    statusOf: StatusOf,
    signal: AbortSignal,
  ): Promise<Fault | undefined> {
    const payments = await ledger.read((tx) => paymentsOf(tx, chain.token, transactionId));
    const block = payments.find(isCreditedAndDue)?.block;
    const status = block === undefined ? undefined : await statusOf(block);
    const problem = status?.kind === "fault" ? status : undefined;
    if (problem !== undefined || status?.kind === "unknown") {
      await postpone(payments);
      return problem;
    }
    if (status?.kind === "unchanged" && !payments.some(isWaiting)) {
      await stay(payments, status.confirmations >= chain.finalConfirmations);
      return undefined;
    }
    const observation = await chain.look(transactionId, signal);
    if (observation.kind === "fault") {
      await postpone(payments);
      return observation;
    }
    const isReplaced = status?.kind === "replaced" && status.confirmations >= chain.confirmations;
    await settle(chain, transactionId, { observation, isReplaced }, signal);
    return undefined;
  }

  async function stay(payments: readonly TokenPayment[], isFinal: boolean): Promise<void> {
    const now = clock();
    await setDue(ledger, payments.filter(isCreditedAndDue), (payment) =>
      isFinal ? undefined : nextLookAt(payment, now, lookAgainMs),
    );
  }

  async function postpone(payments: readonly TokenPayment[]): Promise<void> {
    const now = clock();
    const isDue = ({ dueAt }: TokenPayment) => dueAt !== undefined;
    await setDue(ledger, payments.filter(isDue), (payment) => nextLookAt(payment, now, lookAgainMs));
  }

  return async (chain, limit, signal) => {
    const statusOf = createStatuses(chain, signal);
    const due = await ledger.read((tx) => dueTransactions(tx, chain.token, clock(), limit));
    let fault: Fault | undefined;
    for (let index = 0; index < due.length; index += slots) {
      signal.throwIfAborted();
      const some = due.slice(index, index + slots);
      const problems = await Promise.all(some.map((id) => followOne(chain, id, statusOf, signal)));
      fault = problems.find((problem) => problem !== undefined) ?? fault;
    }
    return fault;
  };
}

type StatusOf = (block: BlockRef) => Promise<TransferStatus | Fault>;

/** Reads the status of each block once per pass. */
function createStatuses(chain: TokenChain, signal: AbortSignal): StatusOf {
  const statuses = new Map<string, Promise<TransferStatus | Fault>>();
  return (block) => {
    const status = statuses.get(block.hash) ?? chain.status(block, signal);
    statuses.set(block.hash, status);
    return status;
  };
}

function isCreditedAndDue({ state, dueAt }: TokenPayment): boolean {
  return state === "credited" && dueAt !== undefined;
}

function isWaiting({ state, dueAt }: TokenPayment): boolean {
  return state !== "credited" && dueAt !== undefined;
}

function hasSameState(one: TokenPayment, other: TokenPayment): boolean {
  return one.state === other.state && one.credits === other.credits && one.block?.hash === other.block?.hash;
}

/** A payment whose state changed in between was checked by another follower. */
async function setDue(
  ledger: LedgerDatabase,
  payments: readonly TokenPayment[],
  dueAtOf: (payment: TokenPayment) => number | undefined,
): Promise<void> {
  if (payments.length === 0) return;
  await ledger.write(async (tx) => {
    for (const seen of payments) {
      const stored = await paymentsOf(tx, seen.token, seen.transactionId);
      const payment = stored.find((each) => each.id === seen.id && hasSameState(each, seen));
      if (payment !== undefined) await placePayment(tx, payment, payment.block, dueAtOf(payment));
    }
  });
}
