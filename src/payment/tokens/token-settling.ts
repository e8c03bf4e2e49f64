/**
 * Settlement of token payments: the credits of a transfer or its rejection, the steps of a payment, and their writes.
 *
 * The order of the checks and their texts are the peer's: quantity, sender, target, price.
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

/** A transfer and its place among those of its transaction. */
type PlacedTransfer = Readonly<{ part: number; transfer: TokenTransfer }>;

/** The transfers that can be credited, and why the first of the others cannot. */
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
    // Our own transfers are not payments.
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

/** Why a transaction is rejected that pays us nothing. */
export function strayRejection(transactionId: string, { target, amount }: Outline): Failure {
  if (amount <= 0n) return noQuantity();
  const reason = `Payment transaction '${transactionId}' has wrong target address '${target}'`;
  return new Failure("payment_rejected", { reason });
}

/** Why a transaction is rejected that was made before anything was sold for payments to the address. */
export function earlyRejection(transactionId: string): Failure {
  const reason = `Payment transaction '${transactionId}' was made before payments were taken here`;
  return new Failure("payment_rejected", { reason });
}

/** Why a transaction with an unknown recipient is rejected. */
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
//   pending  → credited   enough blocks confirm it
//   pending  → failed     the chain did not carry it out, or does not know it for a day
//   credited → reversed   another block is at its height, and no block has it
//   reversed → credited   the chain has it again
// Source: docs/reference/payment.md#token-payments.

/** The next step of a payment. `isFinal`: the chain need not be asked again. */
type Step =
  | Readonly<{ kind: "credit"; block: BlockRef; isFinal: boolean }>
  | Readonly<{ kind: "reverse" }>
  | Readonly<{ kind: "fail"; reason: string }>
  | Readonly<{ kind: "place"; block: BlockRef | undefined; isFinal: boolean }>
  | Readonly<{ kind: "rest" }>;

/** One look. */
type Look = Readonly<{
  observation: Observation;
  /** Whether another block replaced that of a credited payment, with enough confirmations to confirm a payment. */
  isReplaced: boolean;
  chain: Pick<TokenChain, "confirmations" | "finalConfirmations">;
  /** Unix milliseconds. */
  now: number;
}>;

const revertedReason = "The chain did not carry the transaction out";
const elsewhereReason = "The transaction pays nothing to this address";

/** Time after which a payment fails when its transaction stays unknown. Milliseconds. */
const absentMsMax = 24 * 60 * 60_000;

/** Decides. */
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
 * How long the price of a payment holds that is in no block. Longer, and whoever has sent one for a fee that nobody
 * takes could wait for a better price, and then either pay or send another. Milliseconds.
 */
const priceHeldMs = 60 * 60_000;

/**
 * The transfers of a observation that have to be priced, with their parts: those that have no payment yet, or
 * another one than was seen before, and those that come into a block when their price holds no longer. What was
 * credited once is never replaced.
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

/** A payment that was taken back stays so, rather than fail. */
function reversedStep(payment: TokenPayment, look: Look): Step {
  const step = openStep(payment, look);
  return step.kind === "fail" ? { kind: "place", block: undefined, isFinal: true } : step;
}

function creditedStep(payment: TokenPayment, { observation, isReplaced, chain }: Look): Step {
  if (observation.kind === "mined" && observation.succeeded && pays(observation, payment)) {
    const isFinal = observation.confirmations >= chain.finalConfirmations;
    return { kind: "place", block: observation.block, isFinal };
  }
  // A server may simply not have it, or a block to come: only other blocks in its place show that it is gone.
  return isReplaced ? { kind: "reverse" } : { kind: "place", block: payment.block, isFinal: false };
}

function pays(observation: Extract<Observation, { kind: "mined" }>, payment: TokenPayment): boolean {
  const transfer = observation.transfers[payment.part];
  return transfer !== undefined && isSame(payment, transfer);
}

function isSame({ sender, quantity }: TokenPayment, transfer: TokenTransfer): boolean {
  return sender === transfer.sender && quantity === transfer.amount;
}

// Settling a payment after a look at the chain: what is new is priced and stored, then every payment of the transaction
// takes its step, in one transaction of the ledger.

/** The observation of a transaction. */
type Seen = Pick<Look, "observation" | "isReplaced">;

/** Payments of one transaction after a look. */
type Settled = Readonly<{
  payments: readonly TokenPayment[];
  /** Why the first of what is not credited is not. */
  rejection: Failure | undefined;
}>;

/** Writes what a look means. @throws Failure of the prices or the ledger. */
type Settle = (chain: TokenChain, transactionId: string, seen: Seen, signal: AbortSignal) => Promise<Settled>;

export type SettlingOptions = Readonly<{
  ledger: LedgerDatabase;
  clock: Clock;
  makeId: MakeId;
  /** The shortest time between two checks of an unreported payment. Milliseconds. */
  lookAgainMs: number;
  log: Log;
}>;

/** The longest time between two looks at one payment. Milliseconds. */
const lookAgainMsMax = 10 * 60_000;

/** A payment is looked at again when it is this part older. */
const ageDivisor = 10;

export function createSettling(options: SettlingOptions, offersOf: Offering): Settle {
  const { ledger, clock, makeId, lookAgainMs } = options;
  return async (chain, transactionId, seen, signal) => {
    const before = await ledger.read((tx) => paymentsOf(tx, chain.token, transactionId));
    const wanted = newTransfers(seen.observation, before, clock());
    const { offers, rejection } = await offersOf(chain, transactionId, wanted, signal);
    const now = clock();
    const payments = await ledger.write(async (tx) => {
      // Another process may have stored some meanwhile; what it priced first stays.
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

/** When a payment is checked next: less often the longer its state has not changed. */
function nextLookAt(payment: TokenPayment, now: number, lookAgainMs: number): number {
  const since = payment.endedAt ?? payment.creditedAt ?? payment.seenAt;
  const age = Math.max(now - since, 0);
  const wait = (age - (age % ageDivisor)) / ageDivisor;
  return now + Math.max(Math.min(wait, lookAgainMsMax), lookAgainMs);
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

/** Every change of a state is worth a line. */
function announce(log: Log, before: readonly TokenPayment[], after: readonly TokenPayment[]): void {
  for (const payment of after) {
    const { id, state, destination, winc, failureReason } = payment;
    if (before.find((each) => each.id === id)?.state === state) continue;
    const reports = { payment: id, account: destination, winc, ...(failureReason && { failureReason }) };
    if (state === "reversed") log.warn("a token payment was reversed", reports);
    else log.info(`a token payment is ${state}`, reports);
  }
}

// Following payments that are stored: those that wait for confirmations, and those that the chain may still take back.

/**
 * Looks again at payments of a chain that are due, at most `limit` transactions. What cannot be looked at is due
 * later.
 *
 * @returns Why the last of these could not be looked at.
 * @throws Failure of the prices or the ledger.
 */
export type Follow = (chain: TokenChain, limit: number, signal: AbortSignal) => Promise<Fault | undefined>;

/** Transactions looked at at once. */
const slots = 4;

export function createFollowing(options: SettlingOptions, settle: Settle): Follow {
  const { ledger, clock, lookAgainMs } = options;

  /** Looks at one transaction. @returns Why it could not be looked at. */
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

/** Payments of one block are asked for together, once a pass. */
function createStatuses(chain: TokenChain, signal: AbortSignal): StatusOf {
  const asked = new Map<string, Promise<TransferStatus | Fault>>();
  return (block) => {
    const status = asked.get(block.hash) ?? chain.status(block, signal);
    asked.set(block.hash, status);
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

/** A payment that changed meanwhile has had its look. */
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
